"""After a start every open session goes on, wherever it was cut off (RUN-007, RUN-008)."""

import asyncio

import pytest

from acp_spec.model.calls import OperationState
from acp_spec.model.enums import OperationStatus
from acp_spec.model.payload import payload
from gateway.engine.events import AttemptStarted, SessionEnded
from gateway.engine.tests.casting import Said
from gateway.engine.tests.stage import FOUR_CALLS, ONE_ACTION, accepted, failed, goal, planned
from gateway.runtime.principal import LOCAL, Principal
from gateway.runtime.restart import open_sessions
from gateway.runtime.tests.house import House
from gateway.runtime.tests.virtual_time import run
from gateway.stores.memory import MemoryBatch, MemoryStore
from gateway.stores.ports import Batch, Table

BUSY = planned(
    goal("a", "book", arguments={"n": 1}),
    goal("b", "read", depends_on=["a"]),
    goal("c", "pay", depends_on=["b"]),
)


class Remembering(MemoryStore):
    """Keeps every batch, so that a test can start from any beginning of them."""

    def __init__(self) -> None:
        super().__init__()
        self.batches: list[MemoryBatch] = []

    def write(self, batch: Batch) -> None:
        assert isinstance(batch, MemoryBatch)
        self.batches.append(batch)
        super().write(batch)

    def until(self, count: int) -> MemoryStore:
        """The store as it was after so many batches."""
        store = MemoryStore()
        for batch in self.batches[:count]:
            store.write(batch)
        return store


async def lived(house: House, line_of_read: Said | None = None) -> str:
    house.targets.connection.lines["plan"] = BUSY
    if line_of_read is not None:
        house.targets.connection.lines["read"] = line_of_read
    session = await house.open(FOUR_CALLS)
    await house.ended(session)
    return session


def test_a_session_cut_off_after_any_batch_comes_to_the_same_end_and_pays_once() -> None:
    async def story() -> None:
        store = Remembering()
        session = await lived(House(store=store))
        first = next(n for n, batch in enumerate(store.batches) if _opens(batch, session))
        for count in range(first + 1, len(store.batches) + 1):
            again = House(store=store.until(count))
            again.targets.connection.lines["plan"] = BUSY
            assert await again.resume() == 0
            view = await again.ended(session)
            journal = again.journal(session)
            paid = [e for e in journal if isinstance(e, AttemptStarted) and _pays(again, e)]
            assert len(paid) <= 1
            assert view.status.value == "SUCCEEDED"
            assert [type(e) for e in journal].count(SessionEnded) == 1
            again.check_permits()

    run(story())


def _opens(batch: MemoryBatch, session: str) -> bool:
    return any(
        t is Table.JOURNAL and k.startswith(session.encode()) for t, k, _ in batch.operations
    )


def _pays(house: House, event: AttemptStarted) -> bool:
    (found,) = (s for s in house.sessions._live.values() if event.call_id in s.state.calls)
    return found.state.calls[event.call_id].created.action == "pay"


@pytest.mark.parametrize(("action", "sends"), [("pay", 0), ("book", 1), ("read", 1)])
def test_an_attempt_in_flight_is_repeated_only_if_that_is_safe(action: str, sends: int) -> None:
    async def story() -> None:
        house = House()
        house.targets.connection.lines[action] = None
        session = await house.open(ONE_ACTION % action)
        await asyncio.sleep(0.1)
        again = House(store=house.store)
        await again.resume()
        view = await again.ended(session)
        assert len(again.targets.connection.sent) == sends
        assert view.status.value == ("SUCCEEDED" if sends else "FAILED")

    run(story())


def test_an_operation_goes_on_being_polled() -> None:
    async def story() -> None:
        house = House()
        house.targets.connection.lines["grow"] = accepted(60_000)
        session = await house.open(ONE_ACTION % "grow")
        await asyncio.sleep(0.1)
        again = House(store=house.store)
        done = OperationState(status=OperationStatus.SUCCEEDED, output=payload(b"0.10"))
        again.targets.connection.operations = [done]
        await again.resume()
        assert bytes((await again.ended(session)).output) == b"0.10"
        assert again.targets.connection.sent == []

    run(story())


def test_a_retry_waits_out_its_time_also_over_a_restart() -> None:
    async def story() -> None:
        house = House()
        house.targets.connection.lines["read"] = failed(retry_after_ms=2_000)
        session = await house.open(ONE_ACTION % "read")
        await asyncio.sleep(0.1)
        again = House(store=house.store)
        await again.resume()
        await asyncio.sleep(1.5)
        assert again.targets.connection.sent == []
        assert (await again.ended(session)).status.value == "SUCCEEDED"

    run(story())


def test_open_sessions_of_all_tenants_are_found_oldest_first_and_ended_ones_are_not() -> None:
    async def story() -> None:
        house = House()
        house.executors.admitting.stopped = True
        tenants = [Principal(tenant=name, scopes=frozenset(("admin",))) for name in ("b", "a", "")]
        opened = [await house.open(ONE_ACTION % "read", principal=tenant) for tenant in tenants * 2]
        house.executors.admitting.stopped = False
        ended = await house.open(ONE_ACTION % "put")
        await house.ended(ended)
        assert open_sessions(house.store) == sorted(opened)

    run(story())


def test_the_count_of_open_sessions_is_right_after_a_start_and_at_the_end() -> None:
    async def story() -> None:
        house = House()
        house.executors.admitting.stopped = True
        opened = [await house.open(ONE_ACTION % "read") for _ in range(20)]
        again = House(store=house.store)
        await again.resume()
        for session in opened:
            await again.ended(session)
        await asyncio.sleep(0.1)
        assert again.driver.open_sessions == 0

    run(story())


def test_a_session_that_cannot_be_read_is_left_alone_and_the_others_go_on() -> None:
    async def story() -> None:
        house = House()
        house.executors.admitting.stopped = True
        broken = await house.open(ONE_ACTION % "read")
        whole = await house.open(ONE_ACTION % "read")
        batch = house.store.batch()
        for key, _ in list(house.store.scan(Table.JOURNAL, broken.encode())):
            batch.put(Table.JOURNAL, key, b"rubbish")
        house.store.write(batch)
        again = House(store=house.store)
        assert await again.resume() == 1
        assert (await again.ended(whole)).status.value == "SUCCEEDED"
        assert again.driver.open_sessions == 0

    run(story())


def test_a_cancelled_session_ends_cancelled_after_a_restart() -> None:
    async def story() -> None:
        house = House()
        house.targets.connection.lines["pay"] = None
        session = await house.open(ONE_ACTION % "pay")
        await asyncio.sleep(0.1)
        await house.service.cancel(session, LOCAL)
        again = House(store=house.store)
        await again.resume()
        assert (await again.ended(session)).status.value == "CANCELLED"

    run(story())
