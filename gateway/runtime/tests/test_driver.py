"""Append first, act second; one record per walk; rows and list in the same batch."""

import asyncio

from acp_spec.model.enums import Boundary, SessionStatus
from gateway.engine.events import (
    AnyEvent,
    AttemptEnded,
    AttemptStarted,
    CancelRequested,
    Opened,
    SessionEnded,
)
from gateway.engine.shards import Shard, changed
from gateway.engine.states import SessionState
from gateway.engine.tests.casting import Said
from gateway.engine.tests.stage import FOUR_CALLS, ONE_ACTION, accepted, failed, goal, planned
from gateway.runtime.executors import Executors
from gateway.runtime.live import Live
from gateway.runtime.principal import LOCAL
from gateway.runtime.tests.house import House, Seen
from gateway.runtime.tests.virtual_time import run
from gateway.stores.memory import MemoryBatch, MemoryStore
from gateway.stores.ports import Batch, Table
from gateway.stores.tables import listed_row, listed_session, shard_row


class Counting(MemoryStore):
    def __init__(self) -> None:
        super().__init__()
        self.batches: list[set[Table]] = []

    def write(self, batch: Batch) -> None:
        assert isinstance(batch, MemoryBatch)
        self.batches.append({table for table, _, _ in batch.operations})
        super().write(batch)


def test_parallel_calls_are_lent_from_one_budget() -> None:
    """Six sub-goals begun in one walk were each asked over the budget before any was taken."""

    async def story() -> None:
        house = House()
        plan = planned(*(goal(f"g{n}", "read") for n in range(10)))
        house.targets.connection.lines["plan"] = plan
        session = await house.open(FOUR_CALLS)
        await house.ended(session)
        leases = [e.lease for e in house.journal(session) if isinstance(e, AttemptStarted)]
        assert leases[1:11] == [1, 1, 1, 1, 1, 1, 1, 0, 0, 0]
        assert house.state(session).budget_left == 8

    run(story())


def test_two_lost_attempts_do_not_spend_the_last_retry_twice() -> None:
    async def story() -> None:
        house = House()
        house.targets.connection.lines["plan"] = planned(*(goal(f"g{n}", "read") for n in range(9)))
        house.targets.connection.lines["read"] = None
        session = await house.open(FOUR_CALLS)
        await asyncio.sleep(0.1)
        again = House(store=house.store)
        again.targets.connection.lines["read"] = failed()
        await again.resume()
        await again.ended(session)
        retries = [o for o in again.targets.connection.sent if o.context.attempt > 1]
        assert len(retries) <= 8
        assert again.state(session).budget_left >= 0

    run(story())


def test_the_opening_its_rows_and_its_place_in_the_list_are_one_batch() -> None:
    async def story() -> None:
        store = Counting()
        house = House(store=store)
        reference = await house.learn(FOUR_CALLS)
        store.batches.clear()
        session = await house.open(FOUR_CALLS, session_key="k")
        assert {Table.JOURNAL, Table.KEY, Table.SHARD, Table.INDEX} <= store.batches[0]
        for status in ("", "RUNNING"):
            row = listed_row("default", session, status=status)
            assert house.store.get(Table.INDEX, row) == reference.encode()

    run(story())


def test_a_session_stands_in_the_list_of_all_and_in_that_of_its_status() -> None:
    async def story() -> None:
        house = House()
        house.targets.connection.lines["grow"] = accepted(60_000)
        session = await house.open(ONE_ACTION % "grow")

        def listed() -> list[str]:
            rows = [key for key, _ in house.store.scan(Table.INDEX, b"L")]
            assert all(listed_session(key) == session for key in rows)
            return [key.split(b"\0")[1].decode() for key in rows]

        assert listed() == ["", "RUNNING"]
        await asyncio.sleep(0.1)
        assert listed() == ["", "WAITING"]
        await house.service.cancel(session, LOCAL)
        await house.ended(session)
        assert listed() == ["", "CANCELLED"]

    run(story())


def test_the_rows_on_disk_are_those_of_the_journal() -> None:
    async def story() -> None:
        house = House()
        session = await house.open(FOUR_CALLS)
        await house.ended(session)
        state = house.state(session)
        for row in changed(None, state):
            key = shard_row(session, row.shard.value, row=row.key.encode())
            assert house.store.get(Table.SHARD, key) == row.data
        executed = list(house.store.scan(Table.SHARD, shard_row(session, Shard.EXECUTION.value)))
        assert len(executed) == 4

    run(story())


