// Is it well, and if not, where? What holds now, the four golden signals with their trend, then
// workflows and components, each a way down. Refreshes itself while somebody looks.
import { useState } from "preact/hooks";
import { bytes, count, decimal, duration, moment, percent } from "../figures";
import { Figure, known } from "../parts/figure";
import { ComponentTable, WorkflowTable, type Window } from "../parts/tables";
import { Trends } from "../parts/trends";
import { refreshMs, WindowChoice, windowOf, windowValue } from "../parts/window";
import type { LiveAnswer, OverviewAnswer, Standing } from "../shapes";
import { useAnswer } from "../shell/answer";
import { href } from "../shell/location";
import type { PageProps } from "../shell/routes";
import { Answered, Nothing } from "../shell/states";

export function Overview({ query }: PageProps) {
  const windowMs = windowOf(query);
  const [isLive, setLive] = useState(true);
  const everyMs = isLive ? refreshMs(windowMs) : 0;
  const live = useAnswer<LiveAnswer>("/v1/dashboard/live", { everyMs: isLive ? 5_000 : 0 });
  const answer = useAnswer<OverviewAnswer>(`/v1/dashboard/overview?window_ms=${windowMs}`, {
    everyMs,
  });
  const window = windowValue(windowMs);
  return (
    <>
      <div class="lead">
        <WindowChoice path={[]} query={query} />
        {live.data && <Now live={live.data} />}
        <label class="row small muted push">
          <input
            type="checkbox"
            checked={isLive}
            onChange={(event) => setLive(event.currentTarget.checked)}
          />
          Live{answer.data && `, as of ${moment(answer.data.to)}`}
        </label>
      </div>
      <Answered answer={answer}>
        {(data) => <Seen data={data} standing={live.data?.components} window={window} />}
      </Answered>
    </>
  );
}

function Now({ live }: { live: LiveAnswer }) {
  const { open, records } = live;
  const more = open.is_all ? "" : "+";
  return (
    <p class="row small muted" role="group" aria-label="Now">
      <a href={href(["sessions"], { status: "RUNNING" })}>
        {count(open.running)}
        {more} running
      </a>
      <a href={href(["sessions"], { status: "WAITING" })}>
        {count(open.waiting)}
        {more} waiting
      </a>
      <span>
        records {records.state.toLowerCase()}
        {(records.lag_bytes ?? 0) > 0 && `, ${bytes(records.lag_bytes ?? 0)} behind`}
      </span>
      {records.problem && <span class="warn">{records.problem}</span>}
    </p>
  );
}

interface SeenProps {
  data: OverviewAnswer;
  standing: Standing[] | undefined;
  window: Window;
}

function Seen({ data, standing, window }: SeenProps) {
  const workflows = data.workflows ?? [];
  const components = data.components ?? [];
  if (data.totals.opened === 0 && workflows.length === 0) {
    return (
      <>
        <Nothing title="No session in this time">
          Choose a longer time above, or open one: <code>acp run WORKFLOW --input JSON</code>. It
          shows here once it has ended.
        </Nothing>
        {standing && <ComponentTable rows={[]} standing={standing} window={window} />}
      </>
    );
  }
  return (
    <>
      <Signals data={data} window={window} />
      <Trends from={data.from} to={data.to} stepMs={data.step_ms} points={data.series ?? []} />
      <WorkflowTable rows={workflows} window={window} />
      <ComponentTable rows={components} standing={standing} window={window} />
    </>
  );
}

function Signals({ data, window }: { data: OverviewAnswer; window: Window }) {
  const { signals, totals } = data;
  const worst = signals.worst_fallback;
  const variance = signals.contribution_variance;
  const listed = (filter: Record<string, string>): string =>
    href(["sessions"], { ...filter, since: data.from });
  return (
    <section class="figures" aria-label="Golden signals">
      <Figure name="Success" value={known(signals.success_rate, percent)}>
        {count(totals.succeeded)} succeeded,{" "}
        <a href={listed({ status: "FAILED" })}>{count(totals.failed)} failed</a>,{" "}
        {count(totals.cancelled)} cancelled
      </Figure>
      <Figure name="Duration, p95" value={known(signals.p95_ms, duration)}>
        {count(totals.opened)} opened,{" "}
        <a href={listed({ review: "WAITING" })}>{count(totals.in_review)} wait for review</a>
      </Figure>
      <Figure
        name="Worst fallback rate"
        value={worst && worst.fallbacks > 0 ? percent(worst.rate) : undefined}
        absent="none fell back"
      >
        {worst && worst.fallbacks > 0 ? (
          <>
            <a href={href(["components", worst.component], { window })}>{worst.component}</a>:{" "}
            {count(worst.fallbacks)} of {count(worst.sessions)} sessions
          </>
        ) : (
          <>{count(totals.fell_back)} sessions fell back</>
        )}
      </Figure>
      <Figure
        name="Contribution variance"
        value={known(variance?.value, decimal)}
        absent="not computed"
      >
        {variance ? (
          <>
            <a href={href(["workflows", variance.workflow], { window })}>{variance.workflow}</a>:{" "}
            {variance.reason || computed(variance.computed_at)}
          </>
        ) : (
          "of the busiest workflow, once one has ended"
        )}
      </Figure>
    </section>
  );
}

function computed(atMs: number | undefined): string {
  return atMs === undefined ? "being computed" : `computed ${moment(atMs)}`;
}
