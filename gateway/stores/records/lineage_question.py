"""Which sessions had this in their lineage, as one question to the records' views. Pure.

What is asked for comes from outside: it goes in as a quoted text, never as SQL. A question is
always of one tenant. Twins are nobody's sessions and are not found.
"""

from collections.abc import Iterator, Sequence

import msgspec

from acp_spec.model.ids import is_session_id
from gateway.stores.records.embedded import quoted


class WantedLineage(msgspec.Struct, frozen=True, kw_only=True):
    """What the sessions are to have in common; what is empty does not matter.

    `id`: of a session, a lineage, a trace or a call. `component`, `workflow`: a name, or
    name@version; a component counts where it was intended or served. `policy`: as a lineage writes
    it, `name@version#digest`, or its beginning up to a part's end. `after`: only ids below it.
    """

    id: str = ""
    component: str = ""
    workflow: str = ""
    policy: str = ""
    input_sha256: str = ""
    since_ms: int | None = None
    until_ms: int | None = None
    after: str = ""


class LineageRow(msgspec.Struct, frozen=True, array_like=True):
    """One session of an answer, its columns in the order of `lineage_sql`."""

    session_id: str
    lineage_id: str
    workflow: str
    workflow_sha256: str
    status: str
    error: str
    fell_back: bool
    opened_ms: str
    ended_ms: str | None
    input_sha256: str
    intended: dict[str, str]
    policies: dict[str, str]
    served: list[str]
    trace_id: str


def lineage_sql(wanted: WantedLineage, *, tenant: str, limit: int) -> str:
    """The newest `limit` sessions. What is big is read of these only."""
    where = " AND ".join(_conditions(wanted, tenant))
    return (
        "SELECT session_id, lineage_id, workflow, workflow_sha256, status, error_reason,"
        " fell_back, toString(toUnixTimestamp64Milli(opened_at)),"
        " toString(toUnixTimestamp64Milli(ended_at)), input_sha256, intended, policies,"
        " arraySort(arrayDistinct(arrayFilter(s -> NOT startsWith(s, '@'), arrayMap("
        "(c, v) -> concat(c, '@', v), call_components, call_versions)))), trace_id"
        " FROM v_sessions WHERE session_id IN (SELECT session_id FROM v_sessions"
        f" WHERE {where} ORDER BY session_id DESC LIMIT {limit:d}) ORDER BY session_id DESC"
    )


def _conditions(wanted: WantedLineage, tenant: str) -> Iterator[str]:
    yield f"tenant = {quoted(tenant)}"
    yield "twin_of = ''"
    if wanted.id:
        yield _by_id(wanted.id, tenant)
    if wanted.component:
        yield _by_component(wanted.component)
    if wanted.workflow:
        yield names_it("workflow", wanted.workflow, ends="@")
    if wanted.policy:
        one = names_it("p", wanted.policy, ends="@#")
        yield f"arrayExists(p -> {one}, mapValues(policies))"
    if wanted.input_sha256:
        yield f"input_sha256 = {quoted(wanted.input_sha256)}"
    if wanted.since_ms is not None:
        yield f"opened_at >= fromUnixTimestamp64Milli({wanted.since_ms:d})"
    if wanted.until_ms is not None:
        yield f"opened_at < fromUnixTimestamp64Milli({wanted.until_ms:d})"
    if wanted.after:
        yield f"session_id < {quoted(wanted.after)}"


def _by_id(name: str, tenant: str) -> str:
    if is_session_id(name):
        return f"session_id = {quoted(name)}"
    if is_session_id(name.partition(".")[0]):
        return f"lineage_id = {quoted(name)}"
    calls = f"SELECT session_id FROM v_calls WHERE tenant = {quoted(tenant)}"
    return f"(trace_id = {quoted(name)} OR session_id IN ({calls} AND call_id = {quoted(name)}))"


def _by_component(component: str) -> str:
    name, _, version = component.partition("@")
    intended = names_it("p", component, ends="@")
    served = f"has(call_components, {quoted(name)})"
    if version:
        served = (
            f"arrayExists((c, v) -> c = {quoted(name)} AND v = {quoted(version)},"
            " call_components, call_versions)"
        )
    return f"(arrayExists(p -> {intended}, mapValues(intended)) OR {served})"


def names_it(column: str, wanted: str, *, ends: Sequence[str]) -> str:
    """Equal, or longer by a whole part; `is_named` says the same of a text."""
    longer = (f"startsWith({column}, {quoted(wanted + end)})" for end in ends)
    return f"({' OR '.join((f'{column} = {quoted(wanted)}', *longer))})"


def is_named(text: str, wanted: str, *, ends: Sequence[str]) -> bool:
    """Whether `text` is what is wanted, or longer by a whole part."""
    return text == wanted or any(text.startswith(wanted + end) for end in ends)
