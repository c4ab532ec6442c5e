// The tables of workflows and of components, as several pages show them.
import type { ComponentChildren } from "preact";
import { count, duration, percent } from "../figures";
import type { ComponentRow, WorkflowRow } from "../shapes";
import { href } from "../shell/location";

interface TableProps {
  title: string;
  columns: string[];
  /** How many columns at the left are words; the others are figures. */
  words?: number;
  children: ComponentChildren;
  empty: ComponentChildren | false;
}

/** A titled table in a panel that scrolls by itself on a narrow screen. */
export function Table({ title, columns, words = 1, children, empty }: TableProps) {
  return (
    <section class="panel flush" aria-label={title}>
      <div class="panel-head">
        <h2>{title}</h2>
      </div>
      {empty ? (
        <p class="muted">{empty}</p>
      ) : (
        <div class="scroll" tabIndex={0} role="region" aria-label={`${title}, table`}>
          <table>
            <thead>
              <tr>
                {columns.map((name, at) => (
                  <th key={name} scope="col" class={at < words ? undefined : "number"}>
                    {name}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>{children}</tbody>
          </table>
        </div>
      )}
    </section>
  );
}

export function WorkflowTable({ rows, window }: { rows: WorkflowRow[]; window: number | undefined }) {
  return (
    <Table
      title="Workflows"
      columns={["Workflow", "Ended", "Success", "p95 duration", "Fell back"]}
      empty={rows.length === 0 && "No session ended in this time."}
    >
      {rows.map((row) => (
        <tr key={row.name}>
          <th scope="row">
            <a href={href(["workflows", row.name], { window })}>{row.name}</a>
          </th>
          <td class="number">{count(row.ended)}</td>
          <td class="number">{percent(row.success_rate)}</td>
          <td class="number">{duration(row.p95_ms)}</td>
          <td class="number">{percent(row.fallback_rate)}</td>
        </tr>
      ))}
    </Table>
  );
}

export function ComponentTable({ rows, window }: { rows: ComponentRow[]; window: number | undefined }) {
  return (
    <Table
      title="Components"
      columns={["Component", "Version", "Role", "Calls", "Failed", "Fell back", "Waiting p95", "Service p95"]}
      words={3}
      empty={rows.length === 0 && "No component was called in this time."}
    >
      {rows.map((row) => (
        <tr key={`${row.name} ${row.version} ${row.role}`}>
          <th scope="row">
            <a href={href(["components", row.name], { window })}>{row.name}</a>
          </th>
          <td class="nowrap">{row.version}</td>
          <td class="nowrap">{row.role.toLowerCase()}</td>
          <td class="number">{count(row.calls)}</td>
          <td class="number">{percent(row.failure_rate)}</td>
          <td class="number">{percent(row.fallback_rate)}</td>
          <td class="number">{duration(row.wait_p95_ms)}</td>
          <td class="number">{duration(row.service_p95_ms)}</td>
        </tr>
      ))}
    </Table>
  );
}
