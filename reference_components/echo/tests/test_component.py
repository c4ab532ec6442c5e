"""A whole session's four calls on echo, and the well-known actions as their descriptions say."""

import asyncio

from acp_spec import InProcess, JsonText, SideEffect, Verdict, build_context
from acp_spec.model.calls import (
    ErrorBody,
    ExecuteRequest,
    ExecuteResponse,
    Observation,
    ObserveRequest,
    ObserveResponse,
    OperationState,
    PlanRequest,
    PlanResponse,
    ReflectRequest,
    ReflectResponse,
    SettledCall,
)
from acp_spec.model.card import Card
from acp_spec.model.enums import OperationStatus, Role
from acp_spec.sdk.testing import ManualClock, settle_loop
from acp_spec.sdk.values import read, write
from reference_components.echo.component import make

EXACT = JsonText(b'{"n":9007199254740993,"d":0.10}')


def request(action: str, arguments: object) -> ExecuteRequest:
    context = build_context(action, arguments)
    return ExecuteRequest(context=context, action=action, arguments=write(arguments))


def test_the_four_calls_of_a_session_carry_the_input_through_unchanged() -> None:
    async def story() -> None:
        async with InProcess(make()) as client:
            card = await client.describe()
            assert isinstance(card, Card)
            assert set(card.roles) == set(Role)
            planned = await client.plan(PlanRequest(context=build_context(), input=write(EXACT)))
            assert isinstance(planned, PlanResponse)
            (goal,) = planned.plan.sub_goals
            done = await client.execute(
                ExecuteRequest(
                    context=build_context(), action=goal.action, arguments=goal.arguments
                )
            )
            assert isinstance(done, ExecuteResponse)
            assert bytes(done.output) == EXACT
            seen = await client.observe(
                ObserveRequest(
                    context=build_context(), observations=(Observation(data=done.output),)
                )
            )
            assert isinstance(seen, ObserveResponse)
            assert seen.stored == 1
            judged = await client.reflect(
                ReflectRequest(
                    context=build_context(),
                    calls=(SettledCall(call_id="c", output=done.output),),
                )
            )
            assert isinstance(judged, ReflectResponse)
            assert judged.verdict is Verdict.ACCEPT
            assert bytes(judged.output) == EXACT

    asyncio.run(story())


def test_count_counts_each_call_once() -> None:
    async def story() -> None:
        async with InProcess(make()) as client:
            once = request("acp.test.count", {"key": "k"})
            answers = [await client.execute(once) for _ in range(2)]
            answers.append(await client.execute(request("acp.test.count", {"key": "k"})))
            outputs = [
                read(answer.output) for answer in answers if isinstance(answer, ExecuteResponse)
            ]
            assert outputs == [
                {"key": "k", "count": 1},
                {"key": "k", "count": 1},
                {"key": "k", "count": 2},
            ]

    asyncio.run(story())


def test_fail_fails_as_told() -> None:
    async def story() -> None:
        async with InProcess(make()) as client:
            told = {"reason": "OVERLOADED", "side_effect": "UNKNOWN", "retry_after_ms": 5}
            answer = await client.execute(request("acp.test.fail", told))
            assert isinstance(answer, ErrorBody)
            assert answer.error.reason == "OVERLOADED"
            assert answer.error.side_effect is SideEffect.UNKNOWN
            assert answer.error.retry_after_ms == 5

    asyncio.run(story())


def test_an_operation_is_accepted_then_found_running_then_done() -> None:
    async def story() -> None:
        clock = ManualClock()
        async with InProcess(make(), clock=clock) as client:
            asked = request("acp.test.operation", {"ms": 1000})
            accepted = await client.execute(asked)
            assert isinstance(accepted, ExecuteResponse)
            assert accepted.operation is not None
            running = await client.get_operation(asked.context.call_id)
            assert isinstance(running, OperationState)
            assert running.status is OperationStatus.RUNNING
            clock.advance(1000)
            await settle_loop()
            done = await client.get_operation(asked.context.call_id)
            assert isinstance(done, OperationState)
            assert done.status is OperationStatus.SUCCEEDED
            assert read(done.output) == {"slept_ms": 1000}

    asyncio.run(story())
