// A series without holes: what is drawn and told for steps in which nothing ended. Pure.
import type { Point } from "../shapes";

export interface Span {
  from: number;
  to: number;
  stepMs: number;
  points: Point[];
}

const STEPS_MAX = 1_000;

/** The steps in which nothing ended are not sent: they have no sessions, and no duration. */
export function everyStep({ from, to, stepMs, points }: Span): Point[] {
  const known = new Map(points.map((one) => [one.at, one]));
  const first = Math.floor(from / stepMs) * stepMs;
  const steps = Math.min(STEPS_MAX, Math.floor((to - first) / stepMs) + 1);
  return Array.from({ length: steps }, (_, n) => {
    const at = first + n * stepMs;
    return known.get(at) ?? { at };
  });
}
