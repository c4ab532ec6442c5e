// Follows a running session: its numbered events over a fetch that streams (an EventSource cannot
// send the token). Whoever follows is told that something happened, and reads the session again.
import { useEffect, useRef } from "preact/hooks";
import { Refusal, request } from "./ask";

// Events come in bursts; the page is read again at most so often.
const TELL_EVERY_MS = 250;
// After a stream that broke, or was refused: as often as one would look by hand.
const AGAIN_MS = 3_000;

/** Calls `tell` when the session's events go on, until it has ended. */
export function useSessionEvents(sessionId: string, isOpen: boolean, tell: () => void): void {
  const latest = useRef(tell);
  latest.current = tell;
  useEffect(() => {
    if (!isOpen) return undefined;
    const stop = new AbortController();
    void follow(sessionId, () => latest.current(), stop.signal);
    return () => stop.abort();
  }, [sessionId, isOpen]);
}

async function follow(sessionId: string, tell: () => void, signal: AbortSignal): Promise<void> {
  const path = `/v1/sessions/${encodeURIComponent(sessionId)}/events`;
  const later = throttled(tell, signal);
  let after = "";
  while (!signal.aborted) {
    try {
      const headers: Record<string, string> = { accept: "text/event-stream" };
      if (after) headers["last-event-id"] = after;
      const answer = await request(path, { headers, signal });
      if (answer.status !== 204) after = await read(answer, after, later);
    } catch (problem) {
      if (signal.aborted) return;
      if (problem instanceof Refusal && problem.status === 401) return;
    }
    later(); // it ended, or broke off: the session says which
    await pause(AGAIN_MS, signal);
  }
}

/** Read to the end of the stream; the last event's number. */
async function read(answer: Response, after: string, tell: () => void): Promise<string> {
  const reader = answer.body?.pipeThrough(new TextDecoderStream()).getReader();
  let last = after;
  let rest = "";
  for (;;) {
    const chunk = await reader?.read();
    if (!chunk || chunk.done) return last;
    const lines = (rest + chunk.value).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) {
      if (line.startsWith("id:")) last = line.slice(3).trim();
      if (line.startsWith("data:")) tell();
    }
  }
}

function throttled(tell: () => void, signal: AbortSignal): () => void {
  let isPlanned = false;
  return () => {
    if (isPlanned) return;
    isPlanned = true;
    window.setTimeout(() => {
      isPlanned = false;
      if (!signal.aborted) tell();
    }, TELL_EVERY_MS);
  };
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = window.setTimeout(resolve, ms);
    signal.addEventListener("abort", () => {
      window.clearTimeout(timer);
      resolve();
    });
  });
}
