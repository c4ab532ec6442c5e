"""The rules of a component server, each told once and run over HTTP, gRPC and in process."""

import asyncio

import msgspec
import pytest

from acp_spec.model.calls import (
    CancelRequest,
    ErrorBody,
    ExecuteResponse,
    Observation,
    ObserveRequest,
    ObserveResponse,
    PlanRequest,
    PlanResponse,
    Progress,
    ReflectRequest,
    ReflectResponse,
)
from acp_spec.model.card import Card, Health, Limits
from acp_spec.model.enums import (
    Boundary,
    CancelState,
    Effect,
    HealthStatus,
    Idempotency,
    Role,
    SideEffect,
    Verdict,
)
from acp_spec.model.errors import Code, Reason
from acp_spec.model.plan import Plan, SubGoal
from acp_spec.sdk.call import Call
from acp_spec.sdk.client import ComponentClient
from acp_spec.sdk.component import Component
from acp_spec.sdk.testing import build_context
from acp_spec.sdk.tests.served import Binding, execute, output_of, reason_of, tell
from acp_spec.sdk.values import JsonText, write

EXACT = b'{"a":0.10,"big":123456789012345678901.10,"n":9007199254740993,"e":1E5,"z":"\\u00e9\\/"}'


def component_with_all_roles() -> Component:
    component = Component("all", "1.2.3")

    @component.action("echo", effect=Effect.READ, idempotency=Idempotency.NATURAL)
    def echo(arguments: object, call: Call) -> object:
        return JsonText(call.arguments_text)

    @component.action("write")
    async def write_it(arguments: object, call: Call) -> object:
        return {"done": True}

    @component.plan
    def plan(request: PlanRequest, call: Call) -> Plan:
        goal = SubGoal(id="one", action="echo", arguments=request.input)
        return Plan(root_goal=request.goal, sub_goals=(goal,))

    @component.observe
    def observe(request: ObserveRequest, call: Call) -> ObserveResponse:
        return ObserveResponse(stored=len(request.observations))

    @component.reflect
    def reflect(request: ReflectRequest, call: Call) -> ReflectResponse:
        return ReflectResponse(verdict=Verdict.ACCEPT, output=request.draft)

    return component


def test_a_component_describes_itself_and_says_that_it_serves(binding: Binding) -> None:
    async def story(client: ComponentClient) -> None:
        card = await client.describe()
        assert isinstance(card, Card)
        assert (card.name, card.version) == ("all", "1.2.3")
        assert set(card.roles) == set(Role)
        assert [action.name for action in card.actions] == ["echo", "write"]
        health = await client.health()
        assert isinstance(health, Health)
        assert health.status is HealthStatus.SERVING

    tell(component_with_all_roles(), binding, story)


def test_each_of_the_four_calls_reaches_its_function(binding: Binding) -> None:
    async def story(client: ComponentClient) -> None:
        planned = await client.plan(
            PlanRequest(context=build_context(), goal="g", input=write({"q": 1}))
        )
        assert isinstance(planned, PlanResponse)
        assert planned.plan.root_goal == "g"
        assert planned.component is not None
        assert planned.component.version == "1.2.3"
        observed = await client.observe(
            ObserveRequest(context=build_context(), observations=(Observation(step="s"),))
        )
        assert isinstance(observed, ObserveResponse)
        assert observed.stored == 1
        reflected = await client.reflect(
            ReflectRequest(context=build_context(), draft=write([1, 2]))
        )
        assert isinstance(reflected, ReflectResponse)
        assert bytes(reflected.output) == b"[1,2]"

    tell(component_with_all_roles(), binding, story)


def test_a_payload_comes_back_byte_for_byte(binding: Binding) -> None:
    async def story(client: ComponentClient) -> None:
        answer = await client.execute(execute("echo", JsonText(EXACT)))
        assert output_of(answer) == EXACT

    tell(component_with_all_roles(), binding, story)


def test_a_read_did_nothing_and_a_write_was_performed_unless_said_otherwise(
    binding: Binding,
) -> None:
    async def story(client: ComponentClient) -> None:
        read = await client.execute(execute("echo"))
        written = await client.execute(execute("write"))
        assert isinstance(read, ExecuteResponse)
        assert isinstance(written, ExecuteResponse)
        assert (read.side_effect, written.side_effect) == (SideEffect.NONE, SideEffect.PERFORMED)

    tell(component_with_all_roles(), binding, story)


