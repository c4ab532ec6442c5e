"""Hedges in a whole gateway: who gets the second attempt, what it costs, and what is left of it."""

import asyncio

import msgspec
import pytest

from acp_spec.bindings.errors import error
from acp_spec.model.enums import CancelState, SessionStatus, SideEffect
from acp_spec.model.errors import Reason
from acp_spec.model.trajectory import Attempt
from gateway.engine import replay
from gateway.engine.events import AttemptEnded, AttemptStarted, Late
from gateway.engine.tests.casting import Said
from gateway.engine.tests.stage import ONE_ACTION, TOOLS, failed, gave, workflow_of
from gateway.engine.trajectories import trajectory
from gateway.governance.rules import HedgeRules
from gateway.runtime.connection import Outgoing
from gateway.runtime.tests.fake_components import FakeConnection
from gateway.runtime.tests.house import PARAMETERS, House
from gateway.runtime.tests.virtual_time import run

READING = ONE_ACTION % "read"
ALWAYS = HedgeRules(share=1.0, after_ms=50)


def after(said: Said, ms: int) -> Said:
    return msgspec.structs.replace(said, after_ms=ms)


def house_of(*lines: Said, rules: HedgeRules = ALWAYS, replicas: int = 2) -> House:
    """Attempt n is answered by line n, whichever instance it goes to."""
    house = House(parameters=msgspec.structs.replace(PARAMETERS, hedge=rules))
    for number in range(2, replicas + 1):
        house.targets.add(TOOLS, instance=f"tools-1.0.0-{number}")

    def read(outgoing: Outgoing) -> Said:
        return lines[min(outgoing.context.attempt, len(lines)) - 1]

    for action in ("read", "put", "book"):
        house.targets.connection.lines[action] = read
    return house


def rows(house: House, session_id: str) -> tuple[Attempt, ...]:
    return trajectory(house.state(session_id)).calls


def proven(house: House, session_id: str, text: str = READING) -> None:
    """Each attempt has one end, and the journal alone leads to the same commands."""
    journal = house.journal(session_id)
    ends = [(e.call_id, e.attempt) for e in journal if isinstance(e, AttemptEnded)]
    starts = {(e.call_id, e.attempt) for e in journal if isinstance(e, AttemptStarted)}
    assert len(ends) == len(set(ends))
    assert set(ends) == starts
    workflow = house.state(session_id).workflow
    found = replay.check(journal, workflow or workflow_of(text))
    assert found.proven, found.difference


def test_a_slow_first_attempt_is_beaten_by_a_second_elsewhere() -> None:
    async def story() -> None:
        house = house_of(after(gave("slow"), 2_000), after(gave("quick"), 10))
        session_id = await house.open(READING)
        view = await house.ended(session_id)
        assert view.status is SessionStatus.SUCCEEDED
        assert bytes(view.output) == b'"quick"'
        first, second = rows(house, session_id)
        assert (first.hedge, second.hedge) == (False, True)
        assert first.instance != second.instance
        assert first.error is not None
        assert first.error.reason == Reason.CANCELLED.value
        assert house.targets.connection.cancelled == [(first.call_id, 1)]
        proven(house, session_id)

    run(story())


def test_a_beaten_attempt_that_goes_on_is_broken_off_after_the_grace() -> None:
    """Its slot would be taken until its timeout, for an answer that nobody wants."""

    async def story() -> None:
        house = house_of(after(gave("slow"), 4_000), after(gave("quick"), 10))
        session_id = await house.open(READING)
        await house.ended(session_id)
        assert len(house.admitting.permits) == 1, "it still works there"
        await asyncio.sleep(1.2)
        assert house.targets.connection.resets
        house.check_permits()
        assert not [e for e in house.journal(session_id) if isinstance(e, Late)]

    run(story())


def test_a_beaten_attempt_that_stops_when_told_leaves_nothing_behind() -> None:
    async def story() -> None:
        house = house_of(after(gave("slow"), 4_000), after(gave("quick"), 10))
        house.targets.connection.stops = CancelState.STOPPED
        session_id = await house.open(READING)
        await house.ended(session_id)
        await asyncio.sleep(0.1)
        house.check_permits()
        assert not [e for e in house.journal(session_id) if isinstance(e, Late)]

    run(story())


