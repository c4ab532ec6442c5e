// One run: what was meant to serve and what did, its calls, where its logs and its trace lie, what
// was said of it. A trace's or a call's id leads to its runs.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { ABSENT, duration, moment, visible } from "../figures";
import { Table } from "../parts/tables";
import type { LineageAttempt, LineageCall, LineageRun } from "../shapes_lineage";
import { useAnswer } from "../shell/answer";
import { goTo, href } from "../shell/location";
import type { PageProps } from "../shell/routes";
import { Answered } from "../shell/states";
import { isRun, Runs, Status } from "./lineage";

const REFRESH_MS = 5_000;

export function LineageOf({ names }: PageProps) {
  const id = names[0] ?? "";
  return isRun(id) ? <Run id={id} /> : <Runs asked={{ id }} />;
}

function Run({ id }: { id: string }) {
  const [isOver, setOver] = useState(false);
  const answer = useAnswer<LineageRun>(`/v1/lineage/${encodeURIComponent(id)}/run`, {
    everyMs: isOver ? 0 : REFRESH_MS,
  });
  if (answer.data?.head.ended_at && !isOver) setOver(true);
  return (
    <Answered answer={answer}>
      {(run) => (
        <>
          <Head run={run} />
          <Against id={run.head.session_id} />
          <Work run={run} />
          <Calls calls={run.calls ?? []} />
          <Judged run={run} />
        </>
      )}
    </Answered>
  );
}

function Head({ run }: { run: LineageRun }) {
  const { head, trace, logs } = run;
  const input = head.input_sha256 ?? "";
  return (
    <section class="panel" aria-label="The run">
      <dl class="facts">
        <dt>Status</dt>
        <dd>
          <Status status={head.status} error={head.error} />
          {head.fell_back && ", fell back"}
          {head.duration_ms !== undefined && ` after ${duration(head.duration_ms)}`}
        </dd>
        <dt>Opened</dt>
        <dd>{moment(Date.parse(head.opened_at))}</dd>
        <dt>Session</dt>
        <dd>
          <a href={href(["sessions", head.session_id])}>its timeline and payloads</a>
        </dd>
        <dt>Lineage</dt>
        <dd class="mono">{head.lineage_id}</dd>
        <dt>Workflow</dt>
        <dd>
          <a href={href(["lineage"], { workflow: head.workflow })}>{visible(head.workflow)}</a>{" "}
          <span class="mono muted">{head.workflow_sha256}</span>
        </dd>
        <dt>Input</dt>
        <dd class="mono">
          <a href={href(["lineage"], { input_sha256: input })}>{input}</a>
        </dd>
        {Object.entries(run.policies ?? {}).map(([name, policy]) => (
          <Fact key={name} name={`Policy: ${visible(name)}`}>
            <a class="mono" href={href(["lineage"], { policy })}>
              {visible(policy)}
            </a>
          </Fact>
        ))}
        {(run.rollouts ?? []).map((one) => (
          <Fact key={one.rollout} name="Rollout">
            {visible(`${one.rollout} ${one.stage} ${one.arm}`)}
          </Fact>
        ))}
        <dt>Trace</dt>
        <dd class="mono">
          {trace?.url ? (
            <a href={trace.url} rel="noreferrer" target="_blank">
              {trace.trace_id}
            </a>
          ) : (
            (trace?.trace_id ?? "none")
          )}
          {trace?.trace_id && !trace.is_recorded && <span class="muted"> (not recorded)</span>}
        </dd>
        <dt>Logs</dt>
        <dd>
          <code>{logs.filter}</code>
          {logs.url && (
            <>
              {" "}
              <a href={logs.url} rel="noreferrer" target="_blank">
                open the logs
              </a>
            </>
          )}
        </dd>
      </dl>
    </section>
  );
}

function Fact({ name, children }: { name: string; children: ComponentChildren }) {
  return (
    <>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </>
  );
}

function Against({ id }: { id: string }) {
  const [other, setOther] = useState("");
  return (
    <form
      class="filters panel"
      aria-label="Another run"
      onSubmit={(event) => {
        event.preventDefault();
        if (other.trim()) goTo(href(["lineage", id, "against", other.trim()]));
      }}
    >
      <label>
        Hold against another run
        <input
          required
          value={other}
          placeholder="session or lineage id"
          autocomplete="off"
          spellcheck={false}
          onInput={(event) => setOther(event.currentTarget.value)}
        />
      </label>
      <button type="submit">Compare</button>
    </form>
  );
}

