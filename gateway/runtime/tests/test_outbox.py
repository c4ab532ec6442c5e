"""The outbox: once each, never before the facts are on disk, whatever is killed, full or broken."""

import asyncio
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path

import pytest

from acp_spec.model.enums import SessionStatus
from acp_spec.model.ids import session_id
from acp_spec.model.trajectory import SCHEMA_VERSION, Trajectory
from gateway.runtime import outbox as outbox_module
from gateway.runtime.clock import ManualClock
from gateway.runtime.committer import Committer
from gateway.runtime.outbox import Outbox
from gateway.stores.event_codec import Sealer
from gateway.stores.forgetful import ForgetfulStore
from gateway.stores.ports import Store, Table
from gateway.stores.trajectory_log import (
    Line,
    TrajectoryLog,
    erased_by,
    head_of,
    is_blank,
    log_files,
)


def _session(number: int) -> str:
    return session_id(1_700_000_000_000, 0, random_64=number)


def _build(session: str) -> Trajectory | None:
    return Trajectory(
        schema_version=SCHEMA_VERSION,
        session_id=session,
        lineage_id="l",
        status=SessionStatus.SUCCEEDED,
        sequence=1,
    )


def _delivered(path: Path) -> list[Line]:
    lines = [line for file in log_files(path) for line in file.read_bytes().splitlines()]
    heads = [head_of(line) for line in lines if not is_blank(line) and not erased_by(line)]
    assert None not in heads, "every line is whole"
    return [head for head in heads if head is not None]


async def _until(condition: Callable[[], bool]) -> None:
    for _ in range(5_000):
        if condition():
            return
        await asyncio.sleep(0.002)
    raise AssertionError("it never came true")


class FullDisk(TrajectoryLog):
    """A log that cannot append while `is_full`."""

    is_full = False
    refused = 0

    def append(self, lines: Sequence[bytes], now_ms: int) -> None:
        if self.is_full and not erased_by(lines[0]):  # a tombstone is little: it still fits
            self.refused += 1
            raise OSError(28, "No space left on device")
        super().append(lines, now_ms)


class Bench:
    """An outbox over a store, with its task."""

    def __init__(
        self, path: Path, store: Store, build: Callable[[str], Trajectory | None] = _build
    ) -> None:
        self.path = path
        self.store = store
        self.committer = Committer(store, Sealer(store), sync=True)
        self.log = FullDisk(path, rotate_bytes=1 << 20, rotate_ms=3_600_000)
        self.outbox = Outbox(
            store, self.committer, trajectories=self.log, build=build, clock=ManualClock()
        )
        self.task = asyncio.ensure_future(self.outbox.run())

    async def idle(self) -> None:
        """Until nothing waits any more."""
        await self.committer.written()
        await _until(lambda: self.outbox.lag == 0)

    async def stop(self) -> None:
        self.outbox.stop()
        await self.task
        await self.committer.close()


def _run(story: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        await asyncio.wait_for(asyncio.ensure_future(story()), 30)

    asyncio.run(bounded())


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox_module, "LINGER_S", 0.001)
    monkeypatch.setattr(outbox_module, "BACKOFF_FIRST_S", 0.002)


def test_each_session_that_waits_becomes_one_line_its_newest_and_all_rows_go(
    tmp_path: Path,
) -> None:
    async def story() -> None:
        bench = Bench(tmp_path, ForgetfulStore())
        wanted = [Line(_session(number), 9 + number) for number in range(600)]
        for line in wanted:
            bench.outbox.record(*line)
        bench.outbox.record(_session(0), 77)
        await bench.idle()
        await bench.stop()
        assert [*bench.store.scan(Table.OUTBOX, b"")] == []
        assert Counter(_delivered(tmp_path)) == Counter([Line(_session(0), 77), *wanted[1:]])

    _run(story)


def test_a_session_that_is_judged_again_after_its_line_has_another(tmp_path: Path) -> None:
    async def story() -> None:
        bench = Bench(tmp_path, ForgetfulStore())
        for sequence in (1, 2):
            bench.outbox.record(_session(0), sequence)
            await bench.idle()
        await bench.stop()
        assert _delivered(tmp_path) == [Line(_session(0), 1), Line(_session(0), 2)]

    _run(story)


def test_a_crash_leaves_no_older_row_of_a_session_whose_line_is_written(tmp_path: Path) -> None:
    async def story() -> None:
        store = ForgetfulStore()
        bench = Bench(tmp_path, store)
        over = _die_between_line_and_row(bench)
        for sequence in (1, 2, 5):
            bench.outbox.record(_session(0), sequence)
        await _until(partial(_has_lines, tmp_path, 1))
        bench.outbox.record(_session(0), 7)  # of after that line
        await bench.committer.synced()
        bench.task.cancel()
        await asyncio.gather(bench.task, return_exceptions=True)
        over.set()
        found = store.crash()
        assert len([*found.scan(Table.OUTBOX, b"")]) == 4
        again = Bench(tmp_path, found)
        await asyncio.sleep(0.01)
        await again.idle()
        await again.stop()
        assert _delivered(tmp_path) == [Line(_session(0), 5), Line(_session(0), 7)]
        assert [*again.store.scan(Table.OUTBOX, b"")] == []

    _run(story)