def test_an_unknown_action_and_a_missing_role_are_named_and_not_found(binding: Binding) -> None:
    component = Component("small", "1.0.0")

    @component.action("only")
    def only(arguments: object, call: Call) -> object:
        return None

    async def story(client: ComponentClient) -> None:
        answer = await client.execute(execute("other"))
        assert isinstance(answer, ErrorBody)
        assert answer.error.code is Code.NOT_FOUND
        assert "'other'" in answer.error.message
        assert "only" in answer.error.message
        refused = await client.plan(PlanRequest(context=build_context()))
        assert isinstance(refused, ErrorBody)
        assert refused.error.code is Code.NOT_FOUND
        assert "EXECUTOR" in refused.error.message
        assert refused.error.side_effect is SideEffect.NONE

    tell(component, binding, story)


@pytest.mark.parametrize(
    ("number", "reason"), [("9" * 5_000, ""), ("1e" + "9" * 20, "INVALID_REQUEST")]
)
def test_a_number_without_measure_passes_or_is_the_callers_fault(
    binding: Binding, number: str, reason: str
) -> None:
    """Both were an answer that no caller could read."""
    text = JsonText(f'{{"n":{number}}}'.encode())

    async def story(client: ComponentClient) -> None:
        answer = await client.execute(execute("echo", text))
        if reason:
            assert reason_of(answer) == reason
        else:
            assert isinstance(answer, ExecuteResponse)
            assert output_of(answer) == text

    tell(component_with_all_roles(), binding, story)


def test_arguments_against_the_input_schema_are_refused_with_the_place(binding: Binding) -> None:
    component = Component("strict", "1.0.0")
    schema = {"type": "object", "properties": {"to": {"type": "object"}}, "required": ["to"]}

    @component.action("send", input_schema=schema)
    def send(arguments: object, call: Call) -> object:
        raise AssertionError("must not run")

    async def story(client: ComponentClient) -> None:
        answer = await client.execute(execute("send", {"to": 7}))
        assert isinstance(answer, ErrorBody)
        assert answer.error.reason == Reason.INVALID_REQUEST.value
        assert "/to" in answer.error.message
        assert answer.error.side_effect is SideEffect.NONE

    tell(component, binding, story)


def test_a_handlers_exception_is_internal_and_its_text_stays_in_the_log(
    binding: Binding, caplog: pytest.LogCaptureFixture
) -> None:
    component = Component("broken", "1.0.0")

    @component.action("write")
    def write_it(arguments: object, call: Call) -> object:
        raise RuntimeError("password=hunter2")

    @component.action("read", effect=Effect.READ)
    async def read_it(arguments: object, call: Call) -> object:
        raise RuntimeError("password=hunter2")

    async def story(client: ComponentClient) -> None:
        for action, side_effect in (("write", SideEffect.UNKNOWN), ("read", SideEffect.NONE)):
            answer = await client.execute(execute(action))
            assert isinstance(answer, ErrorBody)
            assert answer.error.code is Code.INTERNAL
            assert answer.error.boundary is Boundary.COMPONENT
            assert answer.error.side_effect is side_effect
            assert "hunter2" not in answer.error.message

    tell(component, binding, story)
    assert "hunter2" in caplog.text


def test_a_failure_that_a_handler_states_arrives_as_stated(binding: Binding) -> None:
    component = Component("bank", "1.0.0")

    @component.action("transfer")
    def transfer(arguments: object, call: Call) -> object:
        raise call.fail(
            "INSUFFICIENT_FUNDS",
            "There is not enough money.",
            side_effect=SideEffect.NONE,
            details={"missing": 3},
            retry_after_ms=50,
        )

    async def story(client: ComponentClient) -> None:
        answer = await client.execute(execute("transfer"))
        assert isinstance(answer, ErrorBody)
        assert answer.error.reason == "INSUFFICIENT_FUNDS"
        assert answer.error.code is Code.FAILED_PRECONDITION
        assert answer.error.side_effect is SideEffect.NONE
        assert answer.error.retry_after_ms == 50
        assert bytes(answer.error.details) == b'{"missing":3}'

    tell(component, binding, story)


