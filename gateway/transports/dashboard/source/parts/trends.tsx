// What ended and how long it took, over time: the two charts of an overview, a workflow, a component.
import { count, duration } from "../figures";
import { TimeChart } from "./chart";
import { everyStep, type Span } from "./steps";

export function Trends(props: Span) {
  const points = everyStep(props);
  const at = points.map((one) => one.at);
  return (
    <div class="columns">
      <section class="panel" aria-label="Outcomes over time">
        <h2>Sessions ended</h2>
        <TimeChart
          title="Sessions ended over time"
          at={at}
          format={count}
          series={[
            { name: "succeeded", tone: 1, values: points.map((one) => one.succeeded ?? 0) },
            { name: "failed", tone: 2, dashed: true, values: points.map((one) => one.failed ?? 0) },
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
            { name: "p95", tone: 1, values: points.map((one) => one.p95_ms) },
            { name: "p50", tone: 3, dashed: true, values: points.map((one) => one.p50_ms) },
          ]}
        />
      </section>
    </div>
  );
}
