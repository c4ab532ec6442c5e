// Quality and operation of what ended, side by side: the first with the share nobody judged, the
// second always known. An absent quality is no bad one, and is never shown as 0.
import { count, decimal, percent } from "../figures";
import type { Judged } from "../shapes";
import { Figure, known } from "./figure";

export function JudgedFigures({ judged }: { judged: Judged }) {
  const ended = judged.ended ?? 0;
  return (
    <>
      <Figure name="Succeeded" value={known(judged.operational, percent)}>
        of {count(ended)} that ended
      </Figure>
      <Figure name="Quality, mean" value={known(judged.quality, decimal)} absent="nobody judged">
        {ended > 0 && `${percent(judged.missing_share)} of sessions not judged`}
      </Figure>
    </>
  );
}
