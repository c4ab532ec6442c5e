// Two runs side by side: every place in which they are not the same, causes before effects.
import { duration, visible } from "../figures";
import { Table } from "../parts/tables";
import type { LineageDiff, LineageHead } from "../shapes_lineage";
import { useAnswer } from "../shell/answer";
import { href } from "../shell/location";
import type { PageProps } from "../shell/routes";
import { Answered } from "../shell/states";
import { Status } from "./lineage";

export function LineageDifference({ names }: PageProps) {
  const [left = "", right = ""] = names.map(encodeURIComponent);
  const answer = useAnswer<LineageDiff>(`/v1/lineage/${left}/against/${right}`);
  return (
    <Answered answer={answer}>
      {(data) => (
        <>
          <div class="columns">
            <Side title="Left" head={data.left} />
            <Side title="Right" head={data.right} />
          </div>
          <p>{parted(data)}</p>
          <Differences data={data} />
        </>
      )}
    </Answered>
  );
}

function Side({ title, head }: { title: string; head: LineageHead }) {
  return (
    <section class="panel" aria-label={title}>
      <h2>{title}</h2>
      <dl class="facts">
        <dt>Session</dt>
        <dd class="mono">
          <a href={href(["lineage", head.session_id])}>{head.session_id}</a>
        </dd>
        <dt>Workflow</dt>
        <dd>{visible(head.workflow)}</dd>
        <dt>Status</dt>
        <dd>
          <Status status={head.status} error={head.error} />
          {head.duration_ms !== undefined && ` after ${duration(head.duration_ms)}`}
        </dd>
      </dl>
    </section>
  );
}

function parted({ parting }: LineageDiff): string {
  if (!parting) return "All calls are the same.";
  const { left, right, subjects } = parting;
  if (subjects?.length) {
    return `They part at ${visible(left ?? "")}: ${subjects.join(", ").toLowerCase()} differ.`;
  }
  return `They part where left has ${visible(left || "no further call")} and right ${visible(right || "no further call")}.`;
}

function Differences({ data }: { data: LineageDiff }) {
  const rows = data.differences ?? [];
  return (
    <Table
      title="Differences"
      columns={["Subject", "Call", "At", "Left", "Right"]}
      words={5}
      empty={rows.length === 0 && "They differ in nothing that is compared (ids and times are not)."}
    >
      {rows.map((row) => (
        <tr key={`${row.subject} ${row.call} ${row.at}`}>
          <th scope="row">{row.subject.toLowerCase()}</th>
          <td>{visible(row.call ?? "")}</td>
          <td class="mono">{visible(row.at ?? "")}</td>
          <Text of={row.left} />
          <Text of={row.right} />
        </tr>
      ))}
    </Table>
  );
}

function Text({ of }: { of: string | null }) {
  if (of === null) return <td class="muted">absent</td>;
  return <td class="mono isolated">{visible(of)}</td>;
}
