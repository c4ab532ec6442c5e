"""A tenant's sessions that are open now, from the gateway's own index: never from the records.

Bounded: a look costs the loop some milliseconds whatever there is, and says if it saw a part only.
"""

import heapq
from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple

import msgspec

from acp_spec.model.enums import TERMINAL_SESSION, SessionStatus
from acp_spec.model.errors import AcpFailure
from acp_spec.model.ids import time_ms_of
from gateway.engine.shards import PlanRow, Shard
from gateway.engine.states import SessionState
from gateway.runtime.live import Live
from gateway.stores.ports import Store, Table
from gateway.stores.records.questions.sessions import SessionItem
from gateway.stores.tables import listed_prefix, listed_session, shard_row

COUNTED_MAX: Final = 2_000
LOOKED_AT_MAX: Final = 500
STATES_MAX: Final = 50
"""Where a filter needs the state itself: one that is not in memory is read back from its journal,
a millisecond of the loop.
"""

OPEN_STATUSES: Final = tuple(one for one in SessionStatus if one not in TERMINAL_SESSION)


class Found(NamedTuple):
    """Sessions, newest first, and down to which id they are all; empty: there are no more."""

    items: list[SessionItem]
    down_to: str = ""


class OpenCount(msgspec.Struct, frozen=True, kw_only=True):
    """`is_all` is false where there are more than were counted."""

    running: int
    waiting: int
    is_all: bool


class _Listed(NamedTuple):
    session_id: str
    workflow: str
    status: SessionStatus


class OpenSessions:
    """Looks at one gateway's index."""

    def __init__(self, store: Store, find: Callable[[str], Live | None]) -> None:
        self._store = store
        self._find = find

    def count(self, tenant: str, *, since_ms: int = 0, workflow: str = "") -> OpenCount:
        """How many are open that were opened since then."""
        counts = dict.fromkeys(OPEN_STATUSES, 0)
        is_all = True
        for looked_at, one in enumerate(self._listed(tenant)):
            if looked_at == COUNTED_MAX:
                is_all = False
                break
            if time_ms_of(one.session_id) < since_ms:
                break  # they come by time: no older one counts
            counts[one.status] += _is_named(one.workflow, workflow)
        return OpenCount(
            running=counts[SessionStatus.RUNNING],
            waiting=counts[SessionStatus.WAITING],
            is_all=is_all,
        )

    def page(self, tenant: str, filters: Mapping[str, str | int], *, limit: int) -> Found:
        """Up to `limit` that pass the filters, before `after`."""
        items: list[SessionItem] = []
        states = 0
        for looked_at, one in enumerate(self._listed(tenant, str(filters.get("after", ""))), 1):
            if _may_pass(one, filters):
                states += _needs_state(filters)
                if self._passes(one, filters):
                    items += self._item(one)
            if len(items) == limit or looked_at == LOOKED_AT_MAX or states == STATES_MAX:
                return Found(items, down_to=one.session_id)
        return Found(items)

    def _listed(self, tenant: str, after: str = "") -> Iterator[_Listed]:
        """Newest first, of all open statuses."""

        def of(status: SessionStatus) -> Iterator[_Listed]:
            prefix = listed_prefix(tenant, status.value)
            beyond = prefix + after.encode() if after else b""
            rows = self._store.scan(Table.INDEX, prefix, after=beyond, reverse=True)
            return (_Listed(listed_session(key), value.decode(), status) for key, value in rows)

        return heapq.merge(*map(of, OPEN_STATUSES), reverse=True)

    def _passes(self, one: _Listed, filters: Mapping[str, str | int]) -> bool:
        """What only the session's state can tell."""
        if not _needs_state(filters):
            return True
        try:
            live = self._find(one.session_id)
        except AcpFailure:
            return False  # its journal is damaged: whoever asks for it alone is told so
        if live is None:
            return False
        component, error = filters.get("component"), filters.get("error")
        return (component is None or str(component) in _serving(live.state)) and (
            error is None or str(error) in _reasons(live.state)
        )

    def _item(self, one: _Listed) -> tuple[SessionItem, ...]:
        row = self._store.get(Table.SHARD, shard_row(one.session_id, Shard.PLAN.value))
        if row is None:
            return ()
        plan = msgspec.json.decode(row, type=PlanRow)
        name, _, version = plan.workflow.partition("@")
        return (
            SessionItem(
                session_id=one.session_id,
                lineage_id=plan.lineage_id,
                workflow=name,
                version=version,
                status=plan.status.value,
                fell_back=plan.fell_back,
                opened_at=plan.opened_at_ms,
            ),
        )


def _needs_state(filters: Mapping[str, str | int]) -> bool:
    return "component" in filters or "error" in filters


def _may_pass(one: _Listed, filters: Mapping[str, str | int]) -> bool:
    """What its id and its place in the index tell. Nobody reviews an open session."""
    opened_ms = time_ms_of(one.session_id)
    version = filters.get("version")
    return (
        "review" not in filters
        and filters.get("status", one.status.value) == one.status.value
        and _is_named(one.workflow, str(filters.get("workflow", "")))
        and (version is None or one.workflow.partition("@")[2] == version)
        and int(filters.get("since", 0)) <= opened_ms
        and ("until" not in filters or opened_ms < int(filters["until"]))
    )


def _is_named(reference: str, workflow: str) -> bool:
    return not workflow or workflow in (reference, reference.partition("@")[0])


def _serving(state: SessionState) -> set[str]:
    return {
        attempt.started.component if attempt.started else call.created.component
        for call in state.calls.values()
        for attempt in call.attempts
    }


def _reasons(state: SessionState) -> set[str]:
    return {
        attempt.ended.error.reason
        for call in state.calls.values()
        for attempt in call.attempts
        if attempt.ended is not None and attempt.ended.error is not None
    }
