// A session as a timeline: each line is a step, a call, an attempt or a decision, with its bars and
// the same in words. Waiting in the gateway is hatched, service at the component is solid.
import { useState } from "preact/hooks";
import { decimal, duration, percent, words } from "../figures";
import type { ShownDecision, TimelineEntry } from "../session_shapes";
import { href } from "../shell/location";
import { Payload, Said } from "./payload";
import { Status } from "./status";
import { linesOf, scaleOf, type Bar, type Line, type Scale } from "./timeline_rows";

interface TimelineProps {
  entries: TimelineEntry[];
  openedMs: number | undefined;
  endMs: number;
}

// More lines than anybody reads at once would only slow the page; the rest is one key away.
const LINES_FIRST = 300;

export function Timeline({ entries, openedMs, endMs }: TimelineProps) {
  const [isAll, setAll] = useState(false);
  const scale = scaleOf(entries, openedMs, endMs);
  const lines = linesOf(entries, scale);
  const shown = isAll ? lines : lines.slice(0, LINES_FIRST);
  return (
    <section class="panel flush" aria-label="Timeline">
      <div class="panel-head">
        <h2>Timeline</h2>
        <p class="legend">
          <span>
            <span class="key wait" /> waiting in the gateway
          </span>
          <span>
            <span class="key service" /> service at the component
          </span>
          <span>
            <span class="key moment" /> decision
          </span>
        </p>
      </div>
      {lines.length === 0 ? (
        <p class="muted">No component was called.</p>
      ) : (
        <>
          <Axis scale={scale} />
          <ol class="timeline">
            {shown.map((line, at) => (
              <Row key={keyOf(line.entry, at)} line={line} scale={scale} />
            ))}
          </ol>
          {shown.length < lines.length && (
            <p>
              <button type="button" onClick={() => setAll(true)}>
                Show all {lines.length} lines
              </button>
            </p>
          )}
        </>
      )}
    </section>
  );
}

function Axis({ scale }: { scale: Scale }) {
  const whole = scale.to - scale.from;
  return (
    <div class="tl-line tl-axis" aria-hidden="true">
      <span class="tl-name" />
      <span class="tl-track">
        {[0, 0.25, 0.5, 0.75, 1].map((share) => (
          <span key={share} class="tl-tick" style={{ left: `${share * 100}%` }}>
            {whole < 10 ? `${decimal(whole * share)} ms` : duration(whole * share)}
          </span>
        ))}
      </span>
      <span class="tl-figures" />
    </div>
  );
}

function Row({ line, scale }: { line: Line; scale: Scale }) {
  const { entry } = line;
  return (
    <li class={`tl-row depth-${entry.depth} ${entry.kind.toLowerCase()}`}>
      <div class="tl-line">
        <div class="tl-name">
          <Name entry={entry} />
        </div>
        <div class="tl-track" aria-hidden="true">
          {line.bars.map((bar) => (
            <span
              key={bar.what}
              class={`bar ${bar.what} ${bar.isOpen ? "open" : ""} ${entry.error ? "failed" : ""}`}
              style={placeOf(bar)}
            />
          ))}
        </div>
        <div class="tl-figures">
          <Figures entry={entry} scale={scale} />
        </div>
      </div>
      <Inside entry={entry} />
    </li>
  );
}

function placeOf({ what, from, length }: Bar): Record<string, string> {
  const left = `${from}%`;
  return what === "moment" ? { left } : { left, width: `${length}%` };
}

function Name({ entry }: { entry: TimelineEntry }) {
  switch (entry.kind) {
    case "STEP":
      return (
        <>
          <strong>{entry.name}</strong> <span class="muted">{(entry.role ?? "").toLowerCase()}</span>
          {(entry.loop ?? 0) > 0 && <span class="tag">loop {entry.loop}</span>}{" "}
          {entry.status && <Status status={entry.status} />}
        </>
      );
    case "CALL":
      return (
        <>
          {entry.name}{" "}
          {entry.component && (
            <a href={href(["components", entry.component])}>
              {entry.component}
              <span class="muted">@{entry.version}</span>
            </a>
          )}{" "}
          {entry.sub_goal && <span class="tag">sub-goal {entry.sub_goal}</span>}
          {entry.is_reused && <span class="tag good">result taken over</span>}
          {entry.status && <Status status={entry.status} />}
        </>
      );
    case "DECISION":
      return entry.decision ? <Decided decision={entry.decision} /> : <>{entry.name}</>;
    case "WAIT":
      return <span class="muted">{entry.name}</span>;
    case "ATTEMPT":
      return <Attempted entry={entry} />;
  }
}

