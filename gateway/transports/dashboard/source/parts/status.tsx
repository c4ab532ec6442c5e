// A session's or call's status, a review's state, a claim's verdict: a word with a shape and a colour.
const TONES: Record<string, string> = {
  SUCCEEDED: "good",
  REUSED: "good plain",
  FAILED: "bad",
  CANCELLED: "muted",
  RUNNING: "accent plain",
  PENDING: "muted plain",
  WAITING: "warn",
};

export function Status({ status }: { status: string }) {
  return <span class={`mark ${TONES[status] ?? "muted"}`}>{status.toLowerCase()}</span>;
}

/** The tones of what a guard found of a claim. */
export const VERDICTS: Record<string, string> = {
  SUPPORTED: "good",
  CONTRADICTED: "bad",
  NOT_CHECKABLE: "warn",
};

export function ReviewTag({ review }: { review: string | undefined }) {
  if (review === "WAITING") return <span class="tag warn">review waits</span>;
  if (review === "DONE") return <span class="tag good">reviewed</span>;
  return null;
}
