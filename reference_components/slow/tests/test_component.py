"""Slow takes the time it is told by the clock it is given, and stops when asked."""

import asyncio

import pytest

from acp_spec import InProcess, SideEffect, build_context
from acp_spec.model.calls import (
    CancelRequest,
    CancelResponse,
    ErrorBody,
    ExecuteRequest,
    ExecuteResponse,
    OperationState,
)
from acp_spec.model.context import Callback
from acp_spec.model.enums import CancelState, OperationStatus
from acp_spec.sdk.testing import ManualClock, settle_loop
from acp_spec.sdk.values import read, write
from reference_components.slow.component import make


def request(
    action: str, arguments: dict[str, object], callback: Callback | None = None
) -> ExecuteRequest:
    context = build_context(action, arguments)
    if callback is not None:
        context = build_context(action, arguments, callback=callback)
    return ExecuteRequest(context=context, action=action, arguments=write(arguments))


async def pass_time(clock: ManualClock, *, ms: int) -> None:
    for _ in range(ms // 50):
        await settle_loop()
        clock.advance(50)
    await settle_loop()


@pytest.mark.parametrize("action", ["slow.read", "slow.write", "slow.keyed"])
def test_it_takes_the_time_it_is_told(action: str) -> None:
    async def story() -> None:
        clock = ManualClock()
        async with InProcess(make(), clock=clock) as client:
            asked = asyncio.ensure_future(client.execute(request(action, {"ms": 250})))
            await pass_time(clock, ms=200)
            assert not asked.done()
            await pass_time(clock, ms=100)
            answer = await asked
            assert isinstance(answer, ExecuteResponse)
            assert read(answer.output) == {"took_ms": 250}

    asyncio.run(story())


def test_a_cancelled_write_has_done_nothing_and_a_deaf_one_goes_on() -> None:
    async def story() -> None:
        clock = ManualClock()
        async with InProcess(make(), clock=clock) as client:
            for deaf, expected in ((False, CancelState.STOPPED), (True, CancelState.RUNNING)):
                asked = request("slow.write", {"ms": 3000, "deaf": deaf})
                running = asyncio.ensure_future(client.execute(asked))
                await settle_loop()
                cancelling = asyncio.ensure_future(
                    client.cancel(CancelRequest(call_id=asked.context.call_id))
                )
                await pass_time(clock, ms=1000)
                answer = await cancelling
                assert isinstance(answer, CancelResponse)
                assert answer.state is expected
                if not deaf:
                    stopped = await running
                    assert isinstance(stopped, ErrorBody)
                    assert stopped.error.side_effect is SideEffect.NONE
            await pass_time(clock, ms=3000)  # the deaf one would outlive the test otherwise

    asyncio.run(story())


def test_an_operation_ends_with_a_call_back_that_says_what_a_poll_says() -> None:
    async def story() -> None:
        clock = ManualClock()
        pair = InProcess(make(), clock=clock)
        async with pair as client:
            to = Callback(url="http://gateway/v1/operations/x:complete", token="secret")
            asked = request("slow.operation", {"ms": 300}, callback=to)
            accepted = await client.execute(asked)
            assert isinstance(accepted, ExecuteResponse)
            assert accepted.operation is not None
            await pass_time(clock, ms=400)
            polled = await client.get_operation(asked.context.call_id)
            assert isinstance(polled, OperationState)
            assert polled.status is OperationStatus.SUCCEEDED
            ((address, result),) = pair.call_backs.received
            assert address == to
            assert bytes(result.output) == bytes(polled.output)

    asyncio.run(story())


def test_a_cancelled_operation_says_so() -> None:
    async def story() -> None:
        clock = ManualClock()
        async with InProcess(make(), clock=clock) as client:
            asked = request("slow.operation", {"ms": 60_000})
            await client.execute(asked)
            await settle_loop()
            answer = await client.cancel_operation(asked.context.call_id)
            assert isinstance(answer, CancelResponse)
            assert (answer.state, answer.side_effect) == (CancelState.STOPPED, SideEffect.NONE)
            state = await client.get_operation(asked.context.call_id)
            assert isinstance(state, OperationState)
            assert state.status is OperationStatus.CANCELLED

    asyncio.run(story())
