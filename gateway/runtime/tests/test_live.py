"""Sessions in memory: evicted when idle, read back by whoever needs them, one of each."""

import asyncio

import pytest

from acp_spec.model.errors import AcpFailure
from acp_spec.model.ids import session_id
from gateway.engine.events import Opened
from gateway.engine.step import begin
from gateway.engine.tests.casting import Said
from gateway.engine.tests.stage import FOUR_CALLS, ONE_ACTION, failed, gave
from gateway.runtime.live import Erased, replay
from gateway.runtime.principal import LOCAL
from gateway.runtime.tests.house import House
from gateway.runtime.tests.virtual_time import START_MS, run
from gateway.stores.ports import Table
from gateway.stores.tables import sequence_row


def test_a_session_evicted_while_it_waits_is_read_back_by_its_answer() -> None:
    async def story() -> None:
        house = House(live_limit=1)
        house.targets.connection.lines["read"] = Said(response=b'{"output":7}', after_ms=900)
        opened = [await house.open(ONE_ACTION % "read") for _ in range(5)]
        await asyncio.sleep(0.1)
        assert len(house.sessions) <= 2
        for session in opened:
            assert bytes((await house.ended(session)).output) == b"7"
        house.check_permits()

    run(story())


def test_a_session_evicted_in_its_backoff_is_read_back_by_its_timer() -> None:
    async def story() -> None:
        house = House(live_limit=1)
        house.targets.connection.lines["read"] = lambda outgoing: (
            failed(retry_after_ms=1_000) if outgoing.context.attempt == 1 else gave(1)
        )
        waiting = await house.open(ONE_ACTION % "read")
        await asyncio.sleep(0.1)
        other = await house.open(ONE_ACTION % "put")
        await house.ended(other)
        assert len(house.sessions) == 1
        assert (await house.ended(waiting)).status.value == "SUCCEEDED"

    run(story())


def test_what_was_evicted_and_read_back_is_equal() -> None:
    async def story() -> None:
        house = House(live_limit=1)
        session = await house.open(FOUR_CALLS)
        await house.ended(session)
        before = house.state(session)
        await house.ended(await house.open(FOUR_CALLS))
        assert session not in house.sessions._live
        assert house.state(session) == before

    run(story())


def test_a_session_just_asked_for_is_never_the_one_that_is_evicted() -> None:
    """All others were busy: the new one was dropped, and there were two of it afterwards."""

    async def story() -> None:
        house = House(live_limit=2)
        house.targets.connection.lines["put"] = Said(response=b'{"output":1}', after_ms=50)
        busy = [await house.open(ONE_ACTION % "put") for _ in range(2)]
        for session in busy:
            live = house.sessions.find(session)
            assert live is not None
            live.unwritten += 1
        opened = Opened(
            at_ms=START_MS, session_id=session_id(START_MS, 1, random_64=99), lineage_id="l"
        )
        state, _ = begin(None, opened)
        added = house.sessions.add(state)
        assert house.sessions.find(state.session_id) is added

    run(story())


def test_a_session_that_never_was_is_nobody_and_a_damaged_one_is_data_loss() -> None:
    async def story() -> None:
        house = House(live_limit=1)
        unknown = session_id(START_MS, 1, random_64=5)
        assert house.sessions.find(unknown) is None
        session = await house.open(ONE_ACTION % "read")
        await house.ended(session)
        batch = house.store.batch()
        batch.put(Table.JOURNAL, sequence_row(session, 1), b"rubbish")
        house.store.write(batch)
        house.sessions.drop(session)
        with pytest.raises(AcpFailure) as told:
            house.sessions.find(session)
        assert told.value.error.reason == "DATA_LOSS"

    run(story())


def test_a_deleted_session_says_that_it_was() -> None:
    async def story() -> None:
        house = House()
        session = await house.open(ONE_ACTION % "read")
        await house.ended(session)
        await house.service.erase(session, LOCAL)
        with pytest.raises(Erased):
            house.sessions.find(session)
        assert house.driver.find(session) is None

    run(story())


def test_a_fold_of_nothing_is_nothing() -> None:
    assert replay([], lambda digest: None) is None