def test_a_huge_error_still_arrives_with_its_code_and_side_effect(binding: Binding) -> None:
    component = Component("talkative", "1.0.0")

    @component.action("fail")
    def fail(arguments: object, call: Call) -> object:
        raise call.fail(
            Reason.OVERLOADED, "é" * 20_000, side_effect=SideEffect.NONE, details="x" * 50_000
        )

    async def story(client: ComponentClient) -> None:
        answer = await client.execute(execute("fail"))
        assert isinstance(answer, ErrorBody)
        assert answer.error.code is Code.UNAVAILABLE
        assert answer.error.side_effect is SideEffect.NONE
        if binding is Binding.GRPC:
            assert answer.error.details_truncated

    tell(component, binding, story)


def test_a_write_that_outlives_its_time_is_a_timeout_of_unknown_effect(binding: Binding) -> None:
    component = Component("slow", "1.0.0")

    @component.action("write")
    async def write_it(arguments: object, call: Call) -> object:
        await call.cancelled
        return None

    async def story(client: ComponentClient) -> None:
        answer = await client.execute(execute("write", timeout_ms=30))
        assert isinstance(answer, ErrorBody)
        assert answer.error.code is Code.DEADLINE_EXCEEDED
        assert answer.error.side_effect is SideEffect.UNKNOWN

    tell(component, binding, story)


def test_cancel_stops_a_running_call_and_tells_its_side_effect(binding: Binding) -> None:
    component = Component("patient", "1.0.0")
    started = asyncio.Event()

    @component.action("wait")
    async def wait(arguments: object, call: Call) -> object:
        started.set()
        try:
            return await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            raise call.fail(Reason.CANCELLED, "Undone.", side_effect=SideEffect.NONE) from None

    async def story(client: ComponentClient) -> None:
        request = execute("wait")
        running = asyncio.ensure_future(client.execute(request))
        await started.wait()
        answer = await client.cancel(CancelRequest(call_id=request.context.call_id, attempt=1))
        assert not isinstance(answer, ErrorBody)
        assert (answer.state, answer.side_effect) == (CancelState.STOPPED, SideEffect.NONE)
        assert reason_of(await running) == Reason.CANCELLED.value

    tell(component, binding, story)


def test_cancel_knows_a_finished_call_from_one_it_never_saw(binding: Binding) -> None:
    async def story(client: ComponentClient) -> None:
        request = execute("write")
        await client.execute(request)
        finished = await client.cancel(CancelRequest(call_id=request.context.call_id))
        unknown = await client.cancel(CancelRequest(call_id="never-seen"))
        assert not isinstance(finished, ErrorBody)
        assert not isinstance(unknown, ErrorBody)
        assert (finished.state, finished.side_effect) == (
            CancelState.FINISHED,
            SideEffect.PERFORMED,
        )
        assert unknown.state is CancelState.UNKNOWN_CALL

    tell(component_with_all_roles(), binding, story)


def test_progress_comes_before_the_response(binding: Binding) -> None:
    component = Component("chatty", "1.0.0")

    @component.action("count")
    def count(arguments: object, call: Call) -> object:
        for number in range(3):
            call.progress({"n": number}, message=f"step {number}")
        return {"counted": 3}

    async def story(client: ComponentClient) -> None:
        items = [item async for item in client.execute_stream(execute("count"))]
        *before, last = items
        assert [bytes(item.progress) for item in before if isinstance(item, Progress)] == [
            b'{"n":0}',
            b'{"n":1}',
            b'{"n":2}',
        ]
        assert isinstance(last, ExecuteResponse)
        assert output_of(last) == b'{"counted":3}'

    tell(component, binding, story)


def test_a_stream_that_fails_ends_in_the_error(binding: Binding) -> None:
    component = Component("chatty", "1.0.0")

    @component.action("fail")
    def fail(arguments: object, call: Call) -> object:
        call.progress(message="soon")
        raise call.fail(Reason.OVERLOADED, "Too much.", side_effect=SideEffect.NONE)

    async def story(client: ComponentClient) -> None:
        items = [item async for item in client.execute_stream(execute("fail"))]
        assert reason_of(items[-1]) == Reason.OVERLOADED.value

    tell(component, binding, story)


