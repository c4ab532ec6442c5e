"""After a start: bring every session that had not ended back to work, a few at a time.

The list index says which; their journals say what is pending. An attempt that was in flight is lost
(its side effect UNKNOWN), and the recovery policy decides about it like about any failure; unless
`keep` takes it, because its instance may come back with it. What is read back is paced, so that a
gateway with many open sessions answers from the start.
"""

import asyncio
from collections.abc import Iterator
from typing import Protocol

from acp_spec.model.enums import SessionStatus
from acp_spec.model.errors import AcpFailure
from gateway.engine.pending import attempts_in_flight, lost_attempt, pending
from gateway.engine.states import CallState
from gateway.runtime.driver import Driver
from gateway.runtime.live import Erased
from gateway.stores.ports import Store, Table
from gateway.stores.tables import (
    listed_prefix,
    listed_session,
    listed_tenant,
    listed_tenants,
)
from gateway.telemetry.logs import get_log

PACE = 8
"""Sessions resumed before the loop serves others: some milliseconds of replay."""


class Keep(Protocol):
    """Whether an attempt that was in flight stays open, for its instance to claim."""

    def __call__(self, session_id: str, call: CallState, *, attempt: int) -> bool: ...


log = get_log(__name__)


def _lose_all(session_id: str, call: CallState, *, attempt: int) -> bool:
    return False


def open_sessions(store: Store, *, twins: bool = False) -> list[str]:
    """Ids of every session that had not ended, of all tenants, oldest first; or of every twin."""
    return sorted(session for session, _ in open_rows(store, twins=twins))


def open_rows(store: Store, *, twins: bool = False) -> Iterator[tuple[str, str]]:
    """Id and `workflow@version` of each of them."""
    for tenant in _tenants(store, twins=twins):
        for status in (SessionStatus.RUNNING, SessionStatus.WAITING):
            prefix = listed_prefix(tenant, status.value, twins=twins)
            for key, value in store.scan(Table.INDEX, prefix):
                yield listed_session(key), value.decode()


def _tenants(store: Store, *, twins: bool) -> Iterator[str]:
    """Every tenant in the list index, by one read each."""
    beyond = b""
    while True:
        row = next(iter(store.scan(Table.INDEX, listed_tenants(twins=twins), after=beyond)), None)
        if row is None:
            return
        tenant, beyond = listed_tenant(row[0])
        yield tenant


async def resume_all(driver: Driver, session_ids: list[str], *, keep: Keep = _lose_all) -> int:
    """Resume them; the number of those that could not be read (logged, left as they are)."""
    unreadable = 0
    driver.open_sessions += len(session_ids)
    for count, session_id in enumerate(session_ids):
        if count % PACE == 0:
            await asyncio.sleep(0)
        try:
            _resume(driver, session_id, keep=keep)
        except (AcpFailure, Erased) as problem:
            unreadable += 1
            driver.open_sessions -= 1
            log.error("session_unreadable", cause=problem, session_id=session_id)
    return unreadable


def _resume(driver: Driver, session_id: str, *, keep: Keep) -> None:
    live = driver.sessions.find(session_id)
    if live is None or live.state.terminal:
        driver.open_sessions -= 1
        return
    at_ms = driver.now_ms(live)
    lost = [
        lost_attempt(live.state, call, attempt=attempt, at_ms=at_ms)
        for call, attempt in attempts_in_flight(live.state)
        if not keep(session_id, call, attempt=attempt)
    ]
    driver.resume(live, pending(live.state, at_ms), events=lost)
