"""Values are mapped once, where they enter; the event carries it, and a replay asks nobody."""

import asyncio

import msgspec
import pytest

from acp_spec.model.calls import OperationState
from acp_spec.model.card import Action
from acp_spec.model.enums import (
    Boundary,
    Effect,
    Idempotency,
    Mode,
    OperationStatus,
    SessionStatus,
    SideEffect,
    StepType,
)
from acp_spec.model.errors import AcpFailure
from acp_spec.model.payload import payload
from acp_spec.model.semantics import HowMapped
from acp_spec.model.session import CompleteOperation, ManualStep, SessionView
from acp_spec.model.trajectory import Trajectory
from gateway.engine.events import AttemptEnded, CallCreated, Opened, OperationEnded
from gateway.engine.replay import check
from gateway.engine.tests.stage import (
    OBSERVER,
    PLANNER,
    REFLECTOR,
    accepted,
    card,
    gave,
    goal,
    planned,
)
from gateway.runtime.meaning import Meaning
from gateway.runtime.ngrams import NgramNearest
from gateway.runtime.principal import LOCAL
from gateway.runtime.tests.fake_components import FakeTargets
from gateway.runtime.tests.house import House, told
from gateway.runtime.tests.virtual_time import run

ONLY = payload(b'{"properties":{"queue":{"enum":["FAST","SLOW"]}}}')
ROUTE = Action(
    name="route",
    effect=Effect.WRITE,
    idempotency=Idempotency.NATURAL,
    operation_timeout_ms=90_000,
    input_schema=ONLY,
    output_schema=payload(b'{"properties":{"label":{"enum":["REFUND","TRACK"]}}}'),
)
CONTRACT = """
contract:
  semantics:
    domains:
      intent: {values: {REFUND: [money back], TRACK: [where is it]}}
      queue: {values: {FAST: [express], SLOW: []}}
    fields:
      - {in: input, at: /intent, domain: intent}
      - {in: output, action: route, at: /label, domain: intent}
      - {in: arguments, action: route, at: /queue, domain: queue}
"""
STATIC = (
    """
workflow: one
version: 1.0.0
steps:
  - {name: act, role: execute, action: route, input_mapping: {queue: input.queue, n: input.n}}
output: act.output
"""
    + CONTRACT
)
PLANNED = (
    """
workflow: two
version: 1.0.0
steps:
  - {name: plan, role: plan}
  - {name: act, role: execute, plan: plan}
output: act.results
"""
    + CONTRACT
)


def house() -> House:
    at = House(targets=FakeTargets(card("desk", ROUTE), PLANNER, OBSERVER, REFLECTOR))
    at.driver.meaning = Meaning(NgramNearest())
    at.targets.connection.lines["route"] = gave({"label": "REFUND"})
    return at


async def ended(at: House, text: str, given: bytes) -> tuple[str, SessionView]:
    session = await at.open(text, input=payload(given))
    return session, await at.ended(session)


async def record(at: House, session: str) -> Trajectory:
    return msgspec.json.decode(await at.service.trajectory(session, LOCAL), type=Trajectory)


def test_an_input_is_mapped_before_the_session_opens_and_the_rest_stays_byte_for_byte() -> None:
    async def story() -> None:
        at = house()
        session, view = await ended(at, STATIC, b'{"n":0.10,"intent":"money-back","queue":"FAST"}')
        assert view.status is SessionStatus.SUCCEEDED
        opened = at.state(session).opened
        assert bytes(opened.input) == b'{"n":0.10,"intent":"REFUND","queue":"FAST"}'
        (value,) = (await record(at, session)).input_mapped
        assert (value.from_, value.to, value.how) == ("money-back", "REFUND", HowMapped.SYNONYM)

    run(story())


def test_an_input_outside_its_domain_opens_nothing_and_is_the_clients_fault() -> None:
    async def story() -> None:
        at = house()
        with pytest.raises(AcpFailure) as refused:
            await at.open(STATIC, input=payload(b'{"intent":"buy a horse","queue":"FAST"}'))
        failure = refused.value.error
        assert (failure.reason, failure.boundary) == ("SEMANTIC_MISMATCH", Boundary.CLIENT)
        assert "input/intent: 'buy a horse' is not in the domain 'intent'" in failure.message
        assert at.seen.events == []

    run(story())


def test_the_same_request_again_is_the_same_session_whatever_it_was_mapped_to() -> None:
    async def story() -> None:
        at = house()
        given = payload(b'{"n":1,"intent":"Refund","queue":"FAST"}')
        first = await at.open(STATIC, input=given, session_key="k")
        assert await at.open(STATIC, input=given, session_key="k") == first

    run(story())


def test_arguments_are_mapped_before_the_schema_looks_and_before_they_are_sent() -> None:
    async def story() -> None:
        at = house()
        session, view = await ended(at, STATIC, b'{"n":1.50,"queue":"Express"}')
        assert view.status is SessionStatus.SUCCEEDED
        (sent,) = at.targets.connection.sent
        assert bytes(sent.body) == b'{"action":"route","arguments":{"queue":"FAST","n":1.50}}'
        (row,) = (await record(at, session)).calls
        assert [(one.from_, one.to) for one in row.arguments_mapped] == [("Express", "FAST")]

    run(story())


def test_arguments_outside_their_domain_are_never_sent() -> None:
    async def story() -> None:
        at = house()
        session, view = await ended(at, STATIC, b'{"n":1,"queue":"sideways"}')
        assert view.error is not None
        assert (view.error.reason, view.error.side_effect) == ("SEMANTIC_MISMATCH", SideEffect.NONE)
        assert "arguments of route/queue: 'sideways'" in view.error.message
        assert at.targets.connection.sent == []
        last = at.journal(session)[-2]
        assert [one.from_ for one in last.mapped] == ["sideways"]  # type: ignore[union-attr]

    run(story())


