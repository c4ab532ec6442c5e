"""How good the sessions of a window were judged, always with the share that nobody could judge."""

import msgspec

from gateway.stores.records.questions.question import Question
from gateway.stores.records.questions.span import Span

JUDGED = "arrayFilter(x -> isNotNull(x) AND isFinite(assumeNotNull(x)), reward_values)"
QUALITY = f"if(empty({JUDGED}), NULL, arrayAvg(arrayMap(x -> assumeNotNull(x), {JUDGED})))"
"""Of one session: the mean of what reflectors and people said, NULL where nobody did."""


class Judged(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`quality`: the mean of the sessions that were judged; absent where none was. `operational`:
    the share that succeeded, of all that ended, never absent where any ended."""

    ended: int
    judged: int
    quality: float | None = None
    missing_share: float | None = None
    operational: float | None = None


def judged(span: Span) -> Question[Judged]:
    """One row; with a component in the span, of the sessions that it took part in."""
    return Question(
        sql=f"""
SELECT count() AS ended, countIf(isNotNull(said)) AS judged,
    if(judged = 0, NULL, avg(said)) AS quality,
    if(ended = 0, NULL, 1 - judged / ended) AS missing_share,
    if(ended = 0, NULL, countIf(succeeded) / ended) AS operational
FROM (SELECT succeeded, {QUALITY} AS said {span.ended})""",
        row=Judged,
        values=span.values,
    )
