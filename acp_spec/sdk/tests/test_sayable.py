"""What a handler makes and JSON cannot say is an error of the handler, never a null.

The story: `return float("nan")` was the answer `{"output": null}`, a success.
"""

import asyncio
import math
from collections.abc import Callable
from decimal import Decimal

import msgspec
import pytest

from acp_spec.bindings.fields import MAX_VIA
from acp_spec.model.calls import (
    ErrorBody,
    ExecuteResponse,
    LlmCall,
    Memory,
    ObserveRequest,
    ObserveResponse,
    OperationState,
    PlanRequest,
    PlanResponse,
    ReflectRequest,
    ReflectResponse,
    Reward,
)
from acp_spec.model.enums import Effect, OperationStatus, SideEffect, Verdict
from acp_spec.model.errors import AcpError, AcpFailure, Code, Reason
from acp_spec.model.plan import Plan
from acp_spec.sdk.call import Call, LongWork
from acp_spec.sdk.client import ComponentClient
from acp_spec.sdk.component import Component
from acp_spec.sdk.testing import build_context
from acp_spec.sdk.tests.served import Binding, execute, output_of, reason_of, tell
from acp_spec.sdk.values import JsonText, write

NAN, INFINITY = math.nan, math.inf
HALF = "half \ud83d of a pair"


def nested(levels: int) -> object:
    value: object = 1
    for _ in range(levels):
        value = [value]
    return value


def endless() -> object:
    ring: list[object] = []
    ring.append(ring)
    return ring


UNSAYABLE = {
    "nan": NAN,
    "infinity within": {"a": [INFINITY, None]},
    "a decimal that is no number": Decimal("NaN"),
    "49 levels": nested(49),
    "itself": endless(),
    "half a pair": {"text": HALF},
    "half a pair as a key": {HALF: 1},
    "a key twice": {1: "one", "1": "one"},
    "text that is no JSON": JsonText(b"{,}"),
    "empty text": JsonText(b""),
    "an escaped half": JsonText(b'"\\ud800"'),
    "an object": object(),
}


@pytest.mark.parametrize("effect", list(Effect))
@pytest.mark.parametrize("value", UNSAYABLE.values(), ids=UNSAYABLE)
def test_an_output_that_json_cannot_say_is_an_internal_error(value: object, effect: Effect) -> None:
    component = Component("odd", "1.0.0")

    @component.action("odd", effect=effect)
    def odd(arguments: object, call: Call) -> object:
        return value

    async def story(client: ComponentClient) -> None:
        answer = await client.execute(execute("odd"))
        assert isinstance(answer, ErrorBody)
        assert answer.error.code is Code.INTERNAL
        did_nothing = answer.error.side_effect is SideEffect.NONE
        assert did_nothing is (effect is Effect.READ)

    tell(component, Binding.IN_PROCESS, story)


def test_what_json_can_say_keeps_its_digits_and_its_nulls(binding: Binding) -> None:
    component = Component("exact", "1.0.0")

    @component.action("exact")
    def exact(arguments: object, call: Call) -> object:
        return {"a": Decimal("0.10"), "n": 9007199254740993, "none": None, "x": 1.5}

    @component.action("deep")
    def deep(arguments: object, call: Call) -> object:
        return nested(40)

    async def story(client: ComponentClient) -> None:
        answer = await client.execute(execute("exact"))
        assert output_of(answer) == b'{"a":0.10,"n":9007199254740993,"none":null,"x":1.5}'
        assert isinstance(await client.execute(execute("deep")), ExecuteResponse)

    tell(component, binding, story)


def test_answers_of_the_other_roles_are_looked_at_too(binding: Binding) -> None:
    component = Component("roles", "1.0.0")

    @component.plan
    def plan(request: PlanRequest, call: Call) -> PlanResponse:
        return PlanResponse(plan=Plan(root_goal="g"), confidence=NAN)

    @component.observe
    def observe(request: ObserveRequest, call: Call) -> ObserveResponse:
        return ObserveResponse(stored=1, memory=(Memory(id="m", score=INFINITY),))

    @component.reflect
    def reflect(request: ReflectRequest, call: Call) -> ReflectResponse:
        reward = Reward(name="r", value=NAN)
        return ReflectResponse(verdict=Verdict.ACCEPT, rewards=(reward,), critique=HALF)

    async def story(client: ComponentClient) -> None:
        for answer in (
            await client.plan(PlanRequest(context=build_context(), goal="g")),
            await client.observe(ObserveRequest(context=build_context())),
            await client.reflect(ReflectRequest(context=build_context())),
        ):
            assert reason_of(answer) == Reason.INTERNAL.value

    tell(component, binding, story)


