// One session: what came in and out, every step, call, attempt and decision over time, and what was
// said of it. A running one follows its events.
import type { ComponentChildren } from "preact";
import { ABSENT, count, decimal, duration, exactly, moment } from "../figures";
import { Payload, Said } from "../parts/payload";
import {
  Claims,
  Deviations,
  FeedbackGiven,
  Gaps,
  Plans,
  RewardsGiven,
} from "../parts/session_sections";
import { ReviewTag, Status } from "../parts/status";
import { Timeline } from "../parts/timeline";
import type { SessionAnswer } from "../session_shapes";
import { useAnswer } from "../shell/answer";
import { useSessionEvents } from "../shell/events";
import { href } from "../shell/location";
import type { PageProps } from "../shell/routes";
import { Answered } from "../shell/states";

export function SessionPage({ names }: PageProps) {
  const id = names[0] ?? "";
  const answer = useAnswer<SessionAnswer>(`/v1/dashboard/sessions/${encodeURIComponent(id)}`);
  useSessionEvents(id, answer.data?.is_open === true, answer.again);
  return <Answered answer={answer}>{(data) => <Seen data={data} />}</Answered>;
}

function Seen({ data }: { data: SessionAnswer }) {
  return (
    <>
      <Head data={data} />
      {data.error && (
        <section class="panel fault" aria-label="Error">
          <h2>
            <code>{data.error.reason}</code>
          </h2>
          <p>
            <Said text={data.error.message} />
          </p>
        </section>
      )}
      <Timeline
        entries={data.timeline ?? []}
        openedMs={data.opened_at}
        endMs={data.ended_at ?? Date.now()}
      />
      <div class="columns">
        <section class="panel" aria-label="Input and output">
          <h2>Input and output</h2>
          <Payload name="Input" payload={data.input} />
          <Payload name="Output" payload={data.output} />
          {!data.output && <p class="muted small">{data.is_open ? "No output yet." : "No output."}</p>}
        </section>
        <Plans data={data} />
        <Gaps data={data} />
      </div>
      <Claims data={data} />
      <FeedbackGiven data={data} />
      <RewardsGiven rewards={data.rewards} />
      <Deviations data={data} />
    </>
  );
}

function Head({ data }: { data: SessionAnswer }) {
  const labels = Object.entries(data.labels ?? {});
  return (
    <section class="panel" aria-label="Session">
      <p class="row lead-line">
        <Status status={data.status ?? ""} />
        {data.is_open && (
          <span class="tag accent" role="status">
            live: follows its events
          </span>
        )}
        {data.fell_back && (
          <span class="tag warn">
            fell back{data.fallback_rule && `: rule ${data.fallback_rule}`}
          </span>
        )}
        <ReviewTag review={data.review} />
        {(data.rollouts ?? []).map((one) => (
          <span key={one} class="tag">
            rollout {one}
          </span>
        ))}
        {labels.map(([name, value]) => (
          <span key={name} class="tag">
            <Said text={`${name}: ${value}`} />
          </span>
        ))}
      </p>
      <dl class="head-facts">
        <Fact name="Workflow">
          <a href={href(["workflows", data.workflow ?? ""])}>{data.workflow}</a>{" "}
          <span class="muted">{data.version}</span>
        </Fact>
        <Fact name="Opened">
          {data.opened_at === undefined ? (
            ABSENT
          ) : (
            <time dateTime={exactly(data.opened_at)} title={exactly(data.opened_at)}>
              {moment(data.opened_at)}
            </time>
          )}
        </Fact>
        <Fact name="Duration">{data.is_open ? "not over" : duration(data.duration_ms)}</Fact>
        <Fact name="Attempts">{count(data.attempts ?? 0)}</Fact>
        <Fact name="Quality">
          {data.quality === undefined ? <span class="muted">nobody judged</span> : decimal(data.quality)}
        </Fact>
        <Fact name="Lineage">
          {data.lineage_id ? (
            <a class="mono" href={href(["lineage", data.lineage_id])}>
              {data.lineage_id}
            </a>
          ) : (
            ABSENT
          )}
        </Fact>
      </dl>
    </section>
  );
}

function Fact({ name, children }: { name: string; children: ComponentChildren }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}
