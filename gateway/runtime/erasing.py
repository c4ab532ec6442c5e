"""Deleting a session: its payloads are gone from every place, its tombstone stays (SPEC section 6).

The journal is sealed with the session's key; destroying that one key destroys the payloads. Sealed
records stay as unreadable bytes. Trajectories already delivered are taken out of their files.
"""

from collections.abc import Awaitable, Callable

import msgspec

from acp_spec.model.payload import ABSENT
from acp_spec.model.session import SessionView
from acp_spec.model.times import rfc3339
from gateway.engine.events import SessionErased
from gateway.engine.shards import Shard
from gateway.engine.views import session_view
from gateway.runtime.driver import Driver
from gateway.runtime.live import Live
from gateway.runtime.opening import KeyRow
from gateway.runtime.principal import Principal
from gateway.runtime.twins import end_twin
from gateway.stores.event_codec import Sealer
from gateway.stores.ports import Store, Table
from gateway.stores.tables import erasing_row, session_key_row, session_row, shard_row

Forget = Callable[[str], Awaitable[int]]
"""Take a session out of a place that keeps copies (the delivered trajectories)."""


class Tombstone(msgspec.Struct, frozen=True, kw_only=True):
    """What stays of a deleted session."""

    tenant: str
    erased_at_ms: int
    erased_by: str
    view: SessionView


class Erasing:
    """Deletes sessions that have ended."""

    def __init__(self, driver: Driver, store: Store, *, sealer: Sealer, forget: Forget) -> None:
        self._driver = driver
        self._store = store
        self._sealer = sealer
        self._forget = forget

    async def erase(self, live: Live, principal: Principal) -> None:
        """Destroy the key. A crash in between is finished by `finish` at the next start."""
        state = live.state
        session_id = state.session_id
        at_ms = self._driver.now_ms(live)
        view = msgspec.structs.replace(session_view(state), output=ABSENT, error=None)
        tombstone = Tombstone(
            tenant=state.opened.tenant,
            erased_at_ms=at_ms,
            erased_by=principal.subject,
            view=msgspec.structs.replace(view, labels={}, erased_at=rfc3339(at_ms)),
        )
        committer = self._driver.committer
        self._driver.feed(live, SessionErased(at_ms=at_ms, by=principal.subject))
        committer.put(Table.META, erasing_row(session_id), b"")
        committer.put(Table.SESSION, session_row(session_id), msgspec.json.encode(tombstone))
        self._free_key(live)
        twins = self._end_twins(live)
        await committer.synced()
        for one in (session_id, *twins):
            await self._destroy(one)

    def _end_twins(self, live: Live) -> tuple[str, ...]:
        """The sessions that ran beside it on the same payloads: they go with it."""
        found = []
        for mark in live.state.opened.rollouts:
            twin = self._driver.find(mark.twin) if mark.twin else None
            if twin is not None:
                if not twin.state.terminal:
                    end_twin(self._driver, twin, why="the session it ran beside was deleted")
                self._driver.committer.put(Table.META, erasing_row(mark.twin), b"")
                found.append(mark.twin)
        return tuple(found)

    def _free_key(self, live: Live) -> None:
        """Its session_key may open another session: a deleted one answers no repeat."""
        opened = live.state.opened
        if not opened.session_key:
            return
        row = session_key_row(opened.tenant, opened.session_key)
        stored = self._store.get(Table.INDEX, row)
        if stored is not None:
            key = msgspec.json.decode(stored, type=KeyRow)
            if key.session_id == opened.session_id:
                self._driver.committer.delete(Table.INDEX, row)

    async def erase_twin(self, session_id: str) -> None:
        """Destroy a twin that has told all it had to tell: it is in no trajectory file."""
        self._driver.committer.put(Table.META, erasing_row(session_id), b"")
        await self._destroy(session_id)

    async def finish(self) -> int:
        """Finish what a crash interrupted; the number of sessions."""
        rows = list(self._store.scan(Table.META, erasing_row()))
        for key, _ in rows:
            await self._destroy(key[len(erasing_row()) :].decode())
        return len(rows)

    async def _destroy(self, session_id: str) -> None:
        committer = self._driver.committer
        for shard in (Shard.EXECUTION, Shard.FEEDBACK):
            for key, _ in list(self._store.scan(Table.SHARD, shard_row(session_id, shard.value))):
                committer.delete(Table.SHARD, key)
        await committer.erase(Table.KEY, session_row(session_id))
        self._sealer.forget(session_id)
        self._driver.sessions.drop(session_id)
        await self._forget(session_id)
        committer.delete(Table.META, erasing_row(session_id))
        await committer.synced()

    def tombstone(self, session_id: str, principal: Principal) -> SessionView | None:
        """What is left to show of a deleted session, to its own tenant."""
        row = self._store.get(Table.SESSION, session_row(session_id))
        if row is None:
            return None
        found = msgspec.json.decode(row, type=Tombstone)
        return found.view if found.tenant == principal.tenant else None
