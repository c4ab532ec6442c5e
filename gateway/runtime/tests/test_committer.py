"""The committer: nothing is acted on before it is written, nothing acknowledged before its sync."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.engine.events import CancelRequested, Opened
from gateway.runtime.committer import Committer
from gateway.stores.errors import StoreError, StoreFailed
from gateway.stores.event_codec import Sealer
from gateway.stores.forgetful import ForgetfulStore
from gateway.stores.journal import read_events
from gateway.stores.ports import Store, Table
from gateway.stores.rocksdb import RocksStore

SESSION = "01J8ZC4B6Q0000000000000001"


def _committer(store: Store, *, sync: bool = True) -> Committer:
    return Committer(store, Sealer(store), sync=sync)


def _run(story: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(_awaited(story), 30))


async def _awaited(story: Callable[[], Awaitable[None]]) -> None:
    await story()


class SlowSync(ForgetfulStore):
    """A sync waits until the test opens the gate, as a slow disk would."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = threading.Event()
        self.entered = threading.Event()

    def sync(self) -> None:
        count = len(self._unsynced)
        self.entered.set()
        assert self.gate.wait(20)
        self.gate.clear()
        self.syncs += 1
        self._durable += self._unsynced[:count]
        del self._unsynced[:count]


def test_a_tick_is_one_write_and_its_callbacks_follow_in_order() -> None:
    async def story() -> None:
        store = ForgetfulStore()
        committer = _committer(store)
        seen: list[tuple[str, bool]] = []

        def note(name: str, key: bytes) -> Callable[[], None]:
            return lambda: seen.append((name, store.get(Table.INDEX, key) is not None))

        committer.after_write(note("before any put", b"b"))
        committer.put(Table.INDEX, b"a", b"")
        committer.after_write(note("a", b"a"))
        committer.put(Table.INDEX, b"b", b"")
        committer.after_write(note("b", b"b"))
        assert store.writes == 0, "nothing is written inside the tick"
        await committer.written()
        assert seen == [("before any put", True), ("a", True), ("b", True)]
        assert store.writes == 1
        await committer.close()

    _run(story)


def test_a_callback_may_append_and_that_is_the_next_tick() -> None:
    async def story() -> None:
        store = ForgetfulStore()
        committer = _committer(store)
        committer.put(Table.INDEX, b"a", b"")
        committer.after_write(lambda: committer.put(Table.INDEX, b"b", b""))
        await committer.written()
        await committer.synced()
        assert store.writes == 2
        assert store.crash().get(Table.INDEX, b"b") == b""
        await committer.close()

    _run(story)


def test_what_comes_while_a_sync_runs_shares_the_next_one() -> None:
    async def story() -> None:
        store = SlowSync()
        committer = _committer(store)
        seen: list[int] = []
        first = asyncio.Event()

        def note(number: int) -> None:
            seen.append(number)
            first.set()

        for number in range(5):
            committer.put(Table.INDEX, b"%d" % number, b"")
            committer.after_sync(partial(note, number))
            await committer.written()
            if number == 0:
                await asyncio.to_thread(store.entered.wait, 20)
        assert seen == []
        store.gate.set()
        await first.wait()
        assert seen == [0], "the first sync had begun before the others were written"
        store.gate.set()
        await committer.synced()
        assert seen == [0, 1, 2, 3, 4]
        assert store.syncs == 2
        await committer.close()

    _run(story)


def test_with_nothing_new_on_the_way_a_sync_costs_nothing() -> None:
    async def story() -> None:
        store = ForgetfulStore()
        committer = _committer(store)
        committer.put(Table.INDEX, b"a", b"")
        await committer.synced()
        await committer.synced()
        assert store.syncs == 1
        await committer.close()

    _run(story)


def test_without_sync_a_written_batch_counts_as_synced_and_a_crash_bites() -> None:
    async def story() -> None:
        store = ForgetfulStore()
        committer = _committer(store, sync=False)
        committer.put(Table.INDEX, b"a", b"")
        await committer.synced()
        assert store.syncs == 0
        assert store.crash().get(Table.INDEX, b"a") is None
        await committer.close()

    _run(story)


def test_an_opened_session_gets_its_key_in_the_same_batch() -> None:
    async def story() -> None:
        store = ForgetfulStore()
        committer = _committer(store)
        opened = Opened(at_ms=1, session_id=SESSION, lineage_id="l")
        committer.append(SESSION, 0, events=[opened])
        committer.append(SESSION, 1, events=[CancelRequested(at_ms=2), CancelRequested(at_ms=3)])
        await committer.synced()
        assert store.writes == 1
        found = store.crash()
        sealer = Sealer(found)
        events = [*read_events(found, sealer, session_id=SESSION)]
        assert [(sequence, event.at_ms) for sequence, event in events] == [(0, 1), (1, 2), (2, 3)]
        assert len([*read_events(found, sealer, session_id=SESSION, after=1)]) == 1
        await committer.close()

    _run(story)


def test_an_erased_row_was_written_first_and_is_then_gone() -> None:
    async def story() -> None:
        store = ForgetfulStore()
        committer = _committer(store)
        committer.put(Table.KEY, b"k", b"secret")
        await committer.erase(Table.KEY, b"k")
        assert store.get(Table.KEY, b"k") is None
        await committer.close()

    _run(story)


