"""Schemas of a card hold at run time: bad arguments are not sent, bad output is none (EXE-005)."""

import msgspec

from acp_spec.model.card import Action, Card
from acp_spec.model.enums import Effect, Idempotency, SessionStatus, SideEffect, StepType
from acp_spec.model.payload import payload
from acp_spec.model.session import ManualStep
from acp_spec.model.trajectory import Trajectory
from gateway.engine.tests.stage import OBSERVER, PLANNER, REFLECTOR, card, gave, goal, planned
from gateway.runtime.principal import LOCAL
from gateway.runtime.tests.fake_components import FakeTargets
from gateway.runtime.tests.house import House, told
from gateway.runtime.tests.virtual_time import run

WANTS = payload(b'{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}')
GIVES = payload(b'{"type":"object","required":["ok"]}')
PAY = Action(
    name="pay",
    effect=Effect.WRITE,
    idempotency=Idempotency.NATURAL,
    input_schema=WANTS,
    output_schema=GIVES,
)
SHOP: Card = card("shop", PAY)
STATIC = """
workflow: one
version: 1.0.0
steps:
  - {name: act, role: execute, action: pay, input_mapping: {n: input.n}}
output: act.output
"""
PLANNED = """
workflow: two
version: 1.0.0
steps:
  - {name: plan, role: plan}
  - {name: act, role: execute, plan: plan}
output: act.results
"""


def house() -> House:
    return House(targets=FakeTargets(SHOP, PLANNER, OBSERVER, REFLECTOR))


async def record(at: House, session: str) -> Trajectory:
    text = await at.service.trajectory(session, LOCAL)
    return msgspec.json.decode(text, type=Trajectory)


def test_arguments_that_break_the_input_schema_are_never_sent() -> None:
    async def story() -> None:
        at = house()
        session = await at.open(STATIC, input=payload(b'{"n":"one"}'))
        view = await at.ended(session)
        assert view.status is SessionStatus.FAILED
        assert view.error is not None
        assert view.error.reason == "CONTRACT_VIOLATION"
        assert view.error.side_effect is SideEffect.NONE
        assert "/n" in view.error.message
        assert at.targets.connection.sent == []

    run(story())


def test_output_that_breaks_the_output_schema_fails_the_call_and_keeps_what_it_did() -> None:
    async def story() -> None:
        at = house()
        at.targets.connection.lines["pay"] = gave({"no": 1})
        session = await at.open(STATIC, input=payload(b'{"n":1}'))
        view = await at.ended(session)
        assert view.status is SessionStatus.FAILED
        assert view.error is not None
        assert view.error.reason == "CONTRACT_VIOLATION"
        (row,) = (await record(at, session)).calls
        assert row.side_effect is SideEffect.PERFORMED
        assert row.attempt == 1, "a broken answer is not asked for again"

    run(story())


def test_output_that_fits_counts() -> None:
    async def story() -> None:
        at = house()
        at.targets.connection.lines["pay"] = gave({"ok": True})
        view = await at.ended(await at.open(STATIC, input=payload(b'{"n":1}')))
        assert bytes(view.output) == b'{"ok":true}'

    run(story())


def test_a_sub_goal_with_arguments_that_do_not_fit_fails_alone() -> None:
    async def story() -> None:
        at = house()
        bad = goal("bad", "pay", arguments={})
        good = goal("good", "pay", arguments={"n": 2})
        lines = at.targets.connection.lines
        lines["plan"], lines["pay"] = planned(bad, good), gave({"ok": True})
        view = await at.ended(await at.open(PLANNED))
        results = msgspec.json.decode(bytes(view.output))
        assert [row["status"] for row in results] == ["FAILED", "SUCCEEDED"]
        assert results[0]["error"]["reason"] == "CONTRACT_VIOLATION"

    run(story())


def test_a_manual_step_with_arguments_that_do_not_fit_is_refused_with_the_place() -> None:
    async def story() -> None:
        at = house()
        session = await at.open("")
        asked = ManualStep(
            step_type=StepType.TOOL,
            payload=payload(b'{"action":"pay","arguments":{"n":1.5}}'),
            step_key="k",
        )
        step = at.service.manual_step(session, asked, principal=LOCAL, wait_s=0)
        assert await told(step) == "CONTRACT_VIOLATION"

    run(story())
