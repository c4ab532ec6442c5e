"""Deleting a session: its payloads are gone from every place, its tombstone stays (SPEC section 6).

The journal is sealed with the session's key; destroying that one key destroys the payloads. Sealed
records stay as unreadable bytes. Trajectories already delivered are taken out of their files.
"""

from collections.abc import Awaitable, Callable, Sequence

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

BY_RETENTION = "archive.keep_days"
"""Who erased what had its time: the setting."""


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
        session_id = live.state.session_id
        self._driver.committer.put(Table.META, erasing_row(session_id), b"")
        twins = self.begin(live, by=principal.subject)
        await self._driver.committer.synced()
        for one in (session_id, *twins):
            await self._destroy(one)

    def begin(self, live: Live, *, by: str) -> tuple[str, ...]:
        """In this tick's batch: the session is erased, and this is what is left to show of it.

        The twins that go with it; their and its key are still to be destroyed.
        """
        state = live.state
        session_id = state.session_id
        at_ms = self._driver.now_ms(live)
        view = msgspec.structs.replace(session_view(state), output=ABSENT, error=None)
        tombstone = Tombstone(
            tenant=state.opened.tenant,
            erased_at_ms=at_ms,
            erased_by=by,
            view=msgspec.structs.replace(view, labels={}, erased_at=rfc3339(at_ms)),
        )
        committer = self._driver.committer
        self._driver.feed(live, SessionErased(at_ms=at_ms, by=by))
        committer.put(Table.SESSION, session_row(session_id), msgspec.json.encode(tombstone))
        self._free_key(live)
        return self._end_twins(live)

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
        await self.destroy_keys((session_id,))
        await self._forget(session_id)
        self._driver.committer.delete(Table.META, erasing_row(session_id))
        await self._driver.committer.synced()

    async def destroy_keys(self, session_ids: Sequence[str]) -> None:
        """From here on nobody can read what the journal has of them."""
        committer = self._driver.committer
        for session_id in session_ids:
            for shard in (Shard.EXECUTION, Shard.FEEDBACK):
                prefix = shard_row(session_id, shard.value)
                for key, _ in list(self._store.scan(Table.SHARD, prefix)):
                    committer.delete(Table.SHARD, key)
        await committer.erase(Table.KEY, *map(session_row, session_ids))
        for session_id in session_ids:
            self._sealer.forget(session_id)
            self._driver.sessions.drop(session_id)

    def tombstone(self, session_id: str, principal: Principal) -> SessionView | None:
        """What is left to show of a deleted session, to its own tenant."""
        found = self._tombstone(session_id, principal)
        return found.view if found is not None else None

    def epitaph(self, session_id: str, principal: Principal) -> str:
        """Why its own tenant finds nothing of a session any more; empty if it was not erased."""
        found = self._tombstone(session_id, principal)
        if found is None:
            return ""
        if found.erased_by == BY_RETENTION:
            return (
                f"retention took the session {session_id}: {BY_RETENTION} says how long they stay"
            )
        return f"the session {session_id} was deleted; what it held is gone"

    def _tombstone(self, session_id: str, principal: Principal) -> Tombstone | None:
        row = self._store.get(Table.SESSION, session_row(session_id))
        if row is None:
            return None
        found = msgspec.json.decode(row, type=Tombstone)
        return found if found.tenant == principal.tenant else None
