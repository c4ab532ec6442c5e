"""Why sessions failed in a window, and why a component's attempts did: most frequent first."""

from typing import Final

import msgspec

from gateway.stores.records.questions.question import Question
from gateway.stores.records.questions.span import Span

REASONS_MAX: Final = 100


class ErrorReason(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`share`: of the sessions that failed, or of the attempts that did."""

    reason: str
    count: int
    share: float


def of_sessions(span: Span) -> Question[ErrorReason]:
    """Of sessions that failed."""
    return Question(
        sql=f"""
SELECT error_reason AS reason, count() AS count, count / sum(count) OVER () AS share
FROM (SELECT error_reason {span.ended} AND error_reason != '')
GROUP BY reason ORDER BY count DESC, reason LIMIT {REASONS_MAX}""",
        row=ErrorReason,
        values=span.values,
    )


def of_attempts(span: Span) -> Question[ErrorReason]:
    """Of the attempts of the span's component that failed."""
    return Question(
        sql=f"""
SELECT error AS reason, count() AS count, count / sum(count) OVER () AS share
FROM (SELECT call_components, call_errors, call_reused {span.ended})
ARRAY JOIN call_components AS name, call_errors AS error, call_reused AS reused
WHERE name = {{component:String}} AND error != '' AND NOT reused
GROUP BY reason ORDER BY count DESC, reason LIMIT {REASONS_MAX}""",
        row=ErrorReason,
        values=span.values,
    )
