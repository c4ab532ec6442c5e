// Which sessions? Filters and place stand in the address, so a link shows the same; pages go by key,
// newest first, so that the hundred-thousandth costs what the first does.
import { useState } from "preact/hooks";
import { ABSENT, count, decimal, duration, exactly, moment, words } from "../figures";
import { ReviewTag, Status } from "../parts/status";
import { Table } from "../parts/tables";
import type { SessionItem, SessionsAnswer } from "../shapes";
import { useAnswer } from "../shell/answer";
import { goTo, href } from "../shell/location";
import type { PageProps } from "../shell/routes";
import { Answered } from "../shell/states";

const PAGE = 50;
const WORDS = ["workflow", "version", "component", "error"] as const;
const STATUSES = ["RUNNING", "WAITING", "SUCCEEDED", "FAILED", "CANCELLED"];
const REVIEWS = ["WAITING", "DONE", "NOT_NEEDED"];
const FILTERS = [...WORDS, "status", "review", "since", "until"] as const;

type Filters = Record<string, string>;

export function Sessions({ query }: PageProps) {
  const given: Filters = {};
  for (const name of FILTERS) {
    const value = query.get(name);
    if (value) given[name] = value;
  }
  const asked = new URLSearchParams({ ...given, limit: String(PAGE) });
  const after = query.get("after");
  if (after) asked.set("after", after);
  const answer = useAnswer<SessionsAnswer>(`/v1/dashboard/sessions?${asked}`);
  return (
    <>
      <FilterForm key={JSON.stringify(given)} given={given} again={answer.again} />
      <Answered answer={answer}>
        {(data) => <Page data={data} given={given} isFirst={!after} />}
      </Answered>
    </>
  );
}

function FilterForm({ given, again }: { given: Filters; again: () => void }) {
  const [values, setValues] = useState<Filters>(given);
  const field = (name: string) => ({
    value: values[name] ?? "",
    onInput: (event: { currentTarget: { value: string } }) =>
      setValues({ ...values, [name]: event.currentTarget.value.trim() }),
  });
  const time = (name: string) => ({
    value: localTime(values[name]),
    onInput: (event: { currentTarget: { value: string } }) =>
      setValues({ ...values, [name]: epochMs(event.currentTarget.value) }),
  });
  return (
    <form
      class="panel filters"
      aria-label="Filters"
      onSubmit={(event) => {
        event.preventDefault();
        const target = href(["sessions"], values);
        if (target === location.hash) again();
        else goTo(target);
      }}
    >
      {WORDS.map((name) => (
        <label key={name}>
          {name[0]?.toUpperCase() + name.slice(1)}
          <input type="text" spellcheck={false} autocomplete="off" {...field(name)} />
        </label>
      ))}
      <Choice name="Status" options={STATUSES} {...field("status")} />
      <Choice name="Review" options={REVIEWS} {...field("review")} />
      <label>
        Opened since
        <input type="datetime-local" step="1" {...time("since")} />
      </label>
      <label>
        Opened until
        <input type="datetime-local" step="1" {...time("until")} />
      </label>
      <div class="row">
        <button type="submit">Show</button>
        {Object.keys(given).length > 0 && <a href={href(["sessions"])}>Clear</a>}
      </div>
    </form>
  );
}

interface ChoiceProps {
  name: string;
  options: string[];
  value: string;
  onInput: (event: { currentTarget: { value: string } }) => void;
}

function Choice({ name, options, value, onInput }: ChoiceProps) {
  return (
    <label>
      {name}
      <select value={value} onInput={onInput}>
        <option value="">any</option>
        {options.map((one) => (
          <option key={one} value={one}>
            {words(one)}
          </option>
        ))}
      </select>
    </label>
  );
}

interface PageOfSessions {
  data: SessionsAnswer;
  given: Filters;
  isFirst: boolean;
}

function Page({ data, given, isFirst }: PageOfSessions) {
  const rows = data.items;
  const isFiltered = Object.keys(given).length > 0;
  const none = data.after
    ? "None so far: older ones are on the next page."
    : isFiltered
      ? "No session passes these filters. Take one away, or clear them."
      : isFirst
        ? "No sessions yet. Open one: acp run WORKFLOW --input JSON."
        : "No older sessions.";
  return (
    <>
      <Table
        title={isFirst ? "Newest first" : "Older"}
        columns={["Session", "Workflow", "Status", "Opened", "Duration", "Attempts", "Quality"]}
        words={4}
        empty={rows.length === 0 && none}
      >
        {rows.map((row) => (
          <Row key={row.session_id} row={row} />
        ))}
      </Table>
      <nav class="row end" aria-label="Pages of sessions">
        {!isFirst && <a href={href(["sessions"], given)}>Newest</a>}
        {data.after && (
          <a href={href(["sessions"], { ...given, after: data.after })} rel="next">
            Older
          </a>
        )}
      </nav>
    </>
  );
}

function Row({ row }: { row: SessionItem }) {
  return (
    <tr>
      <th scope="row" class="mono nowrap">
        <a href={href(["sessions", row.session_id])}>{row.session_id}</a>
      </th>
      <td class="nowrap">
        {row.workflow} <span class="muted">{row.version}</span>
      </td>
      <td class="nowrap">
        <span class="row tight">
          <Status status={row.status} />
          {row.error && <code>{row.error}</code>}
          {row.fell_back && <span class="tag warn">fell back</span>}
          <ReviewTag review={row.review} />
        </span>
      </td>
      <td class="nowrap" title={exactly(row.opened_at)}>
        {moment(row.opened_at)}
      </td>
      <td class="number">{duration(row.duration_ms)}</td>
      <td class="number">{count(row.attempts)}</td>
      <td class="number">{row.quality === undefined ? ABSENT : decimal(row.quality)}</td>
    </tr>
  );
}

/** For `datetime-local`, which has no zone: the reader's own. */
function localTime(ms: string | undefined): string {
  const at = Number(ms);
  if (!ms || !Number.isFinite(at)) return "";
  const shifted = new Date(at - new Date(at).getTimezoneOffset() * 60_000);
  return Number.isNaN(shifted.getTime()) ? "" : shifted.toISOString().slice(0, 19);
}

function epochMs(local: string): string {
  const at = Date.parse(local);
  return Number.isNaN(at) ? "" : String(at);
}
