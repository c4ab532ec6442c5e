"""Pages of ended sessions, newest first, by any filters together.

Keyset: the next page begins before the last id of this one. Ids sort by time and never change, so
a page stays what it was while sessions come, are judged and are deleted.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from gateway.stores.records.questions.quality import QUALITY
from gateway.stores.records.questions.question import Question
from gateway.stores.records.questions.span import NAMED, TOOK_PART

_MS: Final = "fromUnixTimestamp64Milli({{{}:Int64}})"

CONDITIONS: Final[Mapping[str, str]] = {
    "workflow": NAMED,
    "version": "endsWith(workflow, '@' || {version:String})",
    "component": TOOK_PART,
    "status": "status = {status:String}",
    "error": "(error_reason = {error:String} OR has(call_errors, {error:String}))",
    "review": "review = {review:String}",
    "since": f"opened_at >= {_MS.format('since')}",
    "until": f"opened_at < {_MS.format('until')}",
    "after": "session_id < {after:String}",
}
"""What a filter of that name means; its value is bound."""


class SessionItem(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One session of a list. Times are milliseconds since the epoch; unknown ones are absent."""

    session_id: str
    lineage_id: str = ""
    workflow: str
    version: str = ""
    status: str
    error: str = ""
    fell_back: bool = False
    opened_at: int
    ended_at: int | None = None
    duration_ms: int | None = None
    attempts: int | None = None
    quality: float | None = None
    review: str = ""


def page(tenant: str, filters: Mapping[str, str | int], *, limit: int) -> Question[SessionItem]:
    """Up to `limit` sessions that pass every filter given."""
    given = [CONDITIONS[name] for name in CONDITIONS if name in filters]
    where = " AND ".join(["tenant = {tenant:String}", "twin_of = ''", *given])
    return Question(
        sql=f"""
SELECT session_id, lineage_id, splitByChar('@', reference)[1] AS workflow,
    substring(reference, length(workflow) + 2) AS version, state AS status,
    error_reason AS error, fell_back, toUnixTimestamp64Milli(opened) AS opened_at,
    toUnixTimestamp64Milli(ended) AS ended_at, duration_ms, attempts, quality, review
FROM (
    SELECT session_id, lineage_id, toString(workflow) AS reference, status AS state, error_reason,
        fell_back, opened_at AS opened, ended_at AS ended, duration_ms, attempts,
        {QUALITY} AS quality, review
    FROM v_sessions WHERE {where} ORDER BY session_id DESC LIMIT {{limit:UInt32}}
) ORDER BY session_id DESC""",
        row=SessionItem,
        values={**filters, "tenant": tenant, "limit": limit},
    )
