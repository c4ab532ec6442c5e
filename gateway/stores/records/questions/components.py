"""How components did in a window: their attempts, and the fallbacks that they are blamed for.

Blame is the session row's own (`took_part`, `blamed`): the same as the metric counts.
"""

from typing import Final

import msgspec

from gateway.stores.records.questions.question import Question, nearest_rank
from gateway.stores.records.questions.span import Span

NAMES_MAX: Final = 1_000

_ARRAYS: Final = {
    "call_components": "component",
    "call_reused": "reused",
    "call_errors": "error",
    "call_ms": "service_ms",
    "call_waits_ms": "wait_ms",
}
"""The arrays of a session that say what its attempts were, and what one attempt's is called."""

_OF_ATTEMPTS: Final = f"""
    count() AS calls, countIf(error != '') AS failed, failed / calls AS failure_rate,
    {nearest_rank("wait_ms", 95)} AS wait_p95_ms,
    {nearest_rank("service_ms", 95)} AS service_p95_ms
"""
_SHOWN: Final = "calls, failed, failure_rate, wait_p95_ms, service_p95_ms"


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
    attempts = _attempts(span, call_versions="component_version", call_roles="call_role")
    sql = f"""
SELECT name, version, role, {_SHOWN}
FROM (
    SELECT component AS name, component_version AS version, any(call_role) AS role, {_OF_ATTEMPTS}
    {attempts} GROUP BY name, version
) ORDER BY calls DESC, name, version LIMIT {NAMES_MAX}"""
    return Question(sql=sql, row=AttemptFigures, values=span.values)


def by_action(span: Span) -> Question[AttemptFigures]:
    """One row per action; with a component in the span, of that one's."""
    sql = f"""
SELECT action, {_SHOWN}
FROM (
    SELECT called AS action, {_OF_ATTEMPTS}
    {_attempts(span, call_actions="called")} GROUP BY action
) ORDER BY calls DESC, action LIMIT {NAMES_MAX}"""
    return Question(sql=sql, row=AttemptFigures, values=span.values)


def _attempts(span: Span, **beside: str) -> str:
    """FROM and WHERE of single attempts, with these arrays beside those that always count."""
    arrays = {**_ARRAYS, **beside}
    joined = ", ".join(f"{array} AS {name}" for array, name in arrays.items())
    only = " AND component = {component:String}" if span.component else ""
    return (
        f"FROM (SELECT {', '.join(arrays)} {span.ended}) ARRAY JOIN {joined}"
        f" WHERE component != '' AND NOT reused{only}"
    )


def blame(span: Span) -> Question[Blame]:
    """Who took part and who is blamed, the highest rate first."""
    return Question(
        sql=f"""
SELECT name, sum(part) AS sessions, sum(blame) AS fallbacks, fallbacks / sessions AS fallback_rate
FROM (
    SELECT name, count() AS part, 0 AS blame
    FROM (SELECT took_part {span.ended}) ARRAY JOIN took_part AS name GROUP BY name
    UNION ALL
    SELECT name, 0 AS part, count() AS blame
    FROM (SELECT blamed {span.ended} AND notEmpty(blamed)) ARRAY JOIN blamed AS name GROUP BY name
)
GROUP BY name ORDER BY fallback_rate DESC, name LIMIT {NAMES_MAX}""",
        row=Blame,
        values=span.values,
    )
