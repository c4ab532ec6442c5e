"""Flaky does for each attempt what its script says, and nothing else."""

import asyncio

from acp_spec import InProcess, SideEffect, build_context
from acp_spec.model.calls import ErrorBody, ExecuteRequest, ExecuteResponse
from acp_spec.sdk.testing import ManualClock, settle_loop
from acp_spec.sdk.values import read, write
from reference_components.flaky.component import make


def request(action: str, arguments: object, *, attempt: int) -> ExecuteRequest:
    context = build_context(action, arguments, attempt=attempt)
    return ExecuteRequest(context=context, action=action, arguments=write(arguments))


def test_each_attempt_gets_its_entry_and_later_ones_succeed() -> None:
    async def story() -> None:
        script = ["OVERLOADED", {"do": "UNAVAILABLE", "side_effect": "NONE"}, "CRASH"]
        told = {"script": script, "output": "x"}
        async with InProcess(make()) as client:
            answers = [
                await client.execute(request("flaky.write", told, attempt=attempt))
                for attempt in (1, 2, 3, 4)
            ]
        errors = [answer.error for answer in answers if isinstance(answer, ErrorBody)]
        assert [(error.reason, error.side_effect) for error in errors] == [
            ("OVERLOADED", SideEffect.NONE),
            ("UNAVAILABLE", SideEffect.NONE),
            ("INTERNAL", SideEffect.UNKNOWN),
        ]
        last = answers[-1]
        assert isinstance(last, ExecuteResponse)
        assert read(last.output) == {"attempt": 4, "output": "x"}

    asyncio.run(story())


def test_a_script_of_the_component_serves_calls_that_bring_none() -> None:
    async def story() -> None:
        async with InProcess(make(["RATE_LIMITED"])) as client:
            answer = await client.execute(request("flaky.read", {}, attempt=1))
            assert isinstance(answer, ErrorBody)
            assert answer.error.reason == "RATE_LIMITED"

    asyncio.run(story())


def test_a_hanging_call_ends_at_its_deadline() -> None:
    async def story() -> None:
        clock = ManualClock()
        async with InProcess(make(), clock=clock) as client:
            asked = request("flaky.read", {"script": ["HANG"]}, attempt=1)
            hanging = asyncio.ensure_future(client.execute(asked))
            await settle_loop()
            clock.advance(10_000)
            answer = await hanging
            assert isinstance(answer, ErrorBody)
            assert answer.error.reason == "TIMEOUT"
            assert answer.error.side_effect is SideEffect.NONE

    asyncio.run(story())
