"""How a window went over time: what ended in each step of it. Steps without any are absent."""

import msgspec

from gateway.stores.records.questions.question import Question, nearest_rank
from gateway.stores.records.questions.span import Span

STEPS_MAX = 120


class SeriesPoint(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`at`: when the step begins, milliseconds since the epoch."""

    at: int
    ended: int
    succeeded: int
    failed: int
    p50_ms: int | None = None
    p95_ms: int | None = None


def series(span: Span, step_ms: int) -> Question[SeriesPoint]:
    """The steps in which anything ended, in order."""
    return Question(
        sql=f"""
SELECT intDiv(toUnixTimestamp64Milli(assumeNotNull(ended_at)), {{step_ms:Int64}})
        * {{step_ms:Int64}} AS at,
    count() AS ended, countIf(status = 'SUCCEEDED') AS succeeded,
    countIf(status = 'FAILED') AS failed, {nearest_rank("duration_ms", 50)} AS p50_ms,
    {nearest_rank("duration_ms", 95)} AS p95_ms
FROM (SELECT ended_at, status, duration_ms {span.ended}) GROUP BY at ORDER BY at""",
        row=SeriesPoint,
        values={**span.values, "step_ms": step_ms},
    )