def test_a_line_leaves_only_once_its_row_is_on_disk(tmp_path: Path) -> None:
    async def story() -> None:
        store = ForgetfulStore()
        bench = Bench(tmp_path, store)
        seen: list[bool] = []
        append = bench.log.append

        def watched(lines: Sequence[bytes], now_ms: int) -> None:
            synced = {key[:26] for batch in store._durable for _, key, _ in batch.operations}
            heads = [head for head in map(head_of, lines) if head is not None]
            seen.extend(head.session_id.encode() in synced for head in heads)
            append(lines, now_ms)

        bench.log.append = watched  # type: ignore[method-assign]
        for number in range(5):
            bench.outbox.record(_session(number), 1)
            await bench.idle()
        await bench.stop()
        assert seen == [True] * 5

    _run(story)


def test_after_a_power_cut_no_line_is_written_twice(tmp_path: Path) -> None:
    async def story() -> None:
        store = ForgetfulStore()
        bench = Bench(tmp_path, store)
        for number in range(20):
            bench.outbox.record(_session(number), 1)
        await bench.idle()
        found = store.crash()  # the deletes were written, not synced
        bench.task.cancel()
        await bench.committer.close()
        assert len([*found.scan(Table.OUTBOX, b"")]) == 20
        again = Bench(tmp_path, found)
        again.outbox.record(_session(20), 1)
        await again.committer.written()
        await asyncio.sleep(0.01)
        await again.idle()
        await again.stop()
        assert sorted(_delivered(tmp_path)) == [Line(_session(n), 1) for n in range(21)]

    _run(story)


def test_two_crashes_in_a_row_between_line_and_row_write_no_line_twice(tmp_path: Path) -> None:
    """The second start appends to a newer file; the end of that one says nothing of the first."""

    async def story() -> None:
        store = ForgetfulStore()
        for number in range(3):
            bench = Bench(tmp_path, store)
            over = _die_between_line_and_row(bench)
            bench.outbox.record(_session(number), 1)
            await _until(partial(_has_lines, tmp_path, number + 1))
            bench.task.cancel()
            await asyncio.gather(bench.task, return_exceptions=True)
            over.set()
            store = store.crash()
        last = Bench(tmp_path, store)
        await asyncio.sleep(0.01)
        await last.idle()
        await last.stop()
        assert sorted(_delivered(tmp_path)) == [Line(_session(n), 1) for n in range(3)]

    _run(story)


def _has_lines(path: Path, count: int) -> bool:
    """Whole ones: a line may be under way while this looks."""
    return sum(file.read_bytes().count(b"\n") for file in log_files(path)) == count


def _die_between_line_and_row(bench: Bench) -> threading.Event:
    """The append is on disk, and nothing of this life comes after it; set: this life is over."""
    append = bench.log.append
    over = threading.Event()

    def last_act(lines: Sequence[bytes], now_ms: int) -> None:
        append(lines, now_ms)
        over.wait(20)  # the test ends this life meanwhile
        raise OSError("this process is dead")

    bench.log.append = last_act  # type: ignore[method-assign]
    return over


def test_a_full_disk_pauses_it_and_loses_nothing(tmp_path: Path) -> None:
    async def story() -> None:
        bench = Bench(tmp_path, ForgetfulStore())
        bench.log.is_full = True
        for number in range(3):
            bench.outbox.record(_session(number), 1)
        assert not bench.outbox.is_stuck
        await _until(lambda: bench.outbox.is_stuck)
        assert bench.log.refused >= 3
        assert bench.outbox.lag == 3
        bench.outbox.record(_session(3), 1)
        bench.outbox.record(_session(0), 4)  # joins the row that waits
        bench.log.is_full = False
        await bench.idle()
        await _until(lambda: not bench.outbox.is_stuck)
        await bench.stop()
        wanted = [Line(_session(0), 4), *(Line(_session(n), 1) for n in (1, 2, 3))]
        assert sorted(_delivered(tmp_path)) == wanted

    _run(story)


def test_it_stops_at_once_while_the_disk_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbox_module, "DRAIN_S", 3_600)

    async def story() -> None:
        bench = Bench(tmp_path, ForgetfulStore())
        bench.log.is_full = True
        bench.outbox.record(_session(1), 1)
        await _until(lambda: bench.log.refused >= 1)
        await asyncio.wait_for(bench.stop(), 20)
        assert len([*bench.store.scan(Table.OUTBOX, b"")]) == 1

    _run(story)


def test_what_is_recorded_just_before_a_stop_is_still_delivered(tmp_path: Path) -> None:
    async def story() -> None:
        bench = Bench(tmp_path, ForgetfulStore())
        await asyncio.sleep(0.02)
        bench.outbox.record(_session(1), 1)
        await bench.committer.written()
        await bench.stop()
        assert _delivered(tmp_path) == [Line(_session(1), 1)]

    _run(story)


