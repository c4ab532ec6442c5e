// Quality and operation of what ended, side by side: the first with the share nobody judged, the
// second always known. An absent quality is no bad one, and is never shown as 0.
import { count, decimal, percent } from "../figures";
import type { Judged } from "../shapes";
import { Figure } from "./figure";

export function JudgedFigures({ judged }: { judged: Judged }) {
  const ended = judged.ended ?? 0;
  return (
    <>
      <Figure name="Succeeded" value={judged.operational === undefined ? undefined : percent(judged.operational)}>
        of {count(ended)} that ended
      </Figure>
      <Figure
        name="Quality, mean"
        value={judged.quality === undefined ? undefined : decimal(judged.quality)}
        absent="nobody judged"
      >
        {ended > 0 && `${percent(judged.missing_share)} of sessions not judged`}
      </Figure>
    </>
  );
}
