// A session's or call's status and a review's state: a word with a shape and a colour.
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

export function ReviewTag({ review }: { review: string | undefined }) {
  if (review === "WAITING") return <span class="tag warn">review waits</span>;
  if (review === "DONE") return <span class="tag good">reviewed</span>;
  return null;
}
