"""A session's events as a stream: read from the journal, never from memory, and only once synced.

Numbers are the journal's sequences: 1, 2, 3 ... without gaps, so that a client resumes by the last
one it saw. The stream ends behind the terminal event.
"""

import asyncio
from collections.abc import AsyncIterator

import msgspec

from acp_spec.bindings.errors import error
from acp_spec.model.errors import AcpFailure, Reason
from gateway.engine.events import AnyEvent, SessionEnded
from gateway.runtime.driver import Driver
from gateway.runtime.live import Erased, Live, unreadable
from gateway.stores.errors import KeyGone, RecordError, StoreCorrupt
from gateway.stores.event_codec import Sealer
from gateway.stores.journal import read_events
from gateway.stores.ports import Store

Numbered = tuple[int, str, bytes]


class Streams:
    """Event streams of one gateway's sessions."""

    def __init__(self, driver: Driver, store: Store, *, sealer: Sealer) -> None:
        self._driver = driver
        self._store = store
        self._sealer = sealer

    async def events(self, session_id: str, after: int) -> AsyncIterator[Numbered]:
        """Events beyond number `after`; waits for new ones until the session has ended."""
        changed = asyncio.Event()
        last = max(0, after)
        while True:
            live = self._find(session_id)
            live.on_change.append(changed.set)
            try:
                on_disk = live.state.sequence  # once the sync is back; what came later may not be
                if live.end_on_disk and live.state.sequence <= last:
                    return  # nothing to wait for: a resume at the end is answered at once
                await self._driver.committer.synced()
                for number, event in self._read(session_id, last):
                    if number > on_disk:
                        break
                    last = number
                    yield number, type(event).__name__, msgspec.json.encode(event)
                    if isinstance(event, SessionEnded):
                        live.end_on_disk = True
                        return
                if live.state.terminal and live.state.sequence <= last:
                    return
                with self._driver.committer.waking(changed.set):
                    await changed.wait()
                changed.clear()
            finally:
                live.on_change.remove(changed.set)

    def _find(self, session_id: str) -> Live:
        try:
            live = self._driver.sessions.find(session_id)
        except Erased:
            live = None
        if live is None:
            raise _expired()
        return live

    def _read(self, session_id: str, after: int) -> list[tuple[int, AnyEvent]]:
        try:
            return list(read_events(self._store, self._sealer, session_id=session_id, after=after))
        except KeyGone:
            raise _expired() from None
        except (RecordError, StoreCorrupt) as problem:
            raise unreadable(session_id, problem) from problem


def _expired() -> AcpFailure:
    message = "the session's events are no longer kept"
    return AcpFailure(error(Reason.EVENTS_EXPIRED, message))
