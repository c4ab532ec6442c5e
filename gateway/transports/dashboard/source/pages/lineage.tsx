// From what runs have in common to the runs: a component's or a workflow's version, a policy, an
// input, a trace or a call. What is asked for stands in the address.
import { useState } from "preact/hooks";
import { count, moment, visible } from "../figures";
import { Table } from "../parts/tables";
import type { LineageMatch, LineageMatches } from "../shapes_lineage";
import { useAnswer } from "../shell/answer";
import { goTo, href } from "../shell/location";
import type { PageProps } from "../shell/routes";
import { Answered, Nothing } from "../shell/states";

const FIELDS: readonly [name: string, label: string, hint: string][] = [
  ["id", "Session, lineage, trace or call", "an id"],
  ["component", "Component", "name or name@version"],
  ["workflow", "Workflow", "name or name@version"],
  ["policy", "Policy", "name@version#digest"],
  ["input_sha256", "Input (SHA-256)", "64 hexadecimal digits"],
  ["since", "Opened since", "2026-11-29"],
  ["until", "Opened before", "2026-11-30"],
];
const SHARED = ["id", "component", "workflow", "policy", "input_sha256"];
const RUN = /^[0-7][0-9A-HJKMNP-TV-Z]{25}(\.[0-9a-f]{12})?$/;

/** Whether an id names one run by itself; a trace's or a call's is looked up. */
export function isRun(id: string): boolean {
  return RUN.test(id);
}

export function Lineage({ query }: PageProps) {
  const asked = Object.fromEntries(FIELDS.map(([name]) => [name, query.get(name) ?? ""]));
  const isAsked = SHARED.some((name) => asked[name]);
  return (
    <>
      <Search key={JSON.stringify(asked)} asked={asked} />
      {isAsked ? (
        <Runs asked={{ ...asked, after: query.get("after") ?? "" }} />
      ) : (
        <Nothing title="What do the runs have in common?">
          Name a component, a workflow, a policy or an input; or the id of a session, a lineage, a
          trace or a call, as log lines and traces have it.
        </Nothing>
      )}
    </>
  );
}

function Search({ asked }: { asked: Record<string, string> }) {
  const [values, setValues] = useState(asked);
  return (
    <form
      class="filters panel"
      aria-label="Runs by what they have in common"
      onSubmit={(event) => {
        event.preventDefault();
        const given = Object.fromEntries(
          Object.entries(values).map(([name, value]) => [name, value.trim()]),
        );
        const id = given["id"] ?? "";
        goTo(isRun(id) ? href(["lineage", id]) : href(["lineage"], given));
      }}
    >
      {FIELDS.map(([name, label, hint]) => (
        <label key={name}>
          {label}
          <input
            name={name}
            value={values[name] ?? ""}
            placeholder={hint}
            autocomplete="off"
            spellcheck={false}
            onInput={(event) => setValues({ ...values, [name]: event.currentTarget.value })}
          />
        </label>
      ))}
      <button type="submit">Find</button>
    </form>
  );
}

/** The runs that have all of it in common; `after` of an earlier page goes on there. */
export function Runs({ asked }: { asked: Record<string, string> }) {
  const query = new URLSearchParams(Object.entries(asked).filter(([, value]) => value));
  const answer = useAnswer<LineageMatches>(`/v1/lineage?${query.toString()}`);
  return (
    <Answered answer={answer}>
      {(data) => (
        <>
          {data.only_memory && (
            <p class="warn" role="status">
              Only sessions in memory were looked at: {data.only_memory}
            </p>
          )}
          {data.open_unseen ? (
            <p class="muted">
              {count(data.open_unseen)} sessions under way are not in memory and were not looked at.
            </p>
          ) : null}
          <RunTable rows={data.sessions} />
          {data.next && (
            <p>
              <a href={href(["lineage"], { ...asked, after: data.next })}>Older runs</a>
            </p>
          )}
        </>
      )}
    </Answered>
  );
}

function RunTable({ rows }: { rows: LineageMatch[] }) {
  return (
    <Table
      title="Runs"
      columns={["Session", "Workflow", "Status", "Opened", "Input", "Served"]}
      words={6}
      empty={rows.length === 0 && "No run has all of this in common."}
    >
      {rows.map((row) => (
        <tr key={row.session_id}>
          <th scope="row" class="mono">
            <a href={href(["lineage", row.session_id])}>{row.session_id}</a>
          </th>
          <td>{visible(row.workflow)}</td>
          <td>
            <Status status={row.status} error={row.error} />
          </td>
          <td class="nowrap">{moment(Date.parse(row.opened_at))}</td>
          <td class="mono">
            {row.input_sha256 && (
              <a
                href={href(["lineage"], { input_sha256: row.input_sha256 })}
                aria-label={`Runs with the input ${row.input_sha256.slice(0, 12)}`}
              >
                {row.input_sha256.slice(0, 12)}
              </a>
            )}
          </td>
          <td>{(row.served ?? []).map(visible).join(", ")}</td>
        </tr>
      ))}
    </Table>
  );
}

const TONES: Record<string, string> = { SUCCEEDED: "good", FAILED: "bad", CANCELLED: "warn" };

export function Status({ status, error }: { status: string; error: string | undefined }) {
  return (
    <span class={`mark ${TONES[status] ?? "plain"}`}>
      {status.toLowerCase()}
      {error && `, ${visible(error)}`}
    </span>
  );
}
