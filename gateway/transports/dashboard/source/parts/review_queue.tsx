// What waits for a review and why: of the session at hand, and of those that come next.
import { count, decimal, moment, percent } from "../figures";
import type { ReviewItem, ReviewQueue, ReviewView, Why } from "../review_shapes";
import { href } from "../shell/location";
import { Table } from "./tables";

const DOUBTS: Record<string, string> = {
  CLAIMS: "a claim that its sources do not carry",
  DETECTOR: "sentences that no claim covers",
  RATERS: "raters who are far apart",
  QUALITY: "judgements that differ",
  COMMENTS: "a comment that was not understood",
  UNJUDGED: "nobody has judged it",
};

export function WhyThis({ view }: { view: ReviewView }) {
  return (
    <section class="panel" aria-label="Why this one">
      <h2>Why this one</h2>
      <p class="small">
        {view.slice === "UNIFORM"
          ? "Drawn at random, so that rates stay fair: there may be nothing wrong with it."
          : "A person must look: something in it is unclear."}
      </p>
      <dl class="facts small">
        {(view.why ?? []).map((one) => (
          <div key={one.doubt}>
            <dt>{DOUBTS[one.doubt] ?? one.doubt.toLowerCase()}</dt>
            <dd class="number">{decimal(one.amount)}</dd>
          </div>
        ))}
        <div>
          <dt>chance of being put up</dt>
          <dd class="number">{percent(view.sampling_probability)}</dd>
        </div>
      </dl>
    </section>
  );
}

export function Queue({ queue, present }: { queue: ReviewQueue; present: string }) {
  const title = queue.next ? `The queue, its first ${queue.items.length}` : "The queue";
  return (
    <Table
      title={title}
      columns={["Session", "Workflow", "Ended", "Why", "Unclear", "Chance", "State"]}
      words={4}
      empty={queue.items.length === 0 && "No session waits for a review."}
    >
      {queue.items.map((one) => (
        <tr key={one.session_id} aria-current={one.session_id === present ? "true" : undefined}>
          <th scope="row" class="mono">
            <a href={href(["annotate"], { session: one.session_id })}>{one.session_id}</a>
          </th>
          <td>{one.workflow}</td>
          <td class="nowrap">{moment(Date.parse(one.ended_at))}</td>
          <td>{one.slice === "UNIFORM" ? "drawn at random" : largest(one.why ?? [])}</td>
          <td class="number">{decimal(one.unclear)}</td>
          <td class="number">{percent(one.sampling_probability)}</td>
          <td class="number">{stateOf(one, present)}</td>
        </tr>
      ))}
    </Table>
  );
}

function largest(why: Why[]): string {
  const first = why[0];
  return first ? (DOUBTS[first.doubt] ?? first.doubt.toLowerCase()) : "";
}

function stateOf(one: ReviewItem, present: string): string {
  if (one.session_id === present) return "here";
  if (one.held_by) return "with another reviewer";
  if (one.skipped) return "skipped";
  return one.opened ? `${count(one.opened)} opened` : "waits";
}