function Work({ run }: { run: LineageRun }) {
  const rows = run.work ?? [];
  return (
    <Table
      title="Versions"
      columns={["Step or action", "Intended", "Served"]}
      words={3}
      empty={rows.length === 0 && "Nothing was pinned and nothing was called."}
    >
      {rows.map((row) => {
        const served = row.served ?? [];
        const isOther = served.length > 0 && (served.length > 1 || served[0] !== row.intended);
        return (
          <tr key={row.work}>
            <th scope="row">{visible(row.work)}</th>
            <td>{row.intended ? <Pin pin={row.intended} /> : "nobody"}</td>
            <td>
              {served.map((pin, at) => (
                <span key={pin}>
                  {at > 0 && ", "}
                  <Pin pin={pin} />
                </span>
              ))}
              {served.length === 0 && <span class="muted">not called</span>}
              {isOther && <span class="tag warn">another than intended</span>}
            </td>
          </tr>
        );
      })}
    </Table>
  );
}

function Pin({ pin }: { pin: string }) {
  return <a href={href(["lineage"], { component: pin })}>{visible(pin)}</a>;
}

function Calls({ calls }: { calls: LineageCall[] }) {
  return (
    <Table
      title="Calls"
      columns={["Step", "Call", "Attempt", "Served by", "Outcome", "Span", "Waited", "Took"]}
      words={6}
      empty={calls.length === 0 && "No call was made."}
    >
      {calls.flatMap((call) =>
        attemptsOf(call).map((attempt) => (
          <tr key={`${call.call_id} ${attempt.attempt}`}>
            <th scope="row">{visible(placeOf(call))}</th>
            <td class="mono">{call.call_id.slice(0, 12)}</td>
            <td>{attempt.attempt || ABSENT}</td>
            <td>{visible(`${attempt.component ?? "nobody"} ${attempt.instance ?? ""}`)}</td>
            <td>
              {call.reused_from
                ? `taken over from ${call.reused_from.slice(0, 12)}`
                : visible(attempt.error ?? "answered")}
            </td>
            <td class="mono">{attempt.span_id}</td>
            <td class="number">{duration(attempt.wait_ms ?? 0)}</td>
            <td class="number">{duration(attempt.service_ms)}</td>
          </tr>
        )),
      )}
    </Table>
  );
}

function attemptsOf(call: LineageCall): LineageAttempt[] {
  return call.attempts?.length ? call.attempts : [{ attempt: 0 }];
}

function placeOf(call: LineageCall): string {
  const loop = call.loop ? ` #${call.loop}` : "";
  const goal = call.sub_goal ? ` for ${call.sub_goal}` : "";
  return `${call.step}${loop} ${call.action || call.role}${goal}`;
}

function Judged({ run }: { run: LineageRun }) {
  const said = run.feedback ?? [];
  const rewards = run.rewards?.quality ?? [];
  return (
    <div class="columns">
      <Table
        title="Feedback"
        columns={["Kind", "Of", "By", "Words", "Score"]}
        words={4}
        empty={said.length === 0 && "Nobody judged this run."}
      >
        {said.map(({ feedback }) => (
          <tr key={feedback.feedback_id}>
            <th scope="row">{feedback.kind.toLowerCase()}</th>
            <td>{visible(feedback.target?.call_id || feedback.target?.step || "session")}</td>
            <td>{visible(feedback.author ?? "")}</td>
            <td class="isolated">{visible(feedback.comment ?? "")}</td>
            <td class="number">{feedback.score ?? ABSENT}</td>
          </tr>
        ))}
      </Table>
      <Table
        title="Rewards"
        columns={["Reward", "Source", "Value"]}
        words={2}
        empty={rewards.length === 0 && "No reward was given."}
      >
        {rewards.map((row) => (
          <tr key={`${row.name} ${row.source} ${row.call_id}`}>
            <th scope="row">{visible(row.name)}</th>
            <td>{visible(row.source ?? "")}</td>
            <td class="number">{row.value ?? visible(`${row.validity ?? ""} ${row.reason ?? ""}`)}</td>
          </tr>
        ))}
      </Table>
    </div>
  );
}
