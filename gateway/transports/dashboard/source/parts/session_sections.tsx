// What a session was made of and what was said of it: plans, claims, feedback, rewards, gaps. Each
// section stands only where there is something in it.
import { ABSENT, decimal, moment, percent, words } from "../figures";
import type { Quality, Rewards, SessionAnswer } from "../session_shapes";
import { Payload, Said } from "./payload";
import { VERDICTS } from "./status";
import { Table } from "./tables";

export function Plans({ data }: { data: SessionAnswer }) {
  const plans = data.plans ?? [];
  if (plans.length === 0) return null;
  return (
    <section class="panel" aria-label="Plans">
      <h2>Plans</h2>
      {plans.map((one) => (
        <div key={`${one.step} ${one.generation} ${one.call_id}`}>
          <p>
            {one.step}, generation {one.generation}
            {one.confidence !== undefined && (
              <span class="muted">, confidence {percent(one.confidence)}</span>
            )}
          </p>
          {one.rationale && (
            <p class="muted">
              <Said text={one.rationale} />
            </p>
          )}
          <Payload name={`Plan ${one.generation} of ${one.step}`} payload={one.plan} />
        </div>
      ))}
    </section>
  );
}

export function Claims({ data }: { data: SessionAnswer }) {
  const claims = data.claims ?? [];
  if (claims.length === 0) return null;
  return (
    <Table title="Claims" columns={["Claim", "Verdict", "Sources"]} words={3} wraps>
      {claims.map((one, at) => (
        <tr key={at}>
          <td>
            <Said text={one.text} />
          </td>
          <td>
            {one.verdict ? (
              <span class={`mark ${VERDICTS[one.verdict] ?? "muted"}`}>{words(one.verdict)}</span>
            ) : (
              <span class="muted">not looked at</span>
            )}
            {one.reason && <p class="small muted">{one.reason}</p>}
          </td>
          <td>
            {(one.sources ?? []).map((source) => (
              <p key={source}>
                <code>{source}</code>
                {(one.missing ?? []).includes(source) && <span class="tag bad">leads nowhere</span>}
              </p>
            ))}
          </td>
        </tr>
      ))}
    </Table>
  );
}

export function FeedbackGiven({ data }: { data: SessionAnswer }) {
  const given = data.feedback ?? [];
  if (given.length === 0) return null;
  return (
    <Table title="Feedback" columns={["Kind", "Score", "Comment", "Of", "By", "Given"]} words={6} wraps>
      {given.map((one) => (
        <tr key={one.feedback_id}>
          <th scope="row">{one.kind.toLowerCase()}</th>
          <td>{decimal(one.score)}</td>
          <td>{one.comment ? <Said text={one.comment} /> : ABSENT}</td>
          <td>{one.call_id ? <code>{one.call_id}</code> : one.step || "the session"}</td>
          <td>
            {one.author || ABSENT}
            {one.recorded_by ? <span class="muted"> by {one.recorded_by}</span> : null}
          </td>
          <td class="nowrap">{moment(one.given_at ?? one.received_at)}</td>
        </tr>
      ))}
    </Table>
  );
}

/** Raw rewards, and shaped beside them where there are rules. A quality that is null says why. */
export function RewardsGiven({ rewards }: { rewards: Rewards | undefined }) {
  const quality = rewards?.quality ?? [];
  const vector = rewards?.vector;
  if (quality.length === 0 && !vector) return null;
  return (
    <Table
      title="Rewards"
      columns={["Of", "Quality", "Operational", "Shaped"]}
      beside={
        vector && (
          <p class="small muted">
            rules {vector.rules.name}@{vector.rules.version}, as of {moment(Date.parse(vector.as_of))}
          </p>
        )
      }
    >
      {quality.map((one, at) => (
        <RewardRow key={`said ${at}`} of={one.name || "quality"} from={one.source} quality={one} />
      ))}
      {(vector?.step ?? []).map((one, at) => (
        <RewardRow
          key={`step ${at}`}
          of={`step ${one.step}`}
          from={one.component && `${one.component}@${one.component_version ?? ""}`}
          quality={one.quality}
          operational={one.operational ?? 0}
          shaped={one.shaped ?? 0}
        />
      ))}
      {vector && <RewardRow of="session" quality={vector.session.quality} operational={vector.session.operational ?? 0} />}
      {vector && <RewardRow of="long term" quality={vector.long_term.quality} operational={vector.long_term.operational ?? 0} />}
    </Table>
  );
}

interface RewardRowProps {
  of: string;
  from?: string | undefined;
  quality: Quality;
  operational?: number;
  shaped?: number;
}

function RewardRow({ of, from, quality, operational, shaped }: RewardRowProps) {
  const isKnown = quality.value !== undefined && quality.value !== null;
  return (
    <tr>
      <th scope="row">
        {of} {from && <span class="muted">{from}</span>}
      </th>
      <td class="number">
        {isKnown ? decimal(quality.value ?? undefined) : <NotJudged quality={quality} />}
      </td>
      <td class="number">{decimal(operational)}</td>
      <td class="number">{decimal(shaped)}</td>
    </tr>
  );
}

function NotJudged({ quality }: { quality: Quality }) {
  return (
    <span class="muted">
      {words(quality.validity ?? "NOT_JUDGED")}
      {quality.reason && `: ${quality.reason}`}
    </span>
  );
}

export function Deviations({ data }: { data: SessionAnswer }) {
  const rows = data.deviations ?? [];
  if (rows.length === 0) return null;
  return (
    <Table title="Served otherwise than intended" columns={["Step", "Intended", "Served", "Why"]} words={4} wraps>
      {rows.map((one, at) => (
        <tr key={at}>
          <th scope="row">{one.step || one.role.toLowerCase()}</th>
          <td>{one.intended}</td>
          <td>{one.served}</td>
          <td>{one.reason || ABSENT}</td>
        </tr>
      ))}
    </Table>
  );
}

export function Gaps({ data }: { data: SessionAnswer }) {
  const gaps = data.gaps ?? [];
  if (gaps.length === 0) return null;
  return (
    <section class="panel" aria-label="What is not known">
      <h2>What is not known</h2>
      <ul>
        {gaps.map((one, at) => (
          <li key={at}>
            {one.what}: <span class="muted">{one.why}</span>
          </li>
        ))}
      </ul>
    </section>
  );
}
