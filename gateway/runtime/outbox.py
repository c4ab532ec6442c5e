"""Sink number one: each finished session's trajectory, exactly once by (session, sequence).

`record` puts a row beside the event in one batch. A background task takes rows, builds the
trajectories, waits until all they say is on disk (only synced facts leave), puts the lines on disk
and deletes the rows. Killed between the last two, the next start finds the lines and settles them.

A trajectory is of the session as it stands when it is built. So several rows of one session that
wait at the same time would be told the same: the newest is, and settles the others.
"""

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Sequence
from itertools import chain, islice
from typing import NamedTuple

import msgspec

from acp_spec.model.ids import is_session_id, time_ms_of
from acp_spec.model.trajectory import Trajectory
from gateway.runtime.clock import Clock
from gateway.runtime.committer import Committer
from gateway.stores.errors import StoreError
from gateway.stores.ports import Store, Table
from gateway.stores.tables import SEQUENCE_BYTES, parse_sequence_row, sequence_row, session_row
from gateway.stores.trajectory_log import BATCH_LINES_MAX, Line, TrajectoryLog, line_of
from gateway.telemetry.logs import get_log

Build = Callable[[str], Trajectory | None]
"""The session's trajectory as it stands now; None when there is none any more (it was deleted)."""

STUCK_AFTER = 3
"""Failures in a row until readiness tells of it: some 7 s, a hiccup is over by then."""

READY_MAX = 16_384
"""Rows held in memory (~100 bytes each); the others wait in the store."""

BATCH_BYTES_MAX = 8 << 20
"""Lines held in memory at once: a batch ends early when it is that big."""

BUILT_AT_ONCE = 4
"""Trajectories built before the loop serves others: about 1 ms."""

LINGER_S = 0.25
"""Pause between small batches: each costs two syncs of the disk that sessions wait for too."""

PROMPT_LINGER_S = 0.06
"""The same while somebody reads the log on: what ended is to be seen within 200 ms."""

DRAIN_S = 5.0
"""How long a stop may deliver what is left; a host kills after some 30 s."""

BACKOFF_FIRST_S, BACKOFF_MAX_S = 1.0, 60.0
"""A full disk takes a person to mend: look again soon, then once a minute."""

log = get_log(__name__)

Group = list[bytes]
"""The rows of one session that wait."""


class _Batch(NamedTuple):
    """What to deliver: whose rows it settles, and the lines (fewer when sessions were deleted)."""

    groups: list[Group]
    lines: list[bytes]


class _Waiting:
    """Rows by session, in the order in which their sessions came."""

    def __init__(self) -> None:
        self._groups: dict[bytes, Group] = {}
        self._rows = 0

    def __len__(self) -> int:
        """How many sessions."""
        return len(self._groups)

    @property
    def is_full(self) -> bool:
        return self._rows >= READY_MAX

    def add(self, row: bytes) -> None:
        self._groups.setdefault(row[:-SEQUENCE_BYTES], []).append(row)
        self._rows += 1

    def take(self, count: int) -> list[Group]:
        """Up to so many sessions' rows."""
        groups = [self._groups.pop(key) for key in list(islice(self._groups, count))]
        self._rows -= sum(map(len, groups))
        return groups

    def put_back(self, groups: Iterable[Group]) -> None:
        """They were taken and are the first again, with what came meanwhile."""
        first: dict[bytes, Group] = {}
        for group in groups:
            key = group[0][:-SEQUENCE_BYTES]
            first[key] = group + self._groups.pop(key, [])
            self._rows += len(group)
        self._groups = first | self._groups

    def drop(self, session_id: str) -> None:
        self._rows -= len(self._groups.pop(session_row(session_id), ()))

    def clear(self) -> None:
        self._groups.clear()
        self._rows = 0


