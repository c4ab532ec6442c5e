"""Long operations: accepted at once, found by poll, reported by call-back, stopped, timed out."""

import asyncio
from pathlib import Path

import pytest

from acp_spec.model.calls import (
    CancelRequest,
    CancelResponse,
    ErrorBody,
    ExecuteResponse,
    OperationState,
)
from acp_spec.model.context import Callback
from acp_spec.model.enums import CancelState, Idempotency, OperationStatus, SideEffect
from acp_spec.model.errors import Reason
from acp_spec.model.session import CompleteOperation
from acp_spec.sdk import operations
from acp_spec.sdk.call import Call
from acp_spec.sdk.callback import post_call_back
from acp_spec.sdk.client import ComponentClient
from acp_spec.sdk.component import Component
from acp_spec.sdk.operations import CALL_BACK_TRIES, CallBackFailed
from acp_spec.sdk.outcome_file import FileOutcomes
from acp_spec.sdk.testing import CallBacksKept, InProcess, ManualClock, settle_loop
from acp_spec.sdk.tests.scripted import closed_port, response, scripted
from acp_spec.sdk.tests.served import Binding, again, execute, reason_of, tell
from acp_spec.sdk.values import write

TO = Callback(url="http://gateway/v1/operations/x:complete", token="secret")


class Work:
    """An operation whose end the test decides."""

    def __init__(self, *, outcomes: FileOutcomes | None = None) -> None:
        self.end = asyncio.Event()
        self.started = 0
        self.failure: Reason | None = None
        self.component = Component("long", "1.0.0", outcomes=outcomes)
        self.component.action("go", idempotency=Idempotency.BY_KEY, operation_timeout_ms=60_000)(
            self._accept
        )

    async def _accept(self, arguments: object, call: Call) -> object:
        async def go_on() -> object:
            self.started += 1
            await self.end.wait()
            if self.failure is not None:
                raise call.fail(self.failure, "As the test says.", side_effect=SideEffect.NONE)
            return {"done": True}

        return call.operation(go_on, poll_after_ms=50)


async def state_of(client: ComponentClient, call_id: str) -> OperationState:
    state = await client.get_operation(call_id)
    assert isinstance(state, OperationState), state
    return state


def test_an_operation_is_found_running_and_then_done(binding: Binding) -> None:
    work = Work()

    async def story(client: ComponentClient) -> None:
        request = execute("go")
        accepted = await client.execute(request)
        assert isinstance(accepted, ExecuteResponse)
        assert accepted.operation is not None
        assert accepted.operation.poll_after_ms == 50
        running = await state_of(client, request.context.call_id)
        assert running.status is OperationStatus.RUNNING
        work.end.set()
        await settle_loop()
        done = await state_of(client, request.context.call_id)
        assert done.status is OperationStatus.SUCCEEDED
        assert bytes(done.output) == b'{"done":true}'
        assert done.side_effect is SideEffect.PERFORMED

    tell(work.component, binding, story)


def test_a_repeat_of_the_call_is_accepted_again_and_starts_nothing(binding: Binding) -> None:
    work = Work()

    async def story(client: ComponentClient) -> None:
        request = execute("go")
        for attempt in (1, 2):
            answer = await client.execute(again(request, attempt=attempt))
            assert isinstance(answer, ExecuteResponse)
            assert answer.operation is not None
        await settle_loop()
        assert work.started == 1
        work.end.set()

    tell(work.component, binding, story)


def test_an_operation_nobody_accepted_is_not_found(binding: Binding) -> None:
    async def story(client: ComponentClient) -> None:
        assert reason_of(await client.get_operation("never")) == Reason.NOT_FOUND.value
        assert reason_of(await client.cancel_operation("never")) == Reason.NOT_FOUND.value

    tell(Work().component, binding, story)


@pytest.mark.parametrize("by", ["call", "operation"])
def test_a_cancel_stops_it_and_the_poll_says_so(binding: Binding, by: str) -> None:
    work = Work()

    async def story(client: ComponentClient) -> None:
        request = execute("go")
        call_id = request.context.call_id
        await client.execute(request)
        await settle_loop()
        answer = await (
            client.cancel(CancelRequest(call_id=call_id))
            if by == "call"
            else client.cancel_operation(call_id)
        )
        assert isinstance(answer, CancelResponse)
        assert answer.state is CancelState.STOPPED
        assert answer.side_effect is SideEffect.UNKNOWN
        assert (await state_of(client, call_id)).status is OperationStatus.CANCELLED
        again_cancelled = await client.cancel_operation(call_id)
        assert isinstance(again_cancelled, CancelResponse)
        assert again_cancelled.state is CancelState.FINISHED

    tell(work.component, binding, story)


