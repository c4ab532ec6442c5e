"""How workflows did in a window: by name, by version, and all of them together."""

from typing import Final

import msgspec

from gateway.stores.records.questions.question import Question, nearest_rank
from gateway.stores.records.questions.span import NAMED, Span

NAMES_MAX: Final = 1_000

_COUNTED: Final = f"""
    count() AS ended, countIf(status = 'SUCCEEDED') AS succeeded,
    countIf(status = 'FAILED') AS failed, countIf(status = 'CANCELLED') AS cancelled,
    countIf(fell_back) AS fallen, countIf(review = 'WAITING') AS in_review,
    if(succeeded + failed = 0, NULL, succeeded / (succeeded + failed)) AS success_rate,
    if(succeeded + failed = 0, NULL, countIf(fell_back AND status != 'CANCELLED')
        / (succeeded + failed)) AS fallback_rate,
    {nearest_rank("duration_ms", 50)} AS p50_ms, {nearest_rank("duration_ms", 95)} AS p95_ms
"""
_SHOWN: Final = """ended, succeeded, failed, cancelled, fallen AS fell_back, in_review,
    success_rate, fallback_rate, p50_ms, p95_ms"""


class WorkflowFigures(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Rates are of those that succeeded or failed; absent where there were none. Times are from
    opened to ended, nearest rank, of all that ended. `version` is absent where all count."""

    name: str
    version: str = ""
    ended: int
    succeeded: int
    failed: int
    cancelled: int
    fell_back: int
    in_review: int
    success_rate: float | None = None
    fallback_rate: float | None = None
    p50_ms: int | None = None
    p95_ms: int | None = None


def by_name(span: Span) -> Question[WorkflowFigures]:
    """One row per workflow, the busiest first; the row with an empty name is all together."""
    return _question(
        f"SELECT name, {_SHOWN} FROM (SELECT splitByChar('@', workflow)[1] AS name, {_COUNTED}"
        f" {span.ended} GROUP BY GROUPING SETS ((name), ()))",
        span,
    )


def by_version(span: Span) -> Question[WorkflowFigures]:
    """One row per version of the workflows, the busiest first."""
    return _question(
        f"SELECT splitByChar('@', reference)[1] AS name,"
        f" substring(reference, length(name) + 2) AS version, {_SHOWN}"
        f" FROM (SELECT toString(workflow) AS reference, {_COUNTED} {span.ended}"
        " GROUP BY reference)",
        span,
    )


def _question(sql: str, span: Span) -> Question[WorkflowFigures]:
    ordered = f"{sql} ORDER BY ended DESC, name LIMIT {NAMES_MAX}"
    return Question(sql=ordered, row=WorkflowFigures, values=span.values)


class OpenedCount(msgspec.Struct, frozen=True, kw_only=True):
    """How many of the sessions that ended by now were opened in the window."""

    opened: int


def opened(span: Span) -> Question[OpenedCount]:
    """One row; those that are open still are not in the records."""
    named = f" AND {NAMED}" if span.workflow else ""
    return Question(
        sql=f"""
SELECT count() AS opened FROM v_sessions
WHERE tenant = {{tenant:String}} AND twin_of = ''
    AND opened_at >= fromUnixTimestamp64Milli({{from_ms:Int64}})
    AND opened_at < fromUnixTimestamp64Milli({{to_ms:Int64}}){named}""",
        row=OpenedCount,
        values=span.values,
    )