def progress(call: Call) -> object:
    call.progress(NAN)
    return "done"


def progress_message(call: Call) -> object:
    call.progress(1, HALF)
    return "done"


def details(call: Call) -> object:
    raise call.fail(Reason.RATE_LIMITED, "no", details={"limit": NAN})


def own_details(call: Call) -> object:
    raise AcpFailure(
        AcpError(code=Code.ABORTED, reason="MINE", message="m", details=msgspec.Raw(b"{,}"))
    )


def own_message(call: Call) -> object:
    raise AcpFailure(AcpError(code=Code.ABORTED, reason="MINE", message=HALF))


def log_probabilities(call: Call) -> object:
    call.llm_calls.append(LlmCall(id="1", logprobs=(-0.5, -INFINITY)))
    return "done"


def prompt(call: Call) -> object:
    call.llm_calls.append(LlmCall(id="1", prompt=msgspec.Raw(b"nothing")))
    return "done"


@pytest.mark.parametrize(
    "work",
    [
        progress,
        progress_message,
        details,
        own_details,
        own_message,
        log_probabilities,
        prompt,
    ],
)
def test_progress_details_and_llm_calls_are_looked_at_too(
    work: Callable[[Call], object], binding: Binding
) -> None:
    component = Component("parts", "1.0.0")

    @component.action("do")
    def do(arguments: object, call: Call) -> object:
        return work(call)

    async def story(client: ComponentClient) -> None:
        answer = await client.execute(execute("do"))
        assert isinstance(answer, ErrorBody)
        assert answer.error.reason == Reason.INTERNAL.value
        assert answer.error.side_effect is not SideEffect.NONE

    tell(component, binding, story)


def test_the_result_of_an_operation_is_looked_at_too() -> None:
    component = Component("long", "1.0.0")

    @component.action("long")
    def long(arguments: object, call: Call) -> LongWork:
        return call.operation(lambda: {"a": [NAN]}, poll_after_ms=1)

    async def story(client: ComponentClient) -> None:
        request = execute("long")
        assert isinstance(await client.execute(request), ExecuteResponse)
        state = OperationState(status=OperationStatus.RUNNING)
        while state.status is OperationStatus.RUNNING:
            await asyncio.sleep(0)
            found = await client.get_operation(request.context.call_id)
            assert isinstance(found, OperationState)
            state = found
        assert state.status is OperationStatus.FAILED
        assert state.error is not None
        assert state.error.reason == Reason.INTERNAL.value

    tell(component, Binding.IN_PROCESS, story)


@pytest.mark.parametrize("value", [NAN, {"a": [INFINITY]}, nested(49), endless(), {1: 1, "1": 1}])
def test_writing_a_payload_refuses_what_no_peer_could_read(value: object) -> None:
    with pytest.raises(ValueError, match=r"JSON|nest|twice"):
        write(value)


def test_a_call_that_came_through_more_than_eight_gateways_is_a_loop(binding: Binding) -> None:
    component = Component("end", "1.0.0")

    @component.action("do")
    def do(arguments: object, call: Call) -> object:
        return "done"

    async def story(client: ComponentClient) -> None:
        request = execute("do")
        for count, ends in ((MAX_VIA, True), (MAX_VIA + 1, False)):
            via = tuple(f"gateway-{number}" for number in range(count))
            context = msgspec.structs.replace(request.context, via=via)
            answer = await client.execute(msgspec.structs.replace(request, context=context))
            if ends:
                assert isinstance(answer, ExecuteResponse)
            else:
                assert isinstance(answer, ErrorBody)
                assert answer.error.reason == Reason.LOOP.value
                assert answer.error.code is Code.FAILED_PRECONDITION
                assert answer.error.side_effect is SideEffect.NONE

    tell(component, binding, story)
