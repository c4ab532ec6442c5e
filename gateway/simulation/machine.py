"""The machine that a gateway lives on: its disk, its threads, its clock, and how all of it fails.

The disk forgets at a power cut what was not synced; the sync thread is a step whose end comes
later; a life ends at any passage of a named point. What a life leaves is found by the next one.
"""

from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from gateway.runtime.sync_thread import Job
from gateway.simulation.dice import Dice
from gateway.simulation.virtual_loop import Callback, Death, Process, VirtualLoop
from gateway.stores.errors import StoreFailed
from gateway.stores.forgetful import ForgetfulStore
from gateway.stores.memory import Operation
from gateway.stores.ports import Batch, Table
from gateway.stores.trajectory_log import BATCH_LINES_MAX, Line, TrajectoryLog, head_of

START_MS = 1_700_000_000_000
UP_MS = 86_400_000.0
"""The machine has been up for a day: the zero of a monotonic clock means nothing."""
POINTS = (
    "before write",
    "after write",
    "before sync",
    "during sync",
    "after sync",
    "before lines",
    "in a line",
    "after lines",
    "before erase",
    "after erase",
)
"""Where a life may end; each stands on one side of something durable."""

NO_SPACE = 28


class Watcher(Protocol):
    """Who keeps the books of what is durable."""

    def written(self, operations: Sequence[Operation]) -> None: ...

    def sync_begins(self) -> None: ...

    def synced(self) -> None: ...

    def lines_kept(self, lines: Sequence[bytes]) -> None: ...


class Fuse:
    """Ends the life at the next passage of the armed point."""

    def __init__(self) -> None:
        self.point = ""
        self.blow: Callable[[], None] = lambda: None

    def passes(self, point: str) -> None:
        if point == self.point:
            self.point = ""
            self.blow()
            raise Death


class Disk(ForgetfulStore):
    """The store of one life. A sync covers what was written when it began, once it is over."""

    def __init__(self, fuse: Fuse, watcher: Watcher) -> None:
        super().__init__()
        self._fuse = fuse
        self._watcher = watcher
        self.covered = 0
        self.in_thread = False
        self.is_full = False
        self.loses_syncs = False

    def write(self, batch: Batch) -> None:
        self._fuse.passes("before write")
        if self.is_full:
            raise StoreFailed("no space left on the device")
        super().write(batch)
        self._watcher.written(self._unsynced[-1].operations)
        self._fuse.passes("after write")

    def sync(self) -> None:
        self._fuse.passes("before sync")
        if self.loses_syncs:
            raise StoreFailed("input/output error")
        self.covered = len(self._unsynced)
        self._watcher.sync_begins()
        if not self.in_thread:
            self.end_sync()

    def end_sync(self) -> None:
        """What the sync covered is on disk."""
        self._durable += self._unsynced[: self.covered]
        del self._unsynced[: self.covered]
        self.covered = 0
        self._watcher.synced()

    def erase(self, table: Table, *keys: bytes) -> None:
        self._fuse.passes("before erase")
        super().erase(table, *keys)
        self._fuse.passes("after erase")

    def left_by(self, old: "Disk", *, power_cut: bool) -> None:
        """Become what the next life finds: all that was written, or only what was synced.

        What it finds is on disk: opening flushes what it reads back, as RocksDB does.
        """
        self._durable = old._durable
        if power_cut:
            for batch in old._durable:
                self._now.write(batch)
        else:
            self._now = old._now
            self._durable += old._unsynced


class SyncSteps:
    """The sync thread: a job runs at once, what it tells the loop arrives when it is over."""

    def __init__(self, machine: "Machine") -> None:
        self._machine = machine
        self._jobs: deque[Job] = deque()
        self._is_busy = False

    def put(self, job: Job) -> None:
        self._jobs.append(job)
        if not self._is_busy:
            self._begin()

    async def close(self) -> None:
        assert not self._jobs, "whoever closes has waited for all of it"

    def _begin(self) -> None:
        self._is_busy = True
        machine, told = self._machine, list[tuple[Callback, tuple[Any, ...]]]()
        loop = machine.loop
        loop.post = lambda callback, args: told.append((callback, args))
        machine.disk.in_thread = True
        try:
            self._jobs.popleft()()
        finally:
            loop.post = None
            machine.disk.in_thread = False
        loop.later(machine.sync_s(), partial(self._end, told), of=machine.process)

    def _end(self, told: list[tuple[Callback, tuple[Any, ...]]]) -> None:
        machine = self._machine
        machine.fuse.passes("during sync")
        machine.disk.end_sync()
        machine.fuse.passes("after sync")
        for callback, args in told:
            machine.loop.call_soon(callback, *args)
        self._is_busy = False
        if self._jobs:
            self._begin()