def test_what_the_beaten_attempt_said_after_all_is_kept_as_late() -> None:
    async def story() -> None:
        house = house_of(after(gave("slow"), 300), after(gave("quick"), 10))
        session_id = await house.open(READING)
        await house.ended(session_id)
        await asyncio.sleep(1)
        assert [row.late for row in rows(house, session_id)] == [True, False]
        assert bytes(house.state(session_id).output) == b'"quick"'

    run(story())


@pytest.mark.parametrize("action", ["put", "book"])
def test_what_writes_is_never_sent_twice_at_once(action: str) -> None:
    async def story() -> None:
        house = house_of(after(gave("slow"), 500))
        await house.ended(await house.open(ONE_ACTION % action))
        assert len(house.targets.connection.sent) == 1

    run(story())


def test_the_only_instance_is_not_asked_twice() -> None:
    async def story() -> None:
        house = house_of(after(gave("slow"), 500), replicas=1)
        await house.ended(await house.open(READING))
        assert len(house.targets.connection.sent) == 1

    run(story())


def test_hedging_is_off_by_default() -> None:
    async def story() -> None:
        house = house_of(after(gave("slow"), 500), rules=HedgeRules())
        await house.ended(await house.open(READING))
        assert len(house.targets.connection.sent) == 1

    run(story())


def test_when_everything_is_slow_only_the_share_is_hedged() -> None:
    async def story() -> None:
        house = house_of(after(gave("slow"), 200), rules=HedgeRules(share=0.1, after_ms=20))
        for _ in range(100):
            await house.ended(await house.open(READING))
        hedges = [o for o in house.targets.connection.sent if o.context.attempt > 1]
        assert 8 <= len(hedges) <= 10

    run(story())


def test_without_a_time_the_slowest_twentieth_is_hedged() -> None:
    async def story() -> None:
        house = house_of(after(gave("usual"), 20), rules=HedgeRules(share=1.0))
        for _ in range(30):
            await house.ended(await house.open(READING))
        assert all(outgoing.context.attempt == 1 for outgoing in house.targets.connection.sent)
        slow = {1: after(gave("slow"), 900), 2: after(gave("quick"), 10)}
        house.targets.connection.lines["read"] = lambda outgoing: slow[outgoing.context.attempt]
        view = await house.ended(await house.open(READING))
        assert bytes(view.output) == b'"quick"'

    run(story())


def test_when_both_attempts_fail_one_decision_follows() -> None:
    async def story() -> None:
        house = house_of(after(failed(), 100), after(failed(), 10), after(gave("third"), 5))
        session_id = await house.open(READING)
        view = await house.ended(session_id)
        assert bytes(view.output) == b'"third"'
        assert len(house.state(session_id).decisions) == 1
        proven(house, session_id)
        house.check_permits()

    run(story())


def test_a_restart_with_both_attempts_out_ends_both_and_asks_once() -> None:
    """The hedge cost a retry, and a lost answer the one that was lent with it: none is left."""

    async def story() -> None:
        house = house_of(after(gave("slow"), 3_000), after(gave("slow"), 3_000))
        session_id = await house.open(READING)
        await asyncio.sleep(0.2)
        assert len(house.targets.connection.sent) == 2
        again = House(store=house.store)
        again.targets.connection.lines["read"] = gave("after the restart")
        await again.resume()
        view = await again.ended(session_id)
        assert view.error is not None
        assert view.error.reason == Reason.UNAVAILABLE.value
        assert [row.attempt for row in rows(again, session_id)] == [1, 2]
        assert len(again.state(session_id).decisions) == 1
        proven(again, session_id)

    run(story())


@pytest.mark.parametrize(("reason", "at_most"), [(Reason.RATE_LIMITED, 1), (Reason.UNAVAILABLE, 8)])
def test_a_hedge_does_not_go_where_calls_are_not_wanted(reason: Reason, at_most: int) -> None:
    """The target of a fallback was not cooled down: who had asked for a pause got all of them."""

    async def story() -> None:
        house = house_of(after(gave("slow"), 200))
        other = FakeConnection()
        house.targets.here["tools-1.0.0-2"].connection = other
        refusal = error(reason, "not now", side_effect=SideEffect.NONE, retry_after_ms=60_000)
        other.lines["read"] = Said(error=refusal, after_ms=1)
        for _ in range(20):
            view = await house.ended(await house.open(READING))
            assert bytes(view.output) == b'"slow"'
        assert 1 <= len(other.sent) <= at_most

    run(story())
