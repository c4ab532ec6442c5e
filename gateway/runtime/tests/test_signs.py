"""Load figures reach planners, expressions and decisions while they are fresh, and never later."""

import asyncio

import msgspec

from acp_spec.model.context import Signals
from gateway.engine.events import AttemptStarted, Decided
from gateway.engine.tests.stage import FOUR_CALLS, ONE_ACTION, failed
from gateway.runtime.signs import FRESH_MS, TEXT_MS, Signs
from gateway.runtime.tests.house import House
from gateway.runtime.tests.virtual_time import run

BUSY = Signals(component="tools", queue_length=7, queue_ms=120.0, service_ms=15.0, cpu_percent=90.0)
CHOOSING = """
workflow: choosing
version: 1.0.0
steps:
  - {name: act, role: execute, action: read, condition: "signals.tools.queue_length < 5"}
output: act.status
"""


def tell(house: House, signals: Signals, instance: str = "tools-1.0.0-1") -> None:
    target = house.targets.here[instance]
    target.signals, target.signals_at_ms = signals, house.clock.now_ms()


def signs(house: House) -> Signs:
    found = Signs(house.targets, house.clock, everybody=house.targets.here.values)
    house.admitting.signals_of = found.of_attempt
    house.driver.signals = found.text
    return found


def test_a_planner_is_told_the_load_of_those_whose_actions_it_may_use() -> None:
    async def story() -> None:
        house = House()
        signs(house)
        tell(house, BUSY)
        session = await house.open(FOUR_CALLS)
        await house.ended(session)
        sent = {o.context.step: o.context.signals for o in house.targets.connection.sent}
        assert sent["plan"] == (BUSY,)
        assert sent["act"] == (BUSY,)
        assert sent["remember"] == ()
        rows = {e.component: e.signals for e in house.journal(session)
                if isinstance(e, AttemptStarted)}  # fmt: skip
        assert rows["planner"] == (BUSY,)

    run(story())


def test_figures_that_have_grown_old_are_given_to_nobody() -> None:
    async def story() -> None:
        house = House()
        found = signs(house)
        tell(house, BUSY)
        await asyncio.sleep((FRESH_MS + 1) / 1000)
        await house.ended(await house.open(FOUR_CALLS))
        assert all(o.context.signals == () for o in house.targets.connection.sent)
        assert found.worst() == {}

    run(story())


def test_a_condition_may_ask_for_the_load_and_sees_the_worst_instance() -> None:
    async def story() -> None:
        house = House()
        found = signs(house)
        other = house.targets.add(house.targets.here["tools-1.0.0-1"].card, instance="second")
        tell(house, BUSY)
        tell(house, Signals(queue_length=1), instance=other.component_id)
        text = msgspec.json.decode(found.text())
        assert text["tools"]["queue_length"] == 7
        assert set(text["tools"]) == {"queue_length", "queue_ms", "service_ms", "cpu_percent"}
        session = await house.open(CHOOSING)
        assert [step.status.value for step in (await house.ended(session)).steps] == ["SKIPPED"]
        tell(house, Signals(queue_length=2))
        await asyncio.sleep(TEXT_MS / 1000 + 0.01)
        session = await house.open(CHOOSING)
        assert [step.status.value for step in (await house.ended(session)).steps] == ["SUCCEEDED"]

    run(story())


def test_a_decision_records_the_figures_with_their_age() -> None:
    async def story() -> None:
        house = House()
        tell(house, BUSY)
        house.targets.connection.lines["read"] = failed()
        await asyncio.sleep(40)
        session = await house.open(ONE_ACTION % "read")
        await house.ended(session)
        first = next(e.decision for e in house.journal(session) if isinstance(e, Decided))
        assert (first.features["queue_length"], first.features["cpu_percent"]) == (7, 90.0)
        assert first.signals_age_ms == first.features["signals_age_ms"] == 40_005
        assert first.features["gpu_queue_length"] is None, "not reported, not zero"

    run(story())
