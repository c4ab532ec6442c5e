// How right the answer is, with a comment. It is sent only when every source is open; the gateway
// refuses it otherwise, whatever the page shows.
import type { RefObject } from "preact";
import type { ReviewView } from "../review_shapes";
import type { Desk } from "./review_desk";

export const SCORES = [
  { key: "1", score: 0, says: "wrong" },
  { key: "2", score: 0.25, says: "mostly wrong" },
  { key: "3", score: 0.5, says: "half right" },
  { key: "4", score: 0.75, says: "mostly right" },
  { key: "5", score: 1, says: "right" },
] as const;

interface ScoreProps {
  view: ReviewView;
  desk: Desk;
  score: number | null;
  choose: (score: number) => void;
  comment: string;
  write: (comment: string) => void;
  words: RefObject<HTMLTextAreaElement | null>;
  isReady: boolean;
  send: () => void;
}

export function ScoreForm(props: ScoreProps) {
  const { view, desk, score, choose, comment, write, words, isReady, send } = props;
  return (
    <form
      class="panel score"
      aria-label="Score"
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
    >
      <fieldset>
        <legend>How right is the answer?</legend>
        {SCORES.map((one) => (
          <label key={one.key} class="choice">
            <input
              type="radio"
              name="score"
              checked={score === one.score}
              onChange={() => choose(one.score)}
            />
            <span>{one.says}</span>
            <kbd>{one.key}</kbd>
          </label>
        ))}
      </fieldset>
      <label class="comment">
        Comment
        <textarea
          ref={words}
          rows={3}
          maxLength={10_000}
          value={comment}
          onInput={(event) => write(event.currentTarget.value)}
        />
      </label>
      <p class="small muted" id="score-state">
        {state(view, score)}
      </p>
      <div class="row">
        <button type="submit" disabled={!isReady} aria-describedby="score-state">
          Send score
        </button>
        <button type="button" onClick={desk.skip} disabled={desk.isBusy}>
          Skip
        </button>
      </div>
    </form>
  );
}

function state(view: ReviewView, score: number | null): string {
  const left = view.unopened ?? 0;
  if (left > 0) return left === 1 ? "1 source is still to be opened." : `${left} sources are still to be opened.`;
  if (score === null) return "Every source is open. Choose a score.";
  return view.scored ? "You have scored this; sending again replaces it." : "Ready to send.";
}