function Attempted({ entry }: { entry: TimelineEntry }) {
  return (
    <>
      {entry.name} {entry.status && <Status status={entry.status} />}{" "}
      {entry.error && <code class="bad">{entry.error.reason}</code>}
      {entry.is_hedge && <span class="tag accent">hedge</span>}
      {entry.is_late && <span class="tag warn">answered late</span>}
      {entry.breaker && entry.breaker.toLowerCase() !== "closed" && (
        <span class="tag warn">breaker {entry.breaker.toLowerCase()}</span>
      )}
      {entry.side_effect === "UNKNOWN" && entry.error && (
        <span class="tag warn">side effect unknown</span>
      )}
    </>
  );
}

function Decided({ decision }: { decision: ShownDecision }) {
  const chosen = decision.options.find((one) => one.option === decision.chosen);
  return (
    <>
      <span class="diamond" aria-hidden="true" /> decided <strong>{words(decision.chosen)}</strong>
      {chosen && ` at ${percent(chosen.probability)}`}
      {(chosen?.wait_ms ?? 0) > 0 && `, after ${duration(chosen?.wait_ms)}`}
      {decision.override && <span class="tag warn">overridden: {decision.override}</span>}
    </>
  );
}

function Figures({ entry, scale }: { entry: TimelineEntry; scale: Scale }) {
  if (entry.kind === "ATTEMPT") {
    const isOpen = entry.to_ms === undefined && entry.from_ms !== undefined;
    const took = isOpen ? scale.to - (entry.from_ms ?? scale.to) : entry.service_ms;
    return (
      <>
        <span>
          waited <b>{duration(entry.wait_ms ?? 0)}</b>
        </span>
        <span>
          served <b>{duration(took)}</b>
          {isOpen && " so far"}
        </span>
      </>
    );
  }
  if (entry.kind === "DECISION") {
    return <span class="muted">at {duration((entry.from_ms ?? scale.from) - scale.from)}</span>;
  }
  if (entry.from_ms === undefined) return null;
  return (
    <span class="muted">
      {entry.to_ms === undefined ? "not over" : duration(entry.to_ms - entry.from_ms)}
    </span>
  );
}

/** What is folded below a line. */
function Inside({ entry }: { entry: TimelineEntry }) {
  if (entry.decision) return <Options decision={entry.decision} />;
  if (!entry.error && !entry.arguments && !entry.output) return null;
  return (
    <div class="tl-inside">
      {entry.error && (
        <p class="small">
          <Said text={entry.error.message} />{" "}
          <span class="muted">
            ({entry.error.code}
            {entry.error.boundary && `, ${entry.error.boundary.toLowerCase()}`})
          </span>
        </p>
      )}
      <Payload name={`Arguments of ${entry.name}`} payload={entry.arguments} />
      <Payload name={`Output of ${entry.name}`} payload={entry.output} />
    </div>
  );
}

function Options({ decision }: { decision: ShownDecision }) {
  return (
    <details class="tl-inside">
      <summary class="small">
        {decision.options.length} options, policy {decision.policy}
        {decision.policy_version && `@${decision.policy_version}`}
        <span class="hidden">: {words(decision.chosen)} was chosen</span>
      </summary>
      <table class="options">
        <thead>
          <tr>
            <th scope="col">Option</th>
            <th scope="col" class="number">
              Probability
            </th>
            <th scope="col" class="number">
              Wait
            </th>
            <th scope="col">Not allowed by</th>
          </tr>
        </thead>
        <tbody>
          {decision.options.map((one) => (
            <tr key={`${one.option} ${one.wait_ms}`} class={one.masked_by ? "masked" : ""}>
              <th scope="row">
                {words(one.option)}
                {one.option === decision.chosen && <span class="tag accent">chosen</span>}
              </th>
              <td class="number">{percent(one.probability)}</td>
              <td class="number">{duration(one.wait_ms)}</td>
              <td>{one.masked_by}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <p class="small muted">
        After {words(decision.trigger)}; drawn {decision.draw}
        {decision.ended_as && `; it ended as ${words(decision.ended_as)}`}.
      </p>
    </details>
  );
}

function keyOf(entry: TimelineEntry, at: number): string {
  const { kind, step, loop, call_id, attempt } = entry;
  const decision = entry.decision?.decision_id;
  return [kind, step, loop, call_id, attempt, decision].join(" ") || String(at);
}
