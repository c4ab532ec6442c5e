"""Retention: sessions that have had their time are erased everywhere, as by a deletion.

A file of the archive goes with its day; what goes from journal and records are those sessions of it
whose end and last feedback are both before that time: of the others something newer is kept. Killed
in between, the file is still there and all of it comes again.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from acp_spec.model.errors import AcpFailure
from acp_spec.model.ids import is_session_id
from acp_spec.model.times import parse_rfc3339
from gateway.runtime.driver import Driver
from gateway.runtime.erasing import BY_RETENTION, Erasing
from gateway.runtime.live import Erased
from gateway.stores.archive.order import Expiring
from gateway.stores.ports import Table
from gateway.stores.tables import erasing_row
from gateway.telemetry.logs import get_log

AT_ONCE: Final = 200
"""Sessions whose keys are destroyed together: that flushes the store, some 50 ms each time."""

READ_AT_ONCE: Final = 4
"""Sessions read back before the loop serves others."""

Tell = Callable[[Sequence[str]], Awaitable[None]]
"""Say in the trajectory log that these sessions are gone."""

log = get_log("gateway.archive")


class Retention:
    """Erases by age."""

    def __init__(self, driver: Driver, erasing: Erasing, *, tell: Tell) -> None:
        self._driver = driver
        self._erasing = erasing
        self._tell = tell

    async def expire(self, file: Expiring) -> None:
        """Every session of this file of which nothing newer is known."""
        before_ms = parse_rfc3339(f"{file.before}T00:00:00Z")
        assert before_ms is not None, "a pass names a day"
        ids = [one for one in file.session_ids if is_session_id(one)]
        for start in range(0, len(ids), AT_ONCE):
            await self._expire(ids[start : start + AT_ONCE], before_ms)

    async def _expire(self, session_ids: Sequence[str], before_ms: int) -> None:
        gone, twins = list[str](), list[str]()
        for number, session_id in enumerate(session_ids):
            if number % READ_AT_ONCE == 0:
                await asyncio.sleep(0)
            found = self._begun(session_id, before_ms)
            if found is not None:
                gone.append(session_id)
                twins += found
        await self._driver.committer.synced()
        await self._erasing.destroy_keys([*gone, *twins])
        for twin in twins:
            self._driver.committer.delete(Table.META, erasing_row(twin))
        if gone:
            await self._tell(gone)
            log.info("sessions_expired", sessions=len(gone))

    def _begun(self, session_id: str, before_ms: int) -> tuple[str, ...] | None:
        """Begin to erase it; the twins that go with it. None: it stays, or is not ours."""
        try:
            live = self._driver.sessions.find(session_id)
        except Erased:
            return ()  # a pass before this one was killed: readers may not know it yet
        except AcpFailure as problem:
            log.error("session_not_expired", session_id=session_id, cause=problem)
            return None
        if live is None or not live.state.terminal:
            return None
        if live.state.erased:
            return ()
        # The time of its last event: its end, or its last feedback.
        if live.state.now_ms >= before_ms:
            return None
        return self._erasing.begin(live, by=BY_RETENTION)
