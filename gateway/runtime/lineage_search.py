"""All sessions of a component's, workflow's or policy's version, with an input, by a trace or call.

Two places know: the sessions in memory, which may still run, and the records, where everything is
that ended. Where the records cannot be asked, memory answers alone and the answer says so.
"""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from heapq import nlargest
from typing import TYPE_CHECKING, Final

import msgspec

from acp_spec.bindings.errors import invalid_request
from acp_spec.model.errors import AcpFailure, Reason
from acp_spec.model.ids import is_session_id
from acp_spec.model.times import parse_rfc3339, rfc3339
from gateway.engine.states import SessionState
from gateway.runtime.principal import Principal
from gateway.stores.records.lineage_question import (
    LineageRow,
    WantedLineage,
    is_named,
    lineage_sql,
)
from gateway.telemetry.spans import parse_traceparent

if TYPE_CHECKING:
    from gateway.stores.records.reach import Answer

LIMIT_DEFAULT: Final = 50
LIMIT_MAX: Final = 500
TEXT_CHARACTERS_MAX: Final = 512
_DIGEST_DIGITS: Final = 64
_AWAY: Final = (Reason.UNAVAILABLE.value, Reason.UNIMPLEMENTED.value)
"""The records are starting, or are not installed: no reason to answer nothing."""

Query = Callable[[str], Awaitable["Answer"]]


class FindLineages(msgspec.Struct, frozen=True, kw_only=True):
    """What the sessions are to have in common, as a caller writes it. At least one of the first
    five; `since` and `until` are times of opening, `after` the `next` of an earlier page."""

    id: str = ""
    component: str = ""
    workflow: str = ""
    policy: str = ""
    input_sha256: str = ""
    since: str = ""
    until: str = ""
    after: str = ""
    limit: int = 0


