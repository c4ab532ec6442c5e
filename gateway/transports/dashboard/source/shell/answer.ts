// A page's data as a value that goes with its path: asked for, kept while it is asked for again,
// tried again where the gateway said when (503 while the records start).
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { ask, Refusal } from "./ask";

export interface Answer<T> {
  /** The newest answer, also while a newer one is on its way or was refused. */
  data: T | null;
  refusal: Refusal | null;
  isAsking: boolean;
  again: () => void;
}

interface Options {
  /** Ask again after so long, while somebody looks. */
  everyMs?: number;
}

interface Held<T> {
  path: string;
  data: T | null;
  refusal: Refusal | null;
}

export function useAnswer<T>(path: string, { everyMs = 0 }: Options = {}): Answer<T> {
  const [held, setHeld] = useState<Held<T>>({ path, data: null, refusal: null });
  const [isAsking, setAsking] = useState(true);
  const [turn, setTurn] = useState(0);
  const again = useCallback(() => setTurn((now) => now + 1), []);

  useEffect(() => {
    const stop = new AbortController();
    setAsking(true);
    ask<T>(path, { signal: stop.signal })
      .then((data) => settle({ path, data, refusal: null }))
      .catch((problem: unknown) => {
        if (stop.signal.aborted) return;
        const refusal = asRefusal(problem);
        settle((before) => ({ path, data: before.path === path ? before.data : null, refusal }));
      });
    function settle(next: Held<T> | ((before: Held<T>) => Held<T>)): void {
      if (stop.signal.aborted) return;
      setHeld(next);
      setAsking(false);
    }
    return () => stop.abort();
  }, [path, turn]);

  const refusal = held.path === path ? held.refusal : null;
  useTurns(again, isAsking ? 0 : (refusal?.retryAfterMs ?? everyMs));
  return { data: held.path === path ? held.data : null, refusal, isAsking, again };
}

/** One more turn after `afterMs`, put off while nobody looks; none where it is 0. */
function useTurns(turn: () => void, afterMs: number): void {
  const latest = useRef(turn);
  latest.current = turn;
  useEffect(() => {
    if (!afterMs) return;
    let timer = 0;
    const plan = (): void => {
      window.clearTimeout(timer);
      if (!document.hidden) timer = window.setTimeout(() => latest.current(), afterMs);
    };
    plan();
    document.addEventListener("visibilitychange", plan);
    return () => {
      window.clearTimeout(timer);
      document.removeEventListener("visibilitychange", plan);
    };
  }, [afterMs]); // 0 while it asks, so each answer plans once, however often the page is drawn
}

export function asRefusal(problem: unknown): Refusal {
  if (problem instanceof Refusal) return problem;
  const what = problem instanceof Error ? problem.message : String(problem);
  return new Refusal(0, "UNEXPECTED", `This page could not read the answer: ${what}`);
}
