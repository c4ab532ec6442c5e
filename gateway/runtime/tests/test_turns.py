"""Who goes first of those that wait for one slot: by the priority of sessions and of step types."""

from acp_spec.model.enums import Role, StepType
from gateway.engine.tests.casting import Said
from gateway.engine.tests.stage import ONE_ACTION, action, card
from gateway.runtime.connection import Outgoing
from gateway.runtime.tests.house import House, slots
from gateway.runtime.tests.virtual_time import run

CALL_MS = 100
PLANNING = """
workflow: planning
version: 1.0.0
steps: [{name: think, role: plan}]
output: think.plan
"""


def _slow(outgoing: Outgoing) -> Said:
    answer = b'{"output":1,"plan":{"sub_goals":[]}}'
    return Said(response=answer, after_ms=CALL_MS)


BOTH = card("both", action("read"), roles=(Role.PLANNER, Role.EXECUTOR))


def one_by_one() -> House:
    """One instance does everything, one call at a time, each for a tenth of a second."""
    house = House(cards=(BOTH,), parameters=slots(1, queue=10))
    house.targets.connection.lines.update({"read": _slow, "plan": _slow})
    return house


def order(house: House) -> list[str]:
    """The sessions in the order in which their calls were sent."""
    return [outgoing.context.session_id for outgoing in house.targets.connection.sent]


def test_of_those_who_wait_the_higher_priority_goes_first_and_equals_as_they_came() -> None:
    async def story() -> None:
        house = one_by_one()
        opened = {}
        for name, priority in (("now", 0), ("low", -1), ("first", 0), ("second", 0), ("high", 2)):
            opened[name] = await house.open(ONE_ACTION % "read", priority=priority)
        for session in opened.values():
            await house.ended(session)
        names = {session: name for name, session in opened.items()}
        told = [names[session] for session in order(house)]
        assert told == ["now", "high", "first", "second", "low"]

    run(story())


def test_a_step_type_with_a_higher_priority_goes_first_where_types_share_an_instance() -> None:
    async def story() -> None:
        house = one_by_one()
        house.admitting.step_priority = {StepType.PLAN: 1}
        opened = [await house.open(ONE_ACTION % "read") for _ in range(2)]
        opened.append(await house.open(PLANNING))
        for session in opened:
            await house.ended(session)
        now, reading, planning = opened
        assert order(house) == [now, planning, reading]

    run(story())
