// The tables of workflows, of components and of error reasons, as several pages show them.
import type { ComponentChildren } from "preact";
import { ABSENT, count, duration, percent } from "../figures";
import type { ComponentRow, ErrorReason, Standing, WorkflowRow } from "../shapes";
import { href } from "../shell/location";

interface TableProps {
  title: string;
  columns: string[];
  /** How many columns at the left are words; the others are figures. */
  words?: number;
  children: ComponentChildren;
  /** Instead of the table, where there is nothing. */
  empty?: ComponentChildren;
  beside?: ComponentChildren;
  /** Its words are long: they break into lines instead of going on to the right. */
  wraps?: boolean;
}

/** A titled table in a panel that scrolls by itself on a narrow screen. */
export function Table({ title, columns, words = 1, children, ...rest }: TableProps) {
  const { empty, beside, wraps = false } = rest;
  return (
    <section class="panel flush" aria-label={title}>
      <div class="panel-head">
        <h2>{title}</h2>
        {beside}
      </div>
      {empty ? (
        <p class="muted">{empty}</p>
      ) : (
        <div
          class={wraps ? "scroll wraps" : "scroll"}
          tabIndex={0}
          role="group"
          aria-label={`${title}, table`}
        >
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

export type Window = number | undefined;

export function WorkflowTable({ rows, window }: { rows: WorkflowRow[]; window: Window }) {
  return (
    <Table
      title="Workflows"
      columns={["Workflow", ...WORKFLOW_COLUMNS]}
      empty={rows.length === 0 && "No session ended in this time."}
    >
      {rows.map((row) => (
        <tr key={row.name}>
          <th scope="row">
            <a href={href(["workflows", row.name], { window })}>{row.name}</a>
          </th>
          <WorkflowCells row={row} />
        </tr>
      ))}
    </Table>
  );
}

export const WORKFLOW_COLUMNS = ["Ended", "Success", "p50", "p95", "Fell back", "In review"];

/** What one workflow, or one version of it, did. */
export function WorkflowCells({ row }: { row: WorkflowRow }) {
  return (
    <>
      <td class="number">{count(row.ended ?? 0)}</td>
      <td class="number">{percent(row.success_rate)}</td>
      <td class="number">{duration(row.p50_ms)}</td>
      <td class="number">{duration(row.p95_ms)}</td>
      <td class="number">{percent(row.fallback_rate)}</td>
      <td class="number">{count(row.in_review ?? 0)}</td>
    </>
  );
}

export const COMPONENT_COLUMNS = ["Attempts", "Failed", "Waiting p95", "Service p95"];

interface ComponentTableProps {
  rows: ComponentRow[];
  /** How the registered ones stand now; those without attempts are listed too. */
  standing?: Standing[] | undefined;
  window: Window;
}

export function ComponentTable({ rows, standing, window }: ComponentTableProps) {
  const now = new Map((standing ?? []).map((one) => [keyOf(one), one]));
  const called = new Set(rows.map(keyOf));
  const idle = (standing ?? []).filter((one) => !called.has(keyOf(one)));
  const shown: ComponentRow[] = [
    ...rows,
    ...idle.map((one) => ({
      name: one.name,
      version: one.version,
      role: (one.roles ?? []).join(" "),
    })),
  ];
  const nowColumn = standing ? ["Now"] : [];
  return (
    <Table
      title="Components"
      columns={["Component", "Version", "Role", ...nowColumn, ...COMPONENT_COLUMNS, "Fell back"]}
      words={3 + nowColumn.length}
      empty={shown.length === 0 && "No component was called in this time, and none is registered."}
    >
      {shown.map((row) => (
        <tr key={keyOf(row)}>
          <th scope="row">
            <a href={href(["components", row.name], { window })}>{row.name}</a>
          </th>
          <td class="nowrap">{row.version ?? ABSENT}</td>
          <td class="nowrap">{(row.role ?? "").toLowerCase()}</td>
          {standing && (
            <td class="nowrap">
              <Now standing={now.get(keyOf(row))} />
            </td>
          )}
          <AttemptCells row={row} />
          <td class="number">{percent(row.fallback_rate)}</td>
        </tr>
      ))}
    </Table>
  );
}

export function AttemptCells({ row }: { row: Omit<ComponentRow, "name"> }) {
  return (
    <>
      <td class="number">{count(row.calls ?? 0)}</td>
      <td class="number">{percent(row.failure_rate)}</td>
      <td class="number">{duration(row.wait_p95_ms)}</td>
      <td class="number">{duration(row.service_p95_ms)}</td>
    </>
  );
}

/** How the instances of one version stand now, the bad first. */
function Now({ standing }: { standing: Standing | undefined }) {
  if (!standing) return <span class="muted">not registered</span>;
  const { instances = 0, active = 0, breakers_open = 0, in_flight = 0, waiting = 0 } = standing;
  const tone = active === 0 ? "bad" : breakers_open || active < instances ? "warn" : "good";
  return (
    <span class="row tight">
      <span class={`mark ${tone}`}>
        {active === instances ? `${active} active` : `${active} of ${instances} active`}
      </span>
      {breakers_open > 0 && <span class="tag warn">{breakers_open} breaker open</span>}
      {(in_flight > 0 || waiting > 0) && (
        <span class="muted small">
          {in_flight} in flight, {waiting} waiting
        </span>
      )}
    </span>
  );
}

function keyOf(one: { name: string; version?: string }): string {
  return `${one.name}@${one.version ?? ""}`;
}

interface ErrorTableProps {
  rows: ErrorReason[];
  /** What is counted: sessions, attempts. */
  of: string;
  linkOf: (reason: string) => string;
}

export function ErrorTable({ rows, of, linkOf }: ErrorTableProps) {
  return (
    <Table
      title="Why it failed"
      columns={["Reason", of, "Share"]}
      empty={rows.length === 0 && "Nothing failed in this time."}
    >
      {rows.map((row) => (
        <tr key={row.reason}>
          <th scope="row">
            <a href={linkOf(row.reason)}>{row.reason}</a>
          </th>
          <td class="number">{count(row.count)}</td>
          <td class="number">{percent(row.share)}</td>
        </tr>
      ))}
    </Table>
  );
}
