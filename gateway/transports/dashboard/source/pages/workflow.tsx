// One workflow: which of its versions is worse, which of its components, and why its sessions fail.
import { JudgedFigures } from "../parts/judged";
import {
  ComponentTable,
  ErrorTable,
  Table,
  WORKFLOW_COLUMNS,
  WorkflowCells,
  type Window,
} from "../parts/tables";
import { Trends } from "../parts/trends";
import { refreshMs, WindowChoice, windowOf, windowValue } from "../parts/window";
import type { WorkflowAnswer } from "../shapes";
import { useAnswer } from "../shell/answer";
import { href } from "../shell/location";
import type { PageProps } from "../shell/routes";
import { Answered } from "../shell/states";

export function WorkflowPage({ names, query }: PageProps) {
  const name = names[0] ?? "";
  const [workflow, version] = name.split("@");
  const windowMs = windowOf(query);
  const path = `/v1/dashboard/workflows/${encodeURIComponent(name)}?window_ms=${windowMs}`;
  const answer = useAnswer<WorkflowAnswer>(path, { everyMs: refreshMs(windowMs) });
  return (
    <>
      <div class="lead">
        <WindowChoice path={["workflows", name]} query={query} />
        <a href={href(["sessions"], { workflow, version })}>Its sessions</a>
      </div>
      <Answered answer={answer}>
        {(data) => <Seen data={data} window={windowValue(windowMs)} />}
      </Answered>
    </>
  );
}

function Seen({ data, window }: { data: WorkflowAnswer; window: Window }) {
  const [workflow, version] = data.name.split("@");
  return (
    <>
      <section class="figures" aria-label="Quality and operation">
        <JudgedFigures judged={data.judged} />
      </section>
      <Trends from={data.from} to={data.to} stepMs={data.step_ms} points={data.series ?? []} />
      <Versions data={data} window={window} />
      <ComponentTable rows={data.components ?? []} window={window} />
      <ErrorTable
        rows={data.errors ?? []}
        of="Sessions"
        linkOf={(error) => href(["sessions"], { workflow, version, error, since: data.from })}
      />
    </>
  );
}

function Versions({ data, window }: { data: WorkflowAnswer; window: Window }) {
  const rows = data.versions ?? [];
  return (
    <Table
      title="Versions"
      columns={["Version", ...WORKFLOW_COLUMNS]}
      empty={rows.length === 0 && "No session of it ended in this time. Choose a longer one above."}
    >
      {rows.map((row) => (
        <tr key={row.version}>
          <th scope="row">
            <a href={href(["workflows", `${row.name}@${row.version ?? ""}`], { window })}>
              {row.version}
            </a>
          </th>
          <WorkflowCells row={row} />
        </tr>
      ))}
    </Table>
  );
}
