// Is it well, and if not, where? The four golden signals with their trend, then workflows and
// components, each a way down. Refreshes itself while somebody looks.
import { useState } from "preact/hooks";
import { count, decimal, duration, moment, percent } from "../figures";
import { TimeChart } from "../parts/chart";
import { Figure } from "../parts/figure";
import { ComponentTable, WorkflowTable } from "../parts/tables";
import { refreshMs, WindowChoice, windowOf, windowValue } from "../parts/window";
import type { OverviewAnswer } from "../shapes";
import { useAnswer } from "../shell/answer";
import { href } from "../shell/location";
import type { PageProps } from "../shell/routes";
import { Answered, Nothing } from "../shell/states";

export function Overview({ query }: PageProps) {
  const windowMs = windowOf(query);
  const [isLive, setLive] = useState(true);
  const answer = useAnswer<OverviewAnswer>(`/v1/dashboard/overview?window_ms=${windowMs}`, {
    everyMs: isLive ? refreshMs(windowMs) : 0,
  });
  return (
    <>
      <div class="lead">
        <WindowChoice path={[]} query={query} />
        <label class="row small muted">
          <input
            type="checkbox"
            checked={isLive}
            onChange={(event) => setLive(event.currentTarget.checked)}
          />
          Live{answer.data && `, as of ${moment(answer.data.to)}`}
        </label>
      </div>
      <Answered answer={answer}>
        {(data) => <Seen data={data} window={windowValue(windowMs)} />}
      </Answered>
    </>
  );
}

function Seen({ data, window }: { data: OverviewAnswer; window: number | undefined }) {
  if (data.totals.opened === 0 && data.workflows.length === 0 && data.series.length === 0) {
    return (
      <Nothing title="No session in this time">
        Choose a longer time above, or open one: <code>acp run WORKFLOW --input JSON</code>. It shows
        here once it has ended.
      </Nothing>
    );
  }
  return (
    <>
      <Signals data={data} window={window} />
      <Trends data={data} />
      <WorkflowTable rows={data.workflows} window={window} />
      <ComponentTable rows={data.components} window={window} />
    </>
  );
}

function Signals({ data, window }: { data: OverviewAnswer; window: number | undefined }) {
  const { signals, totals } = data;
  const worst = signals.worst_fallback;
  const variance = signals.contribution_variance;
  const span = data.to - data.from;
  const failed = href(["sessions"], { status: "FAILED", since: data.to - span });
  return (
    <section class="figures" aria-label="Golden signals">
      <Figure name="Success" value={known(signals.success_rate, percent)}>
        {count(totals.succeeded)} succeeded, <a href={failed}>{count(totals.failed)} failed</a>,{" "}
        {count(totals.cancelled)} cancelled
      </Figure>
      <Figure name="Duration, p95" value={known(signals.p95_ms, duration)}>
        {count(totals.opened)} opened, from opening to end
      </Figure>
      <Figure name="Worst fallback rate" value={known(worst?.rate, percent)} absent="none fell back">
        {worst ? (
          <a href={href(["components", worst.component], { window })}>{worst.component}</a>
        ) : (
          <>{count(totals.fell_back)} sessions fell back</>
        )}
      </Figure>
      <Figure
        name="Contribution variance"
        value={known(variance?.value, decimal)}
        absent="not computed"
      >
        {variance?.reason ??
          (variance?.computed_at === undefined ? "" : `computed ${moment(variance.computed_at)}`)}
      </Figure>
    </section>
  );
}

function Trends({ data }: { data: OverviewAnswer }) {
  const at = data.series.map((one) => one.at);
  return (
    <div class="columns">
      <section class="panel" aria-label="Outcomes over time">
        <h2>Sessions ended</h2>
        <TimeChart
          title="Sessions ended over time"
          at={at}
          format={count}
          series={[
            { name: "succeeded", tone: 1, values: data.series.map((one) => one.succeeded) },
            { name: "failed", tone: 2, dashed: true, values: data.series.map((one) => one.failed) },
          ]}
        />
      </section>
      <section class="panel" aria-label="Duration over time">
        <h2>Duration</h2>
        <TimeChart
          title="Duration over time"
          at={at}
          format={duration}
          series={[
            { name: "p95", tone: 1, values: data.series.map((one) => one.p95_ms) },
            { name: "p50", tone: 3, dashed: true, values: data.series.map((one) => one.p50_ms) },
          ]}
        />
      </section>
    </div>
  );
}

function known(value: number | undefined, format: (value: number) => string): string | undefined {
  return value === undefined ? undefined : format(value);
}
