// Every request of every page: JSON under /v1, with the tab's token, refusals as one kind of value.
// Pages never call fetch themselves.
import { parseExactly } from "./exact";
import { askForToken, token } from "./token";

/** What the gateway (or the way to it) refused; `message` says what to do. */
export class Refusal extends Error {
  constructor(
    readonly status: number,
    readonly reason: string,
    message: string,
    readonly retryAfterMs: number | null = null,
  ) {
    super(message);
  }
}

interface Sent {
  method?: "GET" | "POST";
  body?: unknown;
  signal?: AbortSignal;
  headers?: Record<string, string>;
}

/** The answer's JSON; throws Refusal. A 401 also makes the frame ask for a token. */
export async function ask<T>(path: string, sent: Sent = {}): Promise<T> {
  const answer = await request(path, sent);
  if (answer.status === 204) return undefined as T;
  return parseExactly<T>(await answer.text());
}

/** The answer itself, for streams; throws Refusal. */
export async function request(path: string, sent: Sent = {}): Promise<Response> {
  let answer: Response;
  try {
    answer = await fetch(path, options(sent));
  } catch (problem) {
    if (problem instanceof DOMException && problem.name === "AbortError") throw problem;
    throw new Refusal(0, "UNREACHABLE", "The gateway does not answer. Is it running?", 2_000);
  }
  if (answer.ok) return answer;
  const refusal = await refused(answer);
  if (refusal.status === 401) askForToken();
  throw refusal;
}

function options(sent: Sent): RequestInit {
  const headers: Record<string, string> = { accept: "application/json", ...sent.headers };
  const held = token();
  if (held) headers["authorization"] = `Bearer ${held}`;
  const init: RequestInit = {
    method: sent.method ?? "GET",
    headers,
    credentials: "omit",
    redirect: "error",
  };
  if (sent.body !== undefined) {
    headers["content-type"] = "application/json";
    init.body = JSON.stringify(sent.body);
  }
  if (sent.signal) init.signal = sent.signal;
  return init;
}

async function refused(answer: Response): Promise<Refusal> {
  const wait = Number(answer.headers.get("retry-after"));
  const retryAfterMs = wait > 0 ? wait * 1000 : null;
  try {
    const { error } = (await answer.json()) as { error: { reason: string; message: string } };
    return new Refusal(answer.status, error.reason, error.message, retryAfterMs);
  } catch {
    const message = `The gateway answered ${answer.status} and no reason; see its log.`;
    return new Refusal(answer.status, "UNKNOWN", message, retryAfterMs);
  }
}
