// What a page shows instead of data: it loads, there is none, or it was refused; each says what to
// do. `Answered` is the one way in which a page shows what it asked for.
import type { ComponentChildren } from "preact";
import type { Answer } from "./answer";
import type { Refusal } from "./ask";
import { signOut } from "./token";

interface AnsweredProps<T> {
  answer: Answer<T>;
  children: (data: T) => ComponentChildren;
}

/** The data once it is there; a refusal beside older data leaves that on the page. */
export function Answered<T>({ answer, children }: AnsweredProps<T>) {
  const { data, refusal } = answer;
  if (data === null) {
    return refusal ? <Refused refusal={refusal} again={answer.again} /> : <Loading />;
  }
  return (
    <>
      {refusal && <Refused refusal={refusal} again={answer.again} stale />}
      {children(data)}
    </>
  );
}

export function Loading() {
  return (
    <p class="loading muted" role="status">
      Loading…
    </p>
  );
}

export function Nothing({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <div class="nothing panel">
      <h2>{title}</h2>
      <p>{children}</p>
    </div>
  );
}

interface RefusedProps {
  refusal: Refusal;
  again: () => void;
  /** Older data stands below. */
  stale?: boolean;
}

export function Refused({ refusal, again, stale = false }: RefusedProps) {
  const waits = refusal.retryAfterMs !== null;
  return (
    <div class="refused panel" role={waits ? "status" : "alert"}>
      <h2>{heading(refusal)}</h2>
      <p>{refusal.message}</p>
      <p class="muted">
        {stale && "What stands below is older. "}
        {waits && "This page tries again by itself. "}
        {refusal.status > 0 && `${refusal.status} ${refusal.reason}`}
      </p>
      <p>
        <button type="button" onClick={again}>
          Try again
        </button>{" "}
        {refusal.status === 403 && (
          <button type="button" onClick={signOut}>
            Use another token
          </button>
        )}
      </p>
    </div>
  );
}

const HEADINGS: Record<number, string> = {
  0: "No answer",
  401: "Sign in first",
  403: "Not allowed",
  404: "Not found",
  429: "Too many questions at once",
  503: "Not ready yet",
};

function heading(refusal: Refusal): string {
  return HEADINGS[refusal.status] ?? "The gateway refused this";
}