def test_a_callback_that_raises_is_reported_and_stops_no_other() -> None:
    async def story() -> None:
        reports: list[BaseException] = []
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: reports.append(context["exception"]))
        committer = _committer(ForgetfulStore())
        seen: list[str] = []
        committer.after_write(lambda: seen.append(str(1 // 0)))
        committer.after_write(lambda: seen.append("second"))
        await committer.written()
        assert seen == ["second"]
        assert [type(one) for one in reports] == [ZeroDivisionError]
        await committer.close()

    _run(story)


def test_a_failed_write_is_told_once_and_nothing_later_is_acknowledged() -> None:
    async def story() -> None:
        committer = _committer(ForgetfulStore(fail_write=2))
        failures: list[StoreError] = []
        committer.on_failure(failures.append)
        acknowledged: list[str] = []
        committer.put(Table.INDEX, b"1", b"")
        await committer.synced()
        committer.put(Table.INDEX, b"2", b"")
        committer.after_write(lambda: acknowledged.append("written"))
        committer.after_sync(lambda: acknowledged.append("synced"))
        with pytest.raises(StoreFailed, match="write 2"):
            await committer.synced()
        committer.put(Table.INDEX, b"3", b"")
        committer.after_write(lambda: acknowledged.append("later"))
        with pytest.raises(StoreFailed, match="earlier write failed"):
            await committer.written()
        assert [str(one) for one in failures] == ["write 2 fails as the test asked"]
        assert committer.failed is failures[0]
        assert acknowledged == []
        await committer.close()

    _run(story)


def test_a_failure_wakes_those_who_wait_and_refuses_those_who_come() -> None:
    async def story() -> None:
        committer = _committer(ForgetfulStore(fail_sync=1))
        woken: list[str] = []
        with committer.waking(lambda: woken.append("inside")):
            with committer.waking(lambda: woken.append("left before")):
                committer.refuse_if_failed()
            committer.put(Table.INDEX, b"a", b"")
            with pytest.raises(StoreFailed):
                await committer.synced()
        assert woken == ["inside"]
        with pytest.raises(StoreFailed, match="earlier write failed"):
            committer.refuse_if_failed()
        await committer.close()

    _run(story)


def test_closing_writes_and_syncs_what_is_pending_and_stops_the_thread() -> None:
    async def story() -> None:
        store = ForgetfulStore()
        before = set(threading.enumerate())
        committer = _committer(store)
        committer.put(Table.INDEX, b"a", b"")
        committer.after_sync(lambda: committer.put(Table.INDEX, b"b", b""))
        await committer.close()
        await committer.close()
        kept = [key for key, _ in store.crash().scan(Table.INDEX, b"")]
        assert kept == [b"a", b"b"], "what a callback appended is kept too"
        left = set(threading.enumerate()) - before
        assert [thread for thread in left if thread.name == "store-sync"] == []

    _run(story)


def test_it_works_over_the_store_on_disk(tmp_path: Path) -> None:
    async def story() -> None:
        store = RocksStore(tmp_path)
        committer = _committer(store)
        committer.append(SESSION, 0, events=[Opened(at_ms=1, session_id=SESSION, lineage_id="l")])
        await committer.synced()
        await committer.close()
        store.close()
        store = RocksStore(tmp_path)
        assert len([*read_events(store, Sealer(store), session_id=SESSION)]) == 1
        store.close()

    _run(story)


# Each tick: how many rows it puts, and after each row what is asked for.
_ticks = st.lists(
    st.lists(st.sampled_from(["put", "put+write", "put+sync", "sync", "write"]), max_size=4),
    max_size=8,
)


@given(
    ticks=_ticks,
    fail_write=st.integers(0, 6),
    fail_sync=st.integers(0, 4),
    pauses=st.lists(st.booleans(), min_size=8, max_size=8),
)
def test_no_acknowledgement_outruns_the_disk(
    ticks: list[list[str]], fail_write: int, fail_sync: int, pauses: list[bool]
) -> None:
    """Whatever fails and whenever: acknowledged in order, and never before it is true."""

    async def story() -> None:
        store = ForgetfulStore(fail_write=fail_write, fail_sync=fail_sync)
        committer = _committer(store)
        put: list[bytes] = []
        written: list[int] = []
        synced: list[int] = []

        def on_written(rows: int, order: int) -> None:
            assert all(store.get(Table.INDEX, key) is not None for key in put[:rows])
            written.append(order)

        def on_synced(rows: int, order: int) -> None:
            found = {key for batch in [*store._durable] for _, key, _ in batch.operations}
            assert set(put[:rows]) <= found
            synced.append(order)

        for index, tick in enumerate(ticks):
            for order, step in enumerate(tick, index * 100):
                if "put" in step:
                    put.append(b"%05d" % order)
                    committer.put(Table.INDEX, put[-1], b"")
                if "write" in step:
                    committer.after_write(partial(on_written, len(put), order))
                if "sync" in step:
                    committer.after_sync(partial(on_synced, len(put), order))
            await asyncio.sleep(0.001 if pauses[index] else 0)
        await committer.close()
        assert written == sorted(written)
        assert synced == sorted(synced)
        if committer.failed is None:
            steps = [step for tick in ticks for step in tick]
            assert len(written) == sum("write" in step for step in steps)
            assert len(synced) == sum("sync" in step for step in steps)
            assert len([*store.crash().scan(Table.INDEX, b"")]) == len(put)

    reports: list[object] = []

    async def watched() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, c: reports.append(c))
        await story()

    _run(watched)
    assert reports == []