def test_a_deleted_session_has_its_row_dropped_without_a_line(tmp_path: Path) -> None:
    async def story() -> None:
        bench = Bench(tmp_path, ForgetfulStore(), lambda s: None if s == _session(1) else _build(s))
        for number in range(3):
            bench.outbox.record(_session(number), 1)
        await bench.idle()
        await bench.stop()
        assert [line.session_id for line in _delivered(tmp_path)] == [_session(0), _session(2)]

    _run(story)


def test_one_that_cannot_be_built_waits_for_the_next_start_and_holds_up_no_other(
    tmp_path: Path,
) -> None:
    def broken(session: str) -> Trajectory | None:
        if session == _session(1):
            raise ValueError("a bug of ours")
        return _build(session)

    async def story() -> None:
        store = ForgetfulStore()
        bench = Bench(tmp_path, store, broken)
        for number in range(3):
            bench.outbox.record(_session(number), 1)
        await bench.committer.written()
        await _until(lambda: bench.outbox.lag <= 1)
        await bench.stop()
        again = Bench(tmp_path, store)
        await asyncio.sleep(0.01)
        await again.idle()
        await again.stop()
        assert sorted(_delivered(tmp_path)) == [Line(_session(n), 1) for n in range(3)]

    _run(story)


def test_an_erased_session_leaves_the_files_and_the_queue(tmp_path: Path) -> None:
    async def story() -> None:
        bench = Bench(tmp_path, ForgetfulStore())
        for number in range(3):
            bench.outbox.record(_session(number), 1)
        await bench.idle()
        bench.log.is_full = True
        bench.outbox.record(_session(1), 2)
        await bench.committer.written()
        assert await bench.outbox.erase(_session(1)) == 1
        bench.log.is_full = False
        assert bench.outbox.lag == 0
        bench.outbox.record(_session(3), 1)
        await bench.idle()
        await bench.stop()
        assert [line.session_id for line in _delivered(tmp_path)] == [
            _session(number) for number in (0, 2, 3)
        ]

    _run(story)


def test_a_deletion_left_from_a_crash_may_run_while_the_outbox_starts(tmp_path: Path) -> None:
    async def story() -> None:
        store = ForgetfulStore()
        bench = Bench(tmp_path, store)
        for number in range(300):
            bench.outbox.record(_session(number), 1)
        await bench.idle()
        await bench.stop()
        again = Bench(tmp_path, store, lambda s: None if s == _session(7) else _build(s))
        again.outbox.record(_session(300), 1)
        assert await again.outbox.erase(_session(7)) == 1
        await again.idle()
        await again.stop()
        wanted = [Line(_session(n), 1) for n in range(301) if n != 7]
        assert sorted(_delivered(tmp_path)) == wanted

    _run(story)


def test_more_rows_than_fit_in_memory_wait_in_the_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbox_module, "READY_MAX", 10)
    monkeypatch.setattr(outbox_module, "BATCH_BYTES_MAX", 500)

    async def story() -> None:
        bench = Bench(tmp_path, ForgetfulStore())
        for number in range(57):
            bench.outbox.record(_session(number), 1)
            if number % 9 == 0:
                await bench.committer.written()
        await bench.idle()
        await bench.stop()
        assert sorted(_delivered(tmp_path)) == [Line(_session(n), 1) for n in range(57)]

    _run(story)


ENDLESS = """
import asyncio, sys
from pathlib import Path
from gateway.runtime.tests.test_outbox import Bench, _session
from gateway.runtime import outbox
from gateway.stores.ports import Table
from gateway.stores.rocksdb import RocksStore

outbox.LINGER_S = 0.0

async def main(path, first, drain):
    store = RocksStore(path / "store")
    bench = Bench(path / "log", store)
    if drain:
        await asyncio.sleep(0.05)
        await bench.idle()
        await bench.stop()
        return
    for number in range(first, first + 10_000_000):
        bench.outbox.record(_session(number), 1)
        await bench.committer.synced()
        print(number, flush=True)

asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "drain"))
"""


def test_killed_again_and_again_it_delivers_each_row_exactly_once(tmp_path: Path) -> None:
    told: set[int] = set()
    for round_number in range(4):
        first = max(told, default=0) + 2  # the number being recorded at the kill stays out
        command = [sys.executable, "-c", ENDLESS, str(tmp_path), str(first), "go"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
            assert child.stdout is not None
            for _ in range(60 + 17 * round_number):
                told.add(int(child.stdout.readline()))
            child.send_signal(signal.SIGKILL)
            rest = child.stdout.read().splitlines(keepends=True)
            told.update(int(line) for line in rest if line.endswith("\n"))
    subprocess.run([sys.executable, "-c", ENDLESS, str(tmp_path), "0", "drain"], check=True)
    counts = Counter(_delivered(tmp_path / "log"))
    assert set(counts.values()) == {1}
    assert {Line(_session(number), 1) for number in told} <= counts.keys()