class LineageMatch(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One session. `intended`: role or action -> name@version; `served`: who was called."""

    session_id: str
    lineage_id: str
    workflow: str
    workflow_sha256: str = ""
    status: str
    error: str = ""
    fell_back: bool = False
    opened_at: str
    ended_at: str = ""
    input_sha256: str = ""
    intended: dict[str, str] = {}
    served: tuple[str, ...] = ()
    policies: dict[str, str] = {}
    trace_id: str = ""


class LineageMatches(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Newest first. `next`: there are more, from there on. `only_memory`: why the records were not
    asked, so that these are only the sessions in memory. `open_unseen`: sessions under way that are
    not in memory, and were not looked at."""

    sessions: tuple[LineageMatch, ...]
    next: str = ""
    only_memory: str = ""
    open_unseen: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class LineageSearch:
    """`in_memory`: the states that are there now, `synced` waits until what they say is on disk;
    `open_sessions`: how many are under way."""

    in_memory: Callable[[], tuple[SessionState, ...]]
    synced: Callable[[], Awaitable[None]]
    open_sessions: Callable[[], int]
    query: Query

    async def find(self, asked: FindLineages, principal: Principal) -> LineageMatches:
        """One page. INVALID_REQUEST says what cannot be asked."""
        wanted, limit = wanted_of(asked), min(asked.limit or LIMIT_DEFAULT, LIMIT_MAX)
        states = self.in_memory()
        fitting = (one for one in states if _may_be(one, principal) and fits(one, wanted))
        newest = nlargest(limit + 1, fitting, key=lambda one: one.session_id)
        found = {state.session_id: match_of(state) for state in newest}
        await self.synced()
        why = ""
        if not found or not is_session_id(wanted.id.partition(".")[0]):
            why = await self._ask_records(found, wanted, tenant=principal.tenant, limit=limit + 1)
        rows = sorted(found.values(), key=lambda one: one.session_id, reverse=True)
        seen = sum(not state.terminal and not state.opened.twin_of for state in states)
        return LineageMatches(
            sessions=tuple(rows[:limit]),
            next=rows[limit - 1].session_id if len(rows) > limit else "",
            only_memory=why,
            open_unseen=max(0, self.open_sessions() - seen),
        )

    async def _ask_records(
        self, found: dict[str, LineageMatch], wanted: WantedLineage, *, tenant: str, limit: int
    ) -> str:
        """Add what the records know; what memory knows is newer. Why they do not answer."""
        try:
            answer = await self.query(lineage_sql(wanted, tenant=tenant, limit=limit))
        except AcpFailure as failure:
            if failure.error.reason not in _AWAY:
                raise
            return failure.error.message
        for row in msgspec.json.decode(answer.data, type=list[LineageRow]):
            found.setdefault(row.session_id, _match_of_row(row))
        return ""


def wanted_of(asked: FindLineages) -> WantedLineage:
    """What is asked for, checked. INVALID_REQUEST."""
    names = ("id", "component", "workflow", "policy", "input_sha256")
    given = {name: getattr(asked, name) for name in names}
    if not any(given.values()):
        raise invalid_request(f"name what the sessions have in common: {', '.join(names)}")
    for name, text in given.items():
        if len(text) > TEXT_CHARACTERS_MAX:
            raise invalid_request(f"query {name}: at most {TEXT_CHARACTERS_MAX} characters")
    digest = asked.input_sha256.lower()
    if digest and (len(digest) != _DIGEST_DIGITS or digest.strip("0123456789abcdef")):
        raise invalid_request("query input_sha256: 64 hexadecimal digits, as in a lineage")
    if asked.after and not is_session_id(asked.after):
        raise invalid_request("query after: not the `next` of an earlier page")
    return WantedLineage(
        **{**given, "input_sha256": digest},
        since_ms=_time_ms(asked.since, "since"),
        until_ms=_time_ms(asked.until, "until"),
        after=asked.after,
    )


def _time_ms(text: str, name: str) -> int | None:
    if not text:
        return None
    found = parse_rfc3339(text if "T" in text.upper() else f"{text}T00:00:00Z")
    if found is None or found < 0:
        message = f"{text[:40]!r} is no time such as 2026-11-29 or 2026-11-29T15:00:00Z"
        raise invalid_request(f"query {name}: {message}")
    return found


def _may_be(state: SessionState, principal: Principal) -> bool:
    """The caller's own; a twin is nobody's."""
    return state.opened.tenant == principal.tenant and not state.opened.twin_of


def match_of(state: SessionState) -> LineageMatch:
    """A session in memory, as the records will tell it once it has ended."""
    opened = state.opened
    return LineageMatch(
        session_id=state.session_id,
        lineage_id=opened.lineage_id,
        workflow=opened.workflow,
        workflow_sha256=opened.workflow_digest,
        status=state.status.value,
        error=state.error.reason if state.error is not None else "",
        fell_back=state.fell_back,
        opened_at=rfc3339(opened.at_ms),
        ended_at=rfc3339(state.ended_at_ms) if state.ended_at_ms is not None else "",
        input_sha256=opened.input_sha256,
        intended=opened.pins,
        served=tuple(sorted(served_by(state))),
        policies=opened.policies,
        trace_id=trace_id_of(opened.traceparent),
    )


def fits(state: SessionState, wanted: WantedLineage) -> bool:
    """Whether it has all that is wanted: what `lineage_sql` asks the records."""
    opened = state.opened
    return (
        (not wanted.after or state.session_id < wanted.after)
        and (wanted.since_ms is None or opened.at_ms >= wanted.since_ms)
        and (wanted.until_ms is None or opened.at_ms < wanted.until_ms)
        and wanted.input_sha256 in ("", opened.input_sha256)
        and (not wanted.workflow or is_named(opened.workflow, wanted.workflow, ends="@"))
        and (not wanted.policy or _has(opened.policies.values(), wanted.policy, ends="@#"))
        and (not wanted.component or _is_of(state, wanted.component))
        and (not wanted.id or _has_id(state, wanted.id))
    )


def _is_of(state: SessionState, component: str) -> bool:
    pins = state.opened.pins.values()
    return _has(pins, component, ends="@") or _has(served_by(state), component, ends="@")


def _has(texts: Iterable[str], wanted: str, *, ends: str) -> bool:
    return any(is_named(text, wanted, ends=ends) for text in texts)


def _has_id(state: SessionState, name: str) -> bool:
    opened = state.opened
    mine = (state.session_id, opened.lineage_id, trace_id_of(opened.traceparent))
    return name in mine or name in state.calls


def served_by(state: SessionState) -> set[str]:
    """Who was asked, as name@version: what each attempt's row says."""
    found = set()
    for call in state.calls.values():
        created = call.created
        if not call.attempts and created.component:
            found.add(f"{created.component}@{created.version}")
        for attempt in call.attempts:
            started, ended = attempt.started, attempt.ended
            name = started.component if started else created.component
            version = (ended.served_version if ended else "") or (
                started.version if started else created.version
            )
            if name:
                found.add(f"{name}@{version}")
    return found


def trace_id_of(traceparent: str) -> str:
    """The trace of a header; empty where there is none."""
    parsed = parse_traceparent(traceparent)
    return parsed.trace_id if parsed is not None else ""


def _match_of_row(row: LineageRow) -> LineageMatch:
    return LineageMatch(
        session_id=row.session_id,
        lineage_id=row.lineage_id,
        workflow=row.workflow,
        workflow_sha256=row.workflow_sha256,
        status=row.status,
        error=row.error,
        fell_back=row.fell_back,
        opened_at=rfc3339(int(row.opened_ms)),
        ended_at=rfc3339(int(row.ended_ms)) if row.ended_ms is not None else "",
        input_sha256=row.input_sha256,
        intended=row.intended,
        served=tuple(row.served),
        policies=row.policies,
        trace_id=row.trace_id,
    )
