"""Append first, act second: one write batch per loop tick, one sync thread, one wake per group.

Everything here is called on the event loop's thread. What is appended in a tick is written together
at its end; `after_write` callbacks run right behind that write, `after_sync` callbacks once it is
on disk. After the first failure nothing more is acknowledged: callbacks of later work never run.
"""

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, Protocol

from gateway.engine.events import AnyEvent, Opened
from gateway.runtime.sync_thread import Job, SyncThread, Worker
from gateway.stores.errors import StoreError, StoreFailed
from gateway.stores.event_codec import Sealer
from gateway.stores.ports import Batch, Store, Table
from gateway.stores.tables import session_row

Callback = Callable[[], None]


class CommitMetrics(Protocol):
    """What an observer of commits may count; called on the loop's thread."""

    def journal_flushed(self, events: int, *, flush_s: float) -> None:
        """One group of appended events is on disk (without sync: written)."""


class _Group(NamedTuple):
    """What one sync covered: everything up to this tick, so many events in all, and its time."""

    tick: int
    events: int
    seconds: float


class Committer:
    """The only writer of a store. `sync=False`: a written batch counts as synced (tests only)."""

    def __init__(
        self,
        store: Store,
        sealer: Sealer,
        *,
        sync: bool,
        metrics: CommitMetrics | None = None,
        worker: Worker | None = None,
    ) -> None:
        self._store = store
        self._sealer = sealer
        self._sync = sync
        self._metrics = metrics
        self._loop: asyncio.AbstractEventLoop | None = None
        self._batch: Batch | None = None
        self._events = 0
        self._flushed_events = 0
        self._scheduled = False
        self._on_written: list[Callback] = []
        self._on_synced: list[Callback] = []
        self._waiting: deque[tuple[int, list[Callback]]] = deque()
        self._written_tick = 0
        self._asked_tick = 0
        self._synced_tick = 0
        self._failed: StoreError | None = None
        self._on_failure: dict[Callable[[StoreError], None], None] = {}  # in order, quick to leave
        self._worker = worker or SyncThread()
        self.closed = False
        """After the last sync: nothing may be appended any more."""

    @property
    def failed(self) -> StoreError | None:
        """The first failure; once set, nothing later is acknowledged."""
        return self._failed

    def on_failure(self, callback: Callable[[StoreError], None]) -> None:
        """`callback(error)` runs once, on the loop, at the first failure."""
        self._on_failure[callback] = None

    @contextlib.contextmanager
    def waking(self, callback: Callback) -> Iterator[None]:
        """Inside the block a failure calls `callback`: whoever waits for a promise gives up."""

        def wake(_: StoreError) -> None:
            callback()

        self._on_failure[wake] = None
        try:
            yield
        finally:
            del self._on_failure[wake]

    def refuse_if_failed(self) -> None:
        """Raise what failed before anything is begun that can be kept no more."""
        if self._failed is not None:
            raise StoreFailed(f"an earlier write failed: {self._failed}") from self._failed

    def append(self, session_id: str, first_sequence: int, *, events: Sequence[AnyEvent]) -> None:
        """Journal `events` as one record. The session's first record (`Opened`) makes its key."""
        assert events, "a record holds at least one event"
        batch = self.batch
        if type(events[0]) is Opened:
            batch.put(Table.KEY, session_row(session_id), self._sealer.new_key(session_id))
        self._events += len(events)
        key, record = self._sealer.encode_record(session_id, first_sequence, events=events)
        batch.put(Table.JOURNAL, key, record)

    @property
    def batch(self) -> Batch:
        """This tick's batch, for whoever puts several rows before it lets the loop go on."""
        batch = self._batch
        if batch is None:
            batch = self._batch = self._store.batch()
            self._schedule()
        return batch

    def put(self, table: Table, key: bytes, value: bytes) -> None:
        """Put a row in this tick's batch."""
        self.batch.put(table, key, value)

    def delete(self, table: Table, key: bytes) -> None:
        """Delete a row in this tick's batch."""
        self.batch.delete(table, key)

    def after_write(self, callback: Callback) -> None:
        """Run `callback` right after this tick's batch is written (survives a killed process)."""
        self._on_written.append(callback)
        self._schedule()

    def after_sync(self, callback: Callback) -> None:
        """Run `callback` once everything appended so far is on disk (survives a power cut)."""
        self._on_synced.append(callback)
        self._schedule()

    async def synced(self) -> None:
        """Wait until everything appended so far is on disk. Raises the failure, if there is one."""
        await self._wait(self.after_sync)

    async def written(self) -> None:
        """Wait until everything appended so far is written. Raises the failure, if there is one."""
        await self._wait(self.after_write)

    async def erase(self, table: Table, *keys: bytes) -> None:
        """Write what is pending, then delete rows so that their values are gone from disk too."""
        await self.written()
        await self.in_thread(lambda: self._store.erase(table, *keys))

    async def in_thread(self, job: Job) -> None:
        """Run a slow piece of store work in the sync thread, between two syncs."""
        assert not self.closed, "the committer is closed"
        loop = self._running_loop()
        done: asyncio.Future[None] = loop.create_future()

        def work() -> None:
            try:
                job()
            except StoreError as error:
                loop.call_soon_threadsafe(_reject, done, error)
            else:
                loop.call_soon_threadsafe(_resolve, done)

        self._worker.put(work)
        await done

    async def close(self) -> None:
        """Write and sync what is pending, then stop the thread. The store stays open."""
        if self.closed:
            return
        try:
            while self._failed is None and self._is_pending():
                await self.synced()  # its callbacks may append more
        except StoreError:
            pass  # on_failure has already told it; closing goes on
        finally:
            self.closed = True
            await self._worker.close()

    # ---- one tick ------------------------------------------------------------------------------

    def _schedule(self) -> None:
        if not self._scheduled:
            assert not self.closed, "the committer is closed: nothing may be appended any more"
            self._scheduled = True
            self._running_loop().call_soon(self._flush)

    def _flush(self) -> None:
        """The end of a tick: write, act on what is written, ask for the sync."""
        self._scheduled = False
        batch, self._batch = self._batch, None
        on_written, self._on_written = self._on_written, []
        on_synced, self._on_synced = self._on_synced, []
        if self._failed is None and batch is not None:
            self._write(batch)
        if self._failed is not None:
            return
        if on_synced and self._sync and self._written_tick > self._synced_tick:
            self._waiting.append((self._written_tick, on_synced))
            self._ask_for_sync()
            on_synced = []
        self._run(on_written)
        self._run(on_synced)

    def _write(self, batch: Batch) -> None:
        begin = time.perf_counter()
        try:
            self._store.write(batch)
        except StoreError as error:
            self._fail(error)
            return
        self._written_tick += 1
        if not self._sync:
            self._measure(self._events, time.perf_counter() - begin)

    def _run(self, callbacks: list[Callback]) -> None:
        """A callback that raises is our own mistake: it is reported, the others still run."""
        for callback in callbacks:
            if self._failed is not None:
                return
            try:
                callback()
            except Exception as error:
                self._running_loop().call_exception_handler(
                    {"message": "a callback after a commit raised", "exception": error}
                )

    # ---- sync ----------------------------------------------------------------------------------

    def _ask_for_sync(self) -> None:
        """One request at a time: what arrives meanwhile is the next group."""
        if self._asked_tick > self._synced_tick:
            return
        self._asked_tick = self._written_tick
        self._worker.put(self._sync_group)

    def _sync_group(self) -> None:
        """In the sync thread."""
        loop = self._running_loop()
        # Read before the sync: a tick written while it runs may not be covered by it.
        tick, events = self._written_tick, self._events
        begin = time.perf_counter()
        try:
            self._store.sync()
        except StoreError as error:
            loop.call_soon_threadsafe(self._fail, error)
        else:
            took_s = time.perf_counter() - begin
            loop.call_soon_threadsafe(self._group_synced, _Group(tick, events, took_s))

    def _group_synced(self, group: _Group) -> None:
        if self._failed is not None:
            return
        self._synced_tick = group.tick
        due: list[Callback] = []
        while self._waiting and self._waiting[0][0] <= group.tick:
            due += self._waiting.popleft()[1]
        if self._waiting:
            self._ask_for_sync()  # before the callbacks: the disk works while they run
        self._measure(group.events, group.seconds)
        self._run(due)

    def _measure(self, events: int, seconds: float) -> None:
        flushed, self._flushed_events = events - self._flushed_events, events
        if self._metrics is not None:
            self._metrics.journal_flushed(flushed, flush_s=seconds)

    def _is_pending(self) -> bool:
        unsynced = self._sync and self._written_tick > self._synced_tick
        return self._scheduled or unsynced

    # ---- failure, waiting, thread ---------------------------------------------------------------

    def _fail(self, error: StoreError) -> None:
        if self._failed is not None:
            return
        self._failed = error
        self._waiting.clear()
        for callback in tuple(self._on_failure):
            callback(error)

    async def _wait(self, register: Callable[[Callback], None]) -> None:
        done: asyncio.Future[None] = self._running_loop().create_future()

        def reject(error: StoreError) -> None:
            _reject(done, error)

        self.refuse_if_failed()
        self._on_failure[reject] = None
        try:
            register(lambda: _resolve(done))
            await done
        finally:
            del self._on_failure[reject]

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
        return self._loop


def _resolve(done: "asyncio.Future[None]") -> None:
    if not done.done():
        done.set_result(None)


def _reject(done: "asyncio.Future[None]", error: StoreError) -> None:
    if not done.done():
        done.set_exception(error)
