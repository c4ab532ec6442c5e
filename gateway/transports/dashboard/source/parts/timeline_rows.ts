// The lines of a timeline out of its entries: a wait joins the attempt that it was for, so that
// waiting and service stand side by side; places are shares of the session's time. Pure.
import type { TimelineEntry } from "../session_shapes";

export interface Line {
  entry: TimelineEntry;
  /** Where its bars begin and how long they are, in percent of the whole. */
  bars: Bar[];
}

export interface Bar {
  what: "wait" | "service" | "span" | "moment";
  from: number;
  length: number;
  /** It is not over: the bar goes to the edge. */
  isOpen: boolean;
}

export interface Scale {
  from: number;
  to: number;
}

export function scaleOf(entries: TimelineEntry[], opened: number | undefined, end: number): Scale {
  const from = Math.min(opened ?? Infinity, ...entries.map((one) => one.from_ms ?? Infinity));
  const to = Math.max(end, ...entries.map((one) => one.to_ms ?? one.from_ms ?? -Infinity));
  const begin = Number.isFinite(from) ? from : end;
  return { from: begin, to: Math.max(to, begin + 1) };
}

export function linesOf(entries: TimelineEntry[], scale: Scale): Line[] {
  const lines: Line[] = [];
  let wait: TimelineEntry | null = null;
  for (const entry of entries) {
    if (entry.kind === "WAIT") {
      if (wait) lines.push(lineOf(wait, null, scale));
      wait = entry;
      continue;
    }
    const isIts = wait?.call_id === entry.call_id && wait?.attempt === entry.attempt;
    if (wait && !(isIts && entry.kind === "ATTEMPT")) {
      lines.push(lineOf(wait, null, scale));
      wait = null;
    }
    lines.push(lineOf(entry, wait, scale));
    wait = null;
  }
  if (wait) lines.push(lineOf(wait, null, scale));
  return lines;
}

function lineOf(entry: TimelineEntry, wait: TimelineEntry | null, scale: Scale): Line {
  const bars: Bar[] = [];
  if (wait) bars.push(...barOf("wait", wait.from_ms, wait.to_ms, scale));
  const what = KINDS[entry.kind];
  bars.push(...barOf(what, entry.from_ms, what === "moment" ? entry.from_ms : entry.to_ms, scale));
  return { entry, bars };
}

const KINDS: Record<TimelineEntry["kind"], Bar["what"]> = {
  STEP: "span",
  CALL: "span",
  WAIT: "wait",
  ATTEMPT: "service",
  DECISION: "moment",
};

function barOf(
  what: Bar["what"],
  from: number | undefined,
  to: number | undefined,
  scale: Scale,
): Bar[] {
  if (from === undefined) return [];
  const whole = scale.to - scale.from;
  const share = (at: number): number => Math.min(100, Math.max(0, ((at - scale.from) / whole) * 100));
  const begin = share(from);
  return [{ what, from: begin, length: share(to ?? scale.to) - begin, isOpen: to === undefined }];
}