def test_the_observer_sees_every_event_of_the_journal_in_its_order() -> None:
    async def story() -> None:
        house = House()
        session = await house.open(FOUR_CALLS)
        await house.ended(session)
        seen = [type(event) for event in house.seen.events]
        assert seen == [type(event) for event in house.journal(session)]
        assert (seen[0], seen[-1]) == (Opened, SessionEnded)

    run(story())


def test_the_trajectory_is_handed_out_at_the_end_with_its_sequence() -> None:
    async def story() -> None:
        house = House()
        session = await house.open(ONE_ACTION % "read")
        assert house.recorded == []
        await house.ended(session)
        assert house.recorded == [(session, len(house.journal(session)))]
        assert house.driver.open_sessions == 0

    run(story())


def test_events_carry_a_time_that_never_goes_back() -> None:
    class Jumpy:
        """A wall clock that an administrator sets back again and again."""

        def __init__(self) -> None:
            self.calls = 0

        def now_ms(self) -> int:
            self.calls += 1
            back = self.calls % 7 * 40
            return 1_700_000_000_000 + int(asyncio.get_event_loop().time() * 1000) - back

        def monotonic_ms(self) -> float:
            return asyncio.get_event_loop().time() * 1000

    async def story() -> None:
        house = House(clock=Jumpy())
        house.targets.connection.lines["read"] = failed()
        session = await house.open(FOUR_CALLS)
        await house.ended(session)
        times = [event.at_ms for event in house.journal(session)]
        assert times == sorted(times)

    run(story())


def test_a_timer_of_a_session_that_has_ended_does_nothing() -> None:
    async def story() -> None:
        house = House()
        house.targets.connection.lines["read"] = Said(response=b'{"output":1}', after_ms=100)
        session = await house.open(ONE_ACTION % "read", deadline_ms=200)
        view = await house.ended(session)
        assert view.status is SessionStatus.SUCCEEDED
        before = house.journal(session)
        await asyncio.sleep(5)
        assert house.journal(session) == before
        assert not [e for e in before if isinstance(e, CancelRequested)]

    run(story())


def test_a_fault_of_ours_ends_its_session_and_no_other() -> None:
    """A session whose walk raised was only logged, and then waited for ever."""

    class Faulty(Seen):
        def seen(self, state: SessionState, event: AnyEvent) -> None:
            super().seen(state, event)
            marked = state.opened.labels.get("fault") == "yes"
            if marked and isinstance(event, AttemptEnded):
                raise RuntimeError("a fault of ours")

    async def story() -> None:
        house = House()
        house.driver._observer = Faulty()
        broken = await house.open(ONE_ACTION % "read", labels={"fault": "yes"})
        whole = await house.open(ONE_ACTION % "read")
        view = await house.ended(broken)
        assert view.status is SessionStatus.FAILED
        assert view.error is not None
        assert view.error.reason == "INTERNAL"
        assert view.error.boundary is Boundary.GATEWAY
        assert (await house.ended(whole)).status is SessionStatus.SUCCEEDED
        house.check_permits()

    run(story())


def test_a_fault_of_ours_at_the_opening_ends_that_session_and_gives_its_place_back() -> None:
    """The client got a 500, the session was nowhere, and its place among the open ones was lost."""

    class Faulty(Executors):
        def admit(self, live: Live, call_id: str) -> AnyEvent | None:
            raise OverflowError("cannot convert float infinity to integer")

    async def story() -> None:
        house = House()
        house.executors.__class__ = Faulty
        session = await house.open(ONE_ACTION % "read")
        view = await house.ended(session)
        assert (view.status, view.error and view.error.reason) == (SessionStatus.FAILED, "INTERNAL")
        assert house.driver.open_sessions == 0
        assert [type(one) for one in house.journal(session)] == [Opened, SessionEnded]

    run(story())


def test_what_comes_after_the_last_sync_finds_nobody_and_the_next_life_goes_on_from_disk() -> None:
    """A late answer and a timer came while the sync thread ended: each was an assertion."""

    async def story() -> None:
        house = House()
        house.targets.connection.lines["read"] = None
        session = await house.open(ONE_ACTION % "read")
        await asyncio.sleep(0.1)
        await house.committer.close()
        live = house.driver.find(session)
        assert live is not None
        before = live.state
        house.driver.feed(live, CancelRequested(at_ms=house.clock.now_ms(), by="nobody"))
        assert live.state is before
        again = House(store=house.store)
        await again.resume()
        assert (await again.ended(session)).status is SessionStatus.SUCCEEDED

    run(story())
