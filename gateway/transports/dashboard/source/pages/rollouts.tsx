// Every rollout: where it stands, what its stage still waits for, the evidence of each metric now,
// and what was known when it left each stage before.
import { ABSENT, count, decimal, duration, moment, percent, visible, words } from "../figures";
import type { RolloutView, StageReport, Verdict } from "../operate_shapes";
import { useAnswer } from "../shell/answer";
import { href } from "../shell/location";
import type { PageProps } from "../shell/routes";
import { Answered, Nothing } from "../shell/states";

const EVERY_MS = 5_000;
const STAGES = ["CANARY", "SHADOW", "CONTROLLED", "FULL"];

export function Rollouts(_: PageProps) {
  const answer = useAnswer<{ rollouts?: RolloutView[] }>("/v1/rollouts", { everyMs: EVERY_MS });
  return (
    <Answered answer={answer}>
      {({ rollouts = [] }) =>
        rollouts.length === 0 ? (
          <Nothing title="No rollout yet">
            A new version is tried on little traffic first: <code>acp rollout start FILE</code>.
          </Nothing>
        ) : (
          <>
            {[...rollouts].reverse().map((one) => (
              <Rollout key={one.rollout_id} one={one} />
            ))}
          </>
        )
      }
    </Answered>
  );
}

const TONES: Record<string, string> = {
  RUNNING: "accent plain",
  PAUSED: "warn",
  ROLLED_BACK: "bad",
  COMPLETED: "good",
};

function Rollout({ one }: { one: RolloutView }) {
  const { subject } = one;
  const from = subject.baseline ? `${subject.baseline} → ` : "";
  return (
    <section class="panel rollout" aria-label={`Rollout ${one.rollout_id}`}>
      <div class="panel-head">
        <h2>{`${subject.name} ${from}${subject.candidate}`}</h2>
        <span class={`mark ${TONES[one.status] ?? "muted"}`}>{words(one.status)}</span>
        <span class="small muted">
          {one.rollout_id}, begun {moment(Date.parse(one.started_at))}
        </span>
      </div>
      <Stages one={one} />
      <p>
        {visible(one.reason)}
        <span class="muted small">
          {" "}
          {moment(Date.parse(one.changed_at))}
          {one.by ? `, by ${visible(one.by)}` : ""}
        </span>
      </p>
      {(one.waits_for ?? []).length > 0 && (
        <p class="small">
          <span class="muted">Waits for</span> {visible((one.waits_for ?? []).join("; "))}
        </p>
      )}
      <p class="small muted">
        {[
          `${percent(one.share)} of the sessions`,
          `${count(one.candidates)} of the candidate, ${count(one.baselines)} of the baseline`,
          `watched ${duration(one.observed_ms)}`,
          one.uncovered ? `${count(one.uncovered)} uncovered` : "",
          one.dropped ? `${count(one.dropped)} dropped` : "",
          one.deviated ? `${count(one.deviated)} served by something else` : "",
        ]
          .filter(Boolean)
          .join(" · ")}
      </p>
      <Verdicts title={`Evidence in ${one.stage.toLowerCase()}`} rows={one.verdicts ?? []} />
      {(one.examples ?? []).length > 0 && (
        <p class="small">
          <span class="muted">To look at:</span>{" "}
          {(one.examples ?? []).map((pair) => (
            <span key={pair.twin}>
              {pair.what.toLowerCase()}{" "}
              <a href={href(["sessions", pair.primary])}>{pair.primary}</a>{" "}
            </span>
          ))}
        </p>
      )}
      {[...(one.history ?? [])].reverse().map((left) => (
        <Left key={`${left.stage} ${left.left_at_ms}`} left={left} />
      ))}
    </section>
  );
}

function Stages({ one }: { one: RolloutView }) {
  const at = STAGES.indexOf(one.stage);
  return (
    <ol class="stages" aria-label="Stages">
      {STAGES.map((stage, place) => (
        <li
          key={stage}
          class={place < at || one.status === "COMPLETED" ? "past" : ""}
          aria-current={place === at ? "step" : undefined}
        >
          {stage.toLowerCase()}
        </li>
      ))}
    </ol>
  );
}

function Left({ left }: { left: StageReport }) {
  return (
    <details>
      <summary class="small">
        {left.stage.toLowerCase()} until {moment(left.left_at_ms)}: {visible(left.why ?? "")}
        {left.by ? `, by ${visible(left.by)}` : ""} ({count(left.candidates)} of the candidate in{" "}
        {duration(left.observed_ms)})
      </summary>
      <Verdicts title={`Evidence in ${left.stage.toLowerCase()}, when it was left`} rows={left.verdicts} />
    </details>
  );
}

const OUTCOMES: Record<string, { tone: string; says: string }> = {
  FINE: { tone: "good", says: "not worse" },
  WORSE: { tone: "bad", says: "worse" },
  OPEN: { tone: "muted plain", says: "open" },
};

function Verdicts({ title, rows }: { title: string; rows: Verdict[] }) {
  if (rows.length === 0) return <p class="small muted">{title}: nothing is known yet.</p>;
  return (
    <div class="scroll" tabIndex={0} role="group" aria-label={title}>
      <table>
        <caption class="small muted">{title}</caption>
        <thead>
          <tr>
            <th scope="col">Metric</th>
            <th scope="col">Verdict</th>
            <th scope="col" class="number">Baseline</th>
            <th scope="col" class="number">Candidate</th>
            <th scope="col" class="number">Limit</th>
            <th scope="col" class="number">Sessions</th>
          </tr>
        </thead>
        <tbody>
          {rows.map((one) => (
            <VerdictRow key={one.metric} one={one} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

function VerdictRow({ one }: { one: Verdict }) {
  const outcome = OUTCOMES[one.outcome] ?? { tone: "muted", says: one.outcome };
  return (
    <tr>
      <th scope="row" title={one.test}>
        {one.metric}
        {one.prove ? <span class="small muted"> to be proven</span> : null}
      </th>
      <td>
        <span class={`mark ${outcome.tone}`}>{outcome.says}</span>
        {one.strained && <span class="tag warn">beyond its limit</span>}
      </td>
      <td class="number">{within(one.metric, one.baseline, one.baseline_interval, one.baseline_samples)}</td>
      <td class="number">{within(one.metric, one.candidate, one.candidate_interval, one.candidate_samples)}</td>
      <td class="number">{one.baseline_samples ? figure(one.metric, one.limit) : ABSENT}</td>
      <td class="number">{`${count(one.baseline_samples)} / ${count(one.candidate_samples)}`}</td>
    </tr>
  );
}

/** A figure with what it is within; latencies are milliseconds, rewards plain, the rest shares. */
function within(metric: string, value: number, span: { low: number; high: number }, samples: number): string {
  if (samples === 0) return ABSENT;
  // what is not bounded comes as null
  const high = Number.isFinite(span.high) ? figure(metric, span.high) : "∞";
  const low = Number.isFinite(span.low) ? figure(metric, span.low) : "−∞";
  return `${figure(metric, value)} (${low} to ${high})`;
}

function figure(metric: string, value: number): string {
  if (metric === "latency") return duration(value);
  return metric === "reward" ? decimal(value) : percent(value);
}