class Shelf:
    """The files of trajectories; they outlive every life."""

    def __init__(self) -> None:
        self.files: list[list[bytes]] = []

    def lines(self) -> list[bytes]:
        return [line for file in self.files for line in file]


class Lines(TrajectoryLog):
    """The writer of one life, over the shelf."""

    def __init__(self, machine: "Machine") -> None:
        super().__init__(Path("nowhere"), rotate_bytes=1, rotate_ms=1)
        self._machine = machine
        self._begun = False

    def recover(self) -> frozenset[Line]:
        files = self._machine.shelf.files
        if not files:
            return frozenset()
        while files[-1] and not files[-1][-1].endswith(b"\n"):
            files[-1].pop()
        heads = map(head_of, files[-1][-BATCH_LINES_MAX:])
        return frozenset(head for head in heads if head is not None)

    def append(self, lines: Sequence[bytes], now_ms: int) -> None:
        machine = self._machine
        machine.fuse.passes("before lines")
        if machine.lines_full:
            raise OSError(NO_SPACE, "no space left on the device")
        if not self._begun:
            machine.shelf.files.append([])
            self._begun = True
        file = machine.shelf.files[-1]
        if machine.fuse.point == "in a line":
            whole = list(lines[:-1])
            file += [*whole, lines[-1][: len(lines[-1]) // 2]]
            machine.watcher.lines_kept(whole)
            machine.fuse.passes("in a line")
        file += lines
        machine.watcher.lines_kept(lines)
        machine.fuse.passes("after lines")

    def erase(self, session_id: str, since_ms: int = 0, *, now_ms: int) -> int:
        self._begun = False
        gone = 0
        needle = session_id.encode()
        for file in self._machine.shelf.files:
            kept = [line for line in file if needle not in line or not _is_of(line, session_id)]
            gone += len(file) - len(kept)
            file[:] = kept
        return gone

    def close(self) -> None:
        self._begun = False


def _is_of(line: bytes, session_id: str) -> bool:
    head = head_of(line)
    return head is not None and head.session_id == session_id


class MachineClock:
    """The clocks of the machine: the wall clock may be set, the other never jumps."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop
        self.skew_ms = 0

    def now_ms(self) -> int:
        return START_MS + self.skew_ms + int(self._loop.now_s * 1000.0)

    def monotonic_ms(self) -> float:
        return UP_MS + self._loop.now_s * 1000.0


class Machine:
    """One machine; `next_life` after each death."""

    def __init__(self, loop: VirtualLoop, watcher: Watcher, *, dice: Dice) -> None:
        self.loop = loop
        self.watcher = watcher
        self.fuse = Fuse()
        self.shelf = Shelf()
        self.clock = MachineClock(loop)
        self.lines_full = False
        self.slow_disk_until_s = 0.0
        self.process = Process("life 1")
        self.disk = Disk(self.fuse, watcher)
        self._dice = dice
        self._lives = 1
        loop.thread_s = lambda: dice.latency_s(0.002)

    def sync_s(self) -> float:
        """How long the disk takes this time."""
        stalled = self.loop.now_s < self.slow_disk_until_s
        return self._dice.latency_s(0.4 if stalled else 0.003)

    def next_life(self, *, power_cut: bool) -> None:
        """What died is buried; what it left on disk is found by the next process."""
        self.process.is_alive = False
        self.loop.bury(self.process)
        self.fuse.point = ""
        old = self.disk
        if power_cut and old.covered and self._dice.happens(0.5):
            old.end_sync()  # the last sync had reached the disk, and nobody heard of it
        self.disk = Disk(self.fuse, self.watcher)
        self.disk.left_by(old, power_cut=power_cut)
        self._lives += 1
        self.process = Process(f"life {self._lives}")
