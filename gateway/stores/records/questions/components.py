"""How components did in a window: their attempts, and the fallbacks that they are blamed for.

Blame is the session row's own (`took_part`, `blamed`): the same as the metric counts.
"""

from typing import Final

import msgspec

from gateway.stores.records.questions.question import Question, nearest_rank
from gateway.stores.records.questions.span import Span

NAMES_MAX: Final = 1_000

_ATTEMPTS: Final = """
ARRAY JOIN call_components AS component, call_versions AS component_version,
    call_roles AS call_role, call_actions AS called, call_errors AS error,
    call_ms AS service_ms, call_waits_ms AS wait_ms, call_reused AS reused
"""
_READ: Final = """call_components, call_versions, call_roles, call_actions, call_errors, call_ms,
    call_waits_ms, call_reused"""
_OF_ATTEMPTS: Final = f"""
    count() AS calls, countIf(error != '') AS failed, failed / calls AS failure_rate,
    groupArray(wait_ms) AS waits, groupArray(service_ms) AS services,
    {nearest_rank("waits", 95)} AS wait_p95_ms, {nearest_rank("services", 95)} AS service_p95_ms
"""
_SHOWN: Final = "calls, failed, failure_rate, wait_p95_ms, service_p95_ms"
_NOT_REUSED: Final = "WHERE component != '' AND NOT reused"


class AttemptFigures(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Of one component, one version, or one action; `calls` counts attempts, as `v_calls`.

    Waiting is in the gateway, service at the component: of those that were sent.
    """

    name: str = ""
    version: str = ""
    role: str = ""
    action: str = ""
    calls: int
    failed: int
    failure_rate: float | None = None
    wait_p95_ms: int | None = None
    service_p95_ms: int | None = None


class Blame(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`sessions`: that ended with the component taking part; `fallbacks`: because of it."""

    name: str
    sessions: int
    fallbacks: int
    fallback_rate: float | None = None


def by_version(span: Span) -> Question[AttemptFigures]:
    """One row per version of each component, the busiest first; with a component in the span, of
    that one."""
    sql = f"""
SELECT name, version, role, {_SHOWN}
FROM (
    SELECT component AS name, component_version AS version, any(call_role) AS role, {_OF_ATTEMPTS}
    FROM (SELECT {_READ} {span.ended}) {_ATTEMPTS} {_which(span)} GROUP BY name, version
) ORDER BY calls DESC, name, version LIMIT {NAMES_MAX}"""
    return Question(sql=sql, row=AttemptFigures, values=span.values)


def by_action(span: Span) -> Question[AttemptFigures]:
    """One row per action; with a component in the span, of that one's."""
    sql = f"""
SELECT action, {_SHOWN}
FROM (
    SELECT called AS action, {_OF_ATTEMPTS}
    FROM (SELECT {_READ} {span.ended}) {_ATTEMPTS} {_which(span)} GROUP BY action
) ORDER BY calls DESC, action LIMIT {NAMES_MAX}"""
    return Question(sql=sql, row=AttemptFigures, values=span.values)


def _which(span: Span) -> str:
    return f"{_NOT_REUSED} AND component = {{component:String}}" if span.component else _NOT_REUSED


def blame(span: Span) -> Question[Blame]:
    """Who took part and who is blamed, the highest rate first."""
    return Question(
        sql=f"""
SELECT name, count() AS sessions, countIf(has(blamed, name)) AS fallbacks,
    fallbacks / sessions AS fallback_rate
FROM (SELECT took_part, blamed {span.ended}) ARRAY JOIN took_part AS name
GROUP BY name ORDER BY fallback_rate DESC, name LIMIT {NAMES_MAX}""",
        row=Blame,
        values=span.values,
    )