def test_beyond_max_concurrency_a_call_is_refused_as_overloaded(binding: Binding) -> None:
    component = Component("narrow", "1.0.0", limits=Limits(max_concurrency=1))
    started = asyncio.Event()

    @component.action("hold")
    async def hold(arguments: object, call: Call) -> object:
        started.set()
        await call.cancelled
        return None

    async def story(client: ComponentClient) -> None:
        first = execute("hold")
        running = asyncio.ensure_future(client.execute(first))
        await started.wait()
        second = await client.execute(execute("hold"))
        assert isinstance(second, ErrorBody)
        assert second.error.reason == Reason.OVERLOADED.value
        assert second.error.retryable
        assert second.error.side_effect is SideEffect.NONE
        await client.cancel(CancelRequest(call_id=first.context.call_id))
        await running

    tell(component, binding, story)


def test_beyond_the_rate_a_call_is_told_when_to_come_back(binding: Binding) -> None:
    component = Component("steady", "1.0.0", limits=Limits(max_rate_per_s=1.0))

    @component.action("tick")
    async def tick(arguments: object, call: Call) -> object:
        return None

    async def story(client: ComponentClient) -> None:
        await client.execute(execute("tick"))
        second = await client.execute(execute("tick"))
        assert isinstance(second, ErrorBody)
        assert second.error.reason == Reason.RATE_LIMITED.value
        assert 0 < (second.error.retry_after_ms or 0) <= 1001

    tell(component, binding, story)


def test_a_request_larger_than_the_card_allows_is_refused(binding: Binding) -> None:
    component = Component("small", "1.0.0", limits=Limits(max_request_bytes=2000))

    @component.action("take")
    def take(arguments: object, call: Call) -> object:
        raise AssertionError("must not run")

    async def story(client: ComponentClient) -> None:
        answer = await client.execute(execute("take", {"text": "x" * 3000}))
        assert isinstance(answer, ErrorBody)
        assert answer.error.reason == Reason.PAYLOAD_TOO_LARGE.value
        assert answer.error.side_effect is SideEffect.NONE

    tell(component, binding, story)


def test_a_retry_within_the_component_is_taken_from_the_callers_budget(binding: Binding) -> None:
    component = Component("retrying", "1.0.0")

    @component.action("try")
    def try_it(arguments: object, call: Call) -> object:
        granted = [call.spend_retry() for _ in range(3)]
        call.spend(tokens=5)
        call.spend(tokens=2, cost_micros=9)
        return granted

    async def story(client: ComponentClient) -> None:
        answer = await client.execute(execute("try", retry_budget=2))
        assert isinstance(answer, ExecuteResponse)
        assert output_of(answer) == b"[true,true,false]"
        assert answer.retries_spent == 2
        assert answer.usage is not None
        assert (answer.usage.tokens, answer.usage.cost_micros) == (7, 9)

    tell(component, binding, story)


def test_an_output_that_json_cannot_say_is_an_internal_error_of_a_done_call(
    binding: Binding,
) -> None:
    component = Component("odd", "1.0.0")

    @component.action("object")
    def give_object(arguments: object, call: Call) -> object:
        return object()

    @component.action("text")
    def give_text(arguments: object, call: Call) -> object:
        return JsonText(b'{"a":1,"a":2}')

    @component.action("response")
    def give_response(arguments: object, call: Call) -> object:
        return ExecuteResponse(output=msgspec.Raw(b"{,}"))

    async def story(client: ComponentClient) -> None:
        for action in ("object", "text", "response"):
            answer = await client.execute(execute(action))
            assert isinstance(answer, ErrorBody)
            assert answer.error.code is Code.INTERNAL
            assert answer.error.side_effect is SideEffect.PERFORMED

    tell(component, binding, story)


@pytest.mark.parametrize(
    "wrong",
    [
        {"attempt": 0},
        {"timeout_ms": 0},
        {"body_digest": "abc"},
        {"call_id": ""},
        {"call_id": "x" * 201},
    ],
    ids=str,
)
def test_a_context_that_addresses_nothing_is_refused(
    binding: Binding, wrong: dict[str, object]
) -> None:
    async def story(client: ComponentClient) -> None:
        request = execute("write")
        context = msgspec.structs.replace(request.context, **wrong)
        answer = await client.execute(msgspec.structs.replace(request, context=context))
        assert isinstance(answer, ErrorBody)
        assert answer.error.reason == Reason.INVALID_REQUEST.value
        assert next(iter(wrong)) in answer.error.message
        assert answer.error.side_effect is SideEffect.NONE

    tell(component_with_all_roles(), binding, story)