class Outbox:
    """The sink's one writer. Used on the event loop's thread; `run` is its task."""

    def __init__(
        self,
        store: Store,
        committer: Committer,
        *,
        trajectories: TrajectoryLog,
        build: Build,
        clock: Clock,
    ) -> None:
        self._store = store
        self._committer = committer
        self._trajectories = trajectories
        self._build = build
        self._clock = clock
        self._ready = _Waiting()
        self._more_in_store = True
        self._unbuildable: set[bytes] = set()
        self._wake = asyncio.Event()
        self._stop = asyncio.Event()
        self._give_up_at = 0.0
        self._is_idle = False
        self._busy = asyncio.Lock()
        self._lag = 0
        self._linger_s = LINGER_S
        self._failures = 0
        self._has_given_up = False

    @property
    def lag(self) -> int:
        """Rows not delivered yet: readiness and a gauge look at it."""
        return self._lag

    @property
    def is_stuck(self) -> bool:
        """Nothing has been delivered for some tries, or never will: a person has to look."""
        return self._has_given_up or self._failures >= STUCK_AFTER

    def record(self, session_id: str, sequence: int) -> None:
        """Ask for the session's trajectory, in the batch of the event that has this sequence."""
        row = sequence_row(session_id, sequence)
        self._committer.put(Table.OUTBOX, row, b"")
        self._committer.after_write(lambda: self._recorded(row))

    async def run(self) -> None:
        """Deliver until `stop`; what a crash left behind comes first."""
        try:
            await self._recover()
            while not self._is_over():
                await self._turn()
        except StoreError as error:
            self._has_given_up = True
            log.error("outbox_stopped", cause=error, waiting=self._lag)
        await asyncio.to_thread(self._trajectories.close)

    def stop(self) -> None:
        """Let `run` deliver what is ready, for a few seconds at most, and end; the rest waits."""
        self._give_up_at = asyncio.get_running_loop().time() + DRAIN_S
        self._stop.set()
        self._wake.set()

    def be_prompt(self) -> None:
        """Somebody reads the log on: write small batches sooner from now on."""
        self._linger_s = PROMPT_LINGER_S

    async def erase(self, session_id: str) -> int:
        """Blank the session's lines in the files, and take its rows out of the outbox.

        Call it once `build` gives None for the session. Returns how many lines went.
        """
        async with self._busy:
            since_ms = time_ms_of(session_id) if is_session_id(session_id) else 0
            now_ms = self._clock.now_ms()
            gone = await asyncio.to_thread(
                self._trajectories.erase, session_id, since_ms, now_ms=now_ms
            )
            self._ready.drop(session_id)
            for row, _ in self._store.scan(Table.OUTBOX, session_row(session_id)):
                self._unbuildable.discard(row)
                self._settle(row)
            await self._committer.written()
        return gone

    async def entomb(self, session_ids: Sequence[str]) -> None:
        """Tell readers of the log that these sessions are gone from everywhere."""
        async with self._busy:
            now_ms = self._clock.now_ms()
            await asyncio.to_thread(self._trajectories.entomb, session_ids, now_ms)

    # ---- one turn ------------------------------------------------------------------------------

    async def _turn(self) -> None:
        """Deliver a batch, then wait for what comes next."""
        try:
            self._is_idle = not await self._deliver_batch()
        except OSError as error:
            await self._back_off(error)
            return
        self._failures = 0
        if self._is_idle and not self._stop.is_set():
            await self._wake.wait()
            self._is_idle = False
        elif len(self._ready) < BATCH_LINES_MAX and not self._more_in_store:
            await self._stopped_within(self._linger_s)

    def _is_over(self) -> bool:
        if not self._stop.is_set():
            return False
        return self._is_idle or asyncio.get_running_loop().time() >= self._give_up_at

    # ---- one batch -----------------------------------------------------------------------------

    async def _deliver_batch(self) -> bool:
        """Deliver some rows; False when there was nothing to do."""
        async with self._busy:
            self._wake.clear()
            groups = self._next_groups()
            if not groups:
                return False
            batch = await self._built(groups)
            # What the lines say, and the deletes of the batch before, are on disk from here on.
            await self._committer.synced()
            try:
                if batch.lines:
                    now_ms = self._clock.now_ms()
                    await asyncio.to_thread(self._trajectories.append, batch.lines, now_ms)
            except OSError:
                self._ready.put_back(groups)
                raise
            self._ready.put_back(groups[len(batch.groups) :])
            for row in chain.from_iterable(batch.groups):
                if row not in self._unbuildable:
                    self._settle(row)
            await self._committer.written()
            return True

    def _next_groups(self) -> list[Group]:
        if not self._ready and self._more_in_store:
            for row, _ in self._store.scan(Table.OUTBOX, b""):
                if self._ready.is_full:
                    break
                if row not in self._unbuildable:
                    self._ready.add(row)
            self._more_in_store = self._ready.is_full
        return self._ready.take(BATCH_LINES_MAX)

    async def _built(self, groups: list[Group]) -> _Batch:
        """Lines for the first of `groups`, as many as fit; the loop breathes in between."""
        done: list[Group] = []
        lines: list[bytes] = []
        size = 0
        for group in groups:
            done.append(group)
            line = self._line(group)
            if line is not None:
                lines.append(line)
                size += len(line)
            if size >= BATCH_BYTES_MAX:
                break
            if len(done) % BUILT_AT_ONCE == 0:
                await asyncio.sleep(0)
        return _Batch(done, lines)

    def _line(self, group: Group) -> bytes | None:
        session_id, sequence = parse_sequence_row(max(group))
        try:
            trajectory = self._build(session_id)
        except Exception as error:
            # Our own mistake or a damaged record: its rows stay, and the others go on.
            self._unbuildable.update(group)
            log.error("trajectory_not_built", cause=error, session_id=session_id)
            return None
        if trajectory is None:
            return None
        if trajectory.sequence != sequence:
            trajectory = msgspec.structs.replace(trajectory, sequence=sequence)
        return line_of(msgspec.json.encode(trajectory))

    def _settle(self, row: bytes) -> None:
        self._committer.delete(Table.OUTBOX, row)
        self._lag -= 1

    # ---- start, wake, failure --------------------------------------------------------------------

    async def _recover(self) -> None:
        while not self._is_over():
            try:
                async with self._busy:  # a deletion left over from a crash may rewrite files now
                    await self._settle_delivered(
                        await asyncio.to_thread(self._trajectories.recover)
                    )
            except OSError as error:
                await self._back_off(error)
            else:
                break
        # Rows recorded until now stand in the store as well: count all of them there, once.
        self._lag = sum(1 for _ in self._store.scan(Table.OUTBOX, b""))
        self._ready.clear()
        self._more_in_store = True

    async def _settle_delivered(self, lines: frozenset[Line]) -> None:
        """Lines whose rows a crash kept: settle them before anything is appended.

        Later is too late: a second crash finds a newer file, and its end says nothing of them. The
        sync before the next append takes these deletes along.
        """
        for line in lines:
            newest = sequence_row(*line)
            for row, _ in self._store.scan(Table.OUTBOX, session_row(line.session_id)):
                if row <= newest:
                    self._committer.delete(Table.OUTBOX, row)
        await self._committer.written()

    def _recorded(self, row: bytes) -> None:
        self._lag += 1
        if not self._more_in_store:
            if self._ready.is_full:
                self._more_in_store = True
            else:
                self._ready.add(row)
        self._wake.set()

    async def _back_off(self, error: OSError) -> None:
        """Nothing is lost while the disk is full: the rows wait in the store."""
        if self._failures == 0:
            log.error("outbox_paused", cause=error, waiting=self._lag)
        wait_s = min(BACKOFF_MAX_S, BACKOFF_FIRST_S * 2**self._failures)
        self._failures = min(self._failures + 1, 10)
        self._is_idle = True  # a stop does not wait for the disk
        await self._stopped_within(wait_s)

    async def _stopped_within(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._stop.wait(), seconds)
