"""When the pinned component is not there: wait, deviate, or refuse (SPEC 9.6)."""

import asyncio

from acp_spec.model.enums import Role
from gateway.engine.tests.stage import FOUR_CALLS, ONE_ACTION, TOOLS, action, card, goal, planned
from gateway.runtime.principal import LOCAL
from gateway.runtime.tests.fake_components import FakeTargets
from gateway.runtime.tests.house import CARDS, House
from gateway.runtime.tests.virtual_time import SkewedClock, run

NEWER = card("tools", action("read"), action("put"), version="2.0.0")
LESS = card("tools", action("other"), version="2.0.0")
TWO_STEPS = """
workflow: two
version: 1.0.0
steps:
  - {name: first, role: execute, action: put}
  - {name: act, role: execute, action: read}
output: act.output
"""


async def without_tools(house: House, text: str) -> str:
    """A session whose second step is pinned to an instance that leaves after the first."""
    session = await house.open(text)
    house.targets.remove("tools-1.0.0-1")
    return session


def test_an_instance_that_comes_back_within_the_grace_serves_as_if_nothing_had_been() -> None:
    async def story() -> None:
        house = House()
        session = await without_tools(house, TWO_STEPS)
        await asyncio.sleep(0.3)
        assert (await house.service.view(session, LOCAL)).status.value == "RUNNING"
        house.targets.add(TOOLS)
        view = await house.ended(session)
        assert view.status.value == "SUCCEEDED"
        assert view.deviations == ()
        house.check_permits()

    run(story())


def test_after_the_grace_the_active_version_serves_and_the_deviation_is_recorded() -> None:
    async def story() -> None:
        house = House()
        session = await without_tools(house, TWO_STEPS)
        house.targets.add(NEWER)
        await asyncio.sleep(0.4)
        assert (await house.service.view(session, LOCAL)).status.value == "RUNNING"
        view = await house.ended(session)
        assert view.status.value == "SUCCEEDED"
        (deviation, *_) = view.deviations
        assert (deviation.intended, deviation.served) == ("tools@1.0.0", "tools@2.0.0")
        house.check_permits()

    run(story())


def test_a_clock_that_is_set_back_makes_nobody_wait_for_as_long() -> None:
    """World 3208 of seed 77: a session waited for the jump, and not for its grace."""

    async def story() -> None:
        clock = SkewedClock()
        house = House(clock=clock)
        session = await without_tools(house, TWO_STEPS)
        house.targets.add(NEWER)
        clock.skew_ms = -3_600_000
        await asyncio.sleep(1)
        view = await house.service.view(session, LOCAL)
        assert view.status.value == "SUCCEEDED"
        assert view.deviations[0].served == "tools@2.0.0"

    run(story())


def test_what_is_gone_for_long_is_not_waited_for_again() -> None:
    """Each call waited its own grace: a session over a dead component took one grace per call."""

    async def story() -> None:
        house = House()
        session = await without_tools(house, TWO_STEPS)
        house.targets.gone_at_ms["tools@1.0.0"] = 0
        house.targets.add(NEWER)
        await asyncio.sleep(0.1)
        view = await house.service.view(session, LOCAL)
        assert view.status.value == "SUCCEEDED"
        assert view.deviations[0].served == "tools@2.0.0"

    run(story())


def test_a_strict_workflow_is_refused_rather_than_served_by_another_version() -> None:
    async def story() -> None:
        house = House()
        session = await without_tools(house, TWO_STEPS + "pin: strict\n")
        house.targets.add(NEWER)
        view = await house.ended(session)
        assert view.error is not None
        assert view.error.reason == "NO_COMPONENT"
        assert view.deviations == ()

    run(story())


def test_another_version_without_the_action_does_not_serve() -> None:
    async def story() -> None:
        house = House()
        session = await without_tools(house, TWO_STEPS)
        house.targets.add(LESS)
        view = await house.ended(session)
        assert view.error is not None
        assert view.error.reason == "NO_COMPONENT"

    run(story())


def test_after_a_start_everything_waits_for_the_attach_grace() -> None:
    async def story() -> None:
        house = House(targets=FakeTargets(), attach_grace_ms=5_000)
        session = await house.open(ONE_ACTION % "read")
        await asyncio.sleep(4)
        assert (await house.service.view(session, LOCAL)).status.value == "RUNNING"
        for one in CARDS:
            house.targets.add(one)
        assert (await house.ended(session)).status.value == "SUCCEEDED"
        house.check_permits()

    run(story())


def test_an_action_that_somebody_offers_by_now_is_found() -> None:
    """A static step created while nobody served it waited its grace and failed all the same."""

    async def story() -> None:
        house = House(targets=FakeTargets())
        session = await house.open(ONE_ACTION % "read")
        await asyncio.sleep(0.2)
        house.targets.add(TOOLS)
        assert (await house.ended(session)).status.value == "SUCCEEDED"

    run(story())


def test_a_role_that_nobody_has_is_waited_for_too() -> None:
    async def story() -> None:
        house = House(targets=FakeTargets(TOOLS, CARDS[1], CARDS[2]))
        session = await house.open(FOUR_CALLS)
        await asyncio.sleep(0.2)
        house.targets.add(card("late-planner", roles=(Role.PLANNER,)))
        assert (await house.ended(session)).status.value == "SUCCEEDED"

    run(story())


def test_a_session_cancelled_while_it_waits_leaves_nothing_behind() -> None:
    async def story() -> None:
        house = House(targets=FakeTargets(), attach_grace_ms=3_000)
        session = await house.open(ONE_ACTION % "read")
        await house.service.cancel(session, LOCAL)
        assert (await house.ended(session)).status.value == "CANCELLED"
        await asyncio.sleep(5)
        house.check_permits()

    run(story())


def test_in_one_plan_a_missing_component_stops_only_its_own_sub_goal() -> None:
    async def story() -> None:
        other = card("other", action("elsewhere"))
        house = House(cards=(*CARDS, other))
        plan = planned(goal("a", "elsewhere"), goal("b", "read"))
        house.targets.connection.lines["plan"] = plan
        session = await house.open(FOUR_CALLS)
        house.targets.remove("other-1.0.0-1")
        await house.ended(session)
        found = house.state(session).steps["act"].sub_goals
        assert found["b"].status.value == "SUCCEEDED"
        assert found["a"].status.value in ("FAILED", "SUCCEEDED")

    run(story())