def test_a_failure_is_reported_with_its_side_effect_by_call_back_and_poll() -> None:
    async def story() -> None:
        work = Work()
        work.failure = Reason.SEMANTIC_MISMATCH
        pair = InProcess(work.component)
        async with pair as client:
            request = execute("go", callback=TO)
            await client.execute(request)
            work.end.set()
            await settle_loop()
            polled = await state_of(client, request.context.call_id)
            assert polled.status is OperationStatus.FAILED
            ((to, result),) = pair.call_backs.received
            assert to == TO
            assert result.error == polled.error
            assert polled.side_effect is SideEffect.NONE

    asyncio.run(story())


def test_beyond_its_own_timeout_it_is_stopped() -> None:
    async def story() -> None:
        work, clock = Work(), ManualClock()
        async with InProcess(work.component, clock=clock) as client:
            request = execute("go", timeout_ms=100)
            await client.execute(request)
            await settle_loop()
            clock.advance(59_999)
            await settle_loop()
            call_id = request.context.call_id
            assert (await state_of(client, call_id)).status is OperationStatus.RUNNING
            clock.advance(1)
            await settle_loop()
            state = await state_of(client, call_id)
            assert state.error is not None
            assert state.error.reason == Reason.TIMEOUT.value

    asyncio.run(story())


@pytest.mark.parametrize(("failures", "arrives"), [(2, True), (CALL_BACK_TRIES, False)])
def test_a_call_back_is_tried_again_a_few_times_with_growing_pauses(
    failures: int, arrives: bool
) -> None:
    async def story() -> None:
        work, clock = Work(), ManualClock()
        pair = InProcess(work.component, clock=clock)
        pair.call_backs = CallBacksKept(failures=failures)
        async with pair as client:
            await client.execute(execute("go", callback=TO, timeout_ms=100))
            work.end.set()
            for _ in range(20):
                await settle_loop()
                clock.advance(500)
            assert bool(pair.call_backs.received) is arrives
            assert pair.call_backs.tried <= CALL_BACK_TRIES

    asyncio.run(story())


def test_a_result_outlives_the_process_where_the_store_is_a_file(tmp_path: Path) -> None:
    async def story() -> None:
        request = execute("go")
        work = Work(outcomes=FileOutcomes(tmp_path / "outcomes.db"))
        async with InProcess(work.component) as client:
            await client.execute(request)
            work.end.set()
            state = await state_of(client, request.context.call_id)
            while state.status is OperationStatus.RUNNING:
                await settle_loop()
                state = await state_of(client, request.context.call_id)
        after = Work(outcomes=FileOutcomes(tmp_path / "outcomes.db"))
        async with InProcess(after.component) as client:
            assert await state_of(client, request.context.call_id) == state

    asyncio.run(story())


def test_too_many_operations_at_once_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operations, "OPERATIONS_MAX", 1)

    async def story() -> None:
        work = Work()
        async with InProcess(work.component) as client:
            await client.execute(execute("go"))
            refused = await client.execute(execute("go"))
            assert isinstance(refused, ErrorBody)
            assert refused.error.reason == Reason.OVERLOADED.value
            assert refused.error.side_effect is SideEffect.NONE
            work.end.set()

    asyncio.run(story())


def test_the_call_back_is_a_post_with_the_token_and_the_result() -> None:
    with scripted(response(b"{}")) as server:
        to = Callback(url=f"{server.url}/v1/operations/x:complete", token="secret")
        asyncio.run(post_call_back(to, CompleteOperation(output=write({"n": 1}))))
    sent = server.requests[0]
    assert sent.startswith(b"POST /v1/operations/x:complete ")
    assert b"authorization: bearer secret" in sent.lower()
    assert sent.endswith(b'{"output":{"n":1}}')


@pytest.mark.parametrize(
    "said", [None, response(b"", status="302 Found"), response(b"", status="500 X")]
)
def test_a_call_back_that_is_not_taken_is_a_failure(said: bytes | None) -> None:
    with scripted(said) as server, pytest.raises(CallBackFailed):
        asyncio.run(post_call_back(Callback(url=server.url, token="t"), CompleteOperation()))


def test_a_call_back_to_nobody_is_a_failure() -> None:
    for url in (f"http://127.0.0.1:{closed_port()}", "no url at all"):
        with pytest.raises(CallBackFailed):
            asyncio.run(post_call_back(Callback(url=url, token="t"), CompleteOperation()))
