// One session to review at a time: what it was asked and said, its claims, and their sources, which
// have to be opened before the score can be sent. The gateway keeps what was opened, so a reload, a
// restart or another screen goes on where the reviewer was. Every act has a key.
import { useRef, useState } from "preact/hooks";
import { count, moment, readable, visible } from "../figures";
import { clamp, KeyList, useKeys, type Key } from "../parts/keys";
import { Claims, type ClaimPlace } from "../parts/review_claims";
import { useDesk, type Desk } from "../parts/review_desk";
import { Queue, WhyThis } from "../parts/review_queue";
import { ScoreForm, SCORES } from "../parts/review_score";
import type { ReviewQueue, ReviewView } from "../review_shapes";
import { useAnswer, type Answer } from "../shell/answer";
import { href } from "../shell/location";
import type { PageProps } from "../shell/routes";
import { Answered, Loading, Nothing, Refused } from "../shell/states";

const QUEUE_EVERY_MS = 15_000;

export function Annotate({ query }: PageProps) {
  const queue = useAnswer<ReviewQueue>("/v1/reviews?limit=20", { everyMs: QUEUE_EVERY_MS });
  const desk = useDesk(query.get("session") ?? "", queue.again);
  return (
    <>
      <Lead queue={queue} />
      {desk.refusal && <Refused refusal={desk.refusal} again={desk.again} stale={!!desk.view} />}
      {desk.view ? (
        <Reviewing key={desk.view.session_id} desk={desk} view={desk.view} />
      ) : desk.isAsking ? (
        <Loading />
      ) : (
        !desk.refusal && <NothingLeft waiting={queue.data?.waiting ?? 0} again={desk.again} />
      )}
      <p class="hidden" role="status">
        {desk.said}
      </p>
      <Answered answer={queue}>
        {(data) => <Queue queue={data} present={desk.view?.session_id ?? ""} />}
      </Answered>
    </>
  );
}

function Lead({ queue }: { queue: Answer<ReviewQueue> }) {
  const data = queue.data;
  return (
    <p class="muted">
      {data
        ? `${count(data.waiting)} ${data.waiting === 1 ? "session waits" : "sessions wait"} for a review, ${count(data.uniform)} of them drawn at random.`
        : "The queue is being read."}{" "}
      Press <kbd>?</kbd> for the keys.
    </p>
  );
}

function NothingLeft({ waiting, again }: { waiting: number; again: () => void }) {
  return (
    <Nothing title="Nothing is left for you">
      {waiting > 0
        ? "What waits is with other reviewers, or was scored by you and needs somebody else. "
        : "Every session that was put up has been reviewed. "}
      <button type="button" onClick={again}>
        Look again
      </button>
    </Nothing>
  );
}

function Reviewing({ desk, view }: { desk: Desk; view: ReviewView }) {
  const claims = view.claims ?? [];
  const [at, setAt] = useState<ClaimPlace>(() => firstUnopened(view));
  const [score, setScore] = useState<number | null>(view.score ?? null);
  const [comment, setComment] = useState(view.comment ?? "");
  const [showsKeys, setShowsKeys] = useState(false);
  const words = useRef<HTMLTextAreaElement>(null);
  const isReady = (view.unopened ?? 0) === 0 && score !== null && !desk.isBusy;
  const move = (by: number): void => {
    setAt((now) => ({ claim: clamp(now.claim + by, claims.length), isMoved: true }));
  };
  const openNext = (): void => {
    const next = claims[at.claim]?.sources?.find((one) => !desk.isOpen(at.claim, one));
    if (next) desk.open(at.claim, next.source);
    else move(1);
  };
  const send = (): void => {
    if (isReady && score !== null) desk.score(score, comment);
  };
  const table: Key[] = [
    { keys: ["j", "ArrowDown"], says: "next claim", act: () => move(1) },
    { keys: ["k", "ArrowUp"], says: "previous claim", act: () => move(-1) },
    { keys: ["o", "Enter"], says: "open the claim's next source, then go on", act: openNext },
    ...SCORES.map((one) => ({
      keys: [one.key],
      says: one.says,
      act: () => setScore(one.score),
    })),
    { keys: ["c"], says: "write a comment", act: () => words.current?.focus() },
    { keys: ["Escape"], says: "leave the comment", act: () => words.current?.blur() },
    { keys: ["Enter"], ctrl: true, says: "send the score", act: send },
    { keys: ["x"], says: "skip: it comes back when nothing else is left", act: desk.skip },
    { keys: ["?"], says: "show or hide the keys", act: () => setShowsKeys((now) => !now) },
  ];
  useKeys(table);
  return (
    <div class="review">
      <div class="review-main">
        <Session view={view} />
        <Claims view={view} at={at} pick={(claim) => setAt({ claim, isMoved: false })} open={desk.open} />
        <Uncovered view={view} />
      </div>
      <aside class="review-side" aria-label="Your review">
        <ScoreForm
          view={view}
          desk={desk}
          score={score}
          choose={setScore}
          comment={comment}
          write={setComment}
          words={words}
          isReady={isReady}
          send={send}
        />
        <section class="panel" aria-label="Keys">
          <h2 class="row">
            Keys
            <button type="button" class="quiet small" aria-expanded={showsKeys} onClick={() => setShowsKeys(!showsKeys)}>
              {showsKeys ? "Hide" : "Show"}
            </button>
          </h2>
          {showsKeys && <KeyList table={table} />}
        </section>
        <WhyThis view={view} />
      </aside>
    </div>
  );
}

function Session({ view }: { view: ReviewView }) {
  return (
    <section class="panel" aria-label="The session">
      <div class="panel-head">
        <h2>{view.workflow}</h2>
        <span class="small muted mono">
          <a href={href(["sessions", view.session_id])}>{view.session_id}</a>, ended{" "}
          {moment(Date.parse(view.ended_at))}
        </span>
      </div>
      {view.held_by && (
        <p class="warn small">
          Another reviewer is at this session until {moment(Date.parse(view.held_until ?? ""))}. You may
          review it as well; both scores count.
        </p>
      )}
      <dl class="facts payload">
        <dt>Asked</dt>
        <dd>
          <pre>{readable(view.input ?? "") || "nothing"}</pre>
        </dd>
        <dt>Answered</dt>
        <dd>
          <pre>{readable(view.output ?? "") || "nothing"}</pre>
        </dd>
      </dl>
    </section>
  );
}

function Uncovered({ view }: { view: ReviewView }) {
  const sentences = view.sentences ?? [];
  if (sentences.length === 0) return null;
  return (
    <section class="panel" aria-label="Sentences that no claim covers">
      <h2>Said without a claim</h2>
      <ul class="sentences">
        {sentences.map((one, at) => (
          <li key={at}>
            <q class="isolated">{visible(one.text)}</q>{" "}
            <span class="muted small">{visible(one.reason)}</span>
          </li>
        ))}
      </ul>
    </section>
  );
}

/** Where the reviewer was: the first claim with a source that is not open. */
function firstUnopened(view: ReviewView): ClaimPlace {
  const found = (view.claims ?? []).findIndex((one) => one.sources?.some((source) => !source.opened));
  return { claim: Math.max(0, found), isMoved: false };
}