def test_a_sub_goal_whose_argument_nobody_knows_fails_alone_and_the_plan_keeps_its_words() -> None:
    async def story() -> None:
        at = house()
        good, bad = (
            goal("good", "route", arguments={"queue": "express"}),
            goal("bad", "route", arguments={"queue": "sideways"}),
        )
        at.targets.connection.lines["plan"] = planned(good, bad)
        session, view = await ended(at, PLANNED, b"{}")
        results = msgspec.json.decode(bytes(view.output))
        assert [one["status"] for one in results] == ["SUCCEEDED", "FAILED"]
        assert results[1]["error"]["reason"] == "SEMANTIC_MISMATCH"
        told = (await record(at, session)).plan[0].plan.sub_goals[0]
        assert bytes(told.arguments) == b'{"queue":"express"}'

    run(story())


def test_an_output_is_mapped_when_the_attempt_ends_before_its_schema_looks() -> None:
    async def story() -> None:
        at = house()
        at.targets.connection.lines["route"] = gave({"label": "Where is it", "n": 1.5})
        session, view = await ended(at, STATIC, b'{"n":1,"queue":"SLOW"}')
        assert bytes(view.output) == b'{"label":"TRACK","n":1.5}'
        (row,) = (await record(at, session)).calls
        assert [(one.at, one.to) for one in row.output_mapped] == [("/label", "TRACK")]

    run(story())


def test_an_output_outside_its_domain_fails_the_call_and_keeps_what_it_did() -> None:
    async def story() -> None:
        at = house()
        at.targets.connection.lines["route"] = gave({"label": "horse"})
        session, view = await ended(at, STATIC, b'{"n":1,"queue":"SLOW"}')
        assert view.error is not None
        assert (view.error.reason, view.error.boundary) == (
            "SEMANTIC_MISMATCH",
            Boundary.COMPONENT,
        )
        assert view.error.side_effect is SideEffect.PERFORMED
        (row,) = (await record(at, session)).calls
        assert row.side_effect is SideEffect.PERFORMED
        assert row.attempt == 1, "an answer that nobody understands is not asked for again"

    run(story())


def test_a_manual_step_is_mapped_or_refused_like_any_other() -> None:
    async def story() -> None:
        at = house()
        kept: list[tuple[str, str]] = []
        at.service._openings.on_refused_values = lambda where, values: kept.extend(
            (where.field, one.from_) for one in values
        )
        session = await at.open(STATIC, input=payload(b'{"n":1}'), mode=Mode.MANUAL)

        async def step(key: str, queue: str) -> object:
            text = b'{"action":"route", "arguments":{"queue":"%s","n":2.50}}' % queue.encode()
            asked = ManualStep(step_type=StepType.TOOL, payload=payload(text), step_key=key)
            return await at.service.manual_step(session, asked, principal=LOCAL, wait_s=5)

        await step("one", "express")
        (sent,) = at.targets.connection.sent
        assert bytes(sent.body) == b'{"action":"route", "arguments":{"queue":"FAST","n":2.50}}'
        assert await told(step("two", "sideways")) == "SEMANTIC_MISMATCH"
        assert kept == [("arguments of two", "sideways")]

    run(story())


@pytest.mark.parametrize("by", ["poll", "callback"])
def test_the_output_of_a_long_operation_is_mapped_when_it_ends(by: str) -> None:
    async def story() -> None:
        at = house()
        at.targets.connection.lines["route"] = accepted(100 if by == "poll" else 60_000)
        done = payload(b'{"label":"money back"}')
        at.targets.connection.operations = [
            OperationState(status=OperationStatus.SUCCEEDED, output=done)
        ]
        session = await at.open(STATIC, input=payload(b'{"n":1,"queue":"SLOW"}'))
        if by == "callback":
            await asyncio.sleep(0.1)
            context = at.targets.connection.sent[0].context
            assert context.callback is not None
            await at.service.complete_operation(
                context.call_id, context.callback.token, result=CompleteOperation(output=done)
            )
        view = await at.ended(session)
        assert bytes(view.output) == b'{"label":"REFUND"}'
        (event,) = [one for one in at.journal(session) if isinstance(one, OperationEnded)]
        assert [one.to for one in event.mapped] == ["REFUND"]

    run(story())


def test_a_replay_asks_nobody_and_comes_to_the_same() -> None:
    async def story() -> None:
        at = house()
        at.targets.connection.lines["route"] = gave({"label": "refnd"})
        session, view = await ended(at, STATIC, b'{"n":1,"intent":"trackk","queue":"exprss"}')
        assert view.status is SessionStatus.SUCCEEDED, view.error
        journal = at.journal(session)
        found = check(journal, at.state(session).workflow)
        assert found.same, found.difference
        assert found.proven
        kinds = (Opened, CallCreated, AttemptEnded)
        said = [
            (value.from_, value.to, value.how)
            for event in journal
            if isinstance(event, kinds)
            for value in event.mapped
        ]
        assert said == [
            ("trackk", "TRACK", HowMapped.NEAREST),
            ("exprss", "FAST", HowMapped.NEAREST),
            ("refnd", "REFUND", HowMapped.NEAREST),
        ]
        assert all(
            value.confidence < 1 for e in journal if isinstance(e, kinds) for value in e.mapped
        )

    run(story())
