"""The correct peer: one component that keeps every rule and declares all that a case can be about.

Broken peers are this one behind a layer that breaks one rule. It remembers what it observes, plans
with bindings, claims with sources and offers the well-known test actions.
"""

from collections import Counter

from acp_spec import Call, Component, Effect, Idempotency, JsonText, SideEffect, Verdict
from acp_spec.model.calls import (
    Claim,
    Memory,
    ObserveRequest,
    ObserveResponse,
    PlanRequest,
    PlanResponse,
    ReflectRequest,
    ReflectResponse,
)
from acp_spec.model.card import Limits
from acp_spec.model.enums import StepStatus
from acp_spec.model.errors import Code
from acp_spec.model.payload import NULL, Payload
from acp_spec.model.plan import Binding, Plan, SubGoal
from acp_spec.sdk.clock import sleep_ms

MAX_REQUEST_BYTES = 64 * 1024
"""Small, so that a request of just that size costs nothing."""
READ, WRITE = Effect.READ, Effect.WRITE
NATURAL, BY_KEY = Idempotency.NATURAL, Idempotency.BY_KEY
MS = {"type": "object", "properties": {"ms": {"type": "integer", "minimum": 0}}, "required": ["ms"]}
NAMED = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


def make(name: str = "correct", *, max_request_bytes: int = MAX_REQUEST_BYTES) -> Component:
    """A fresh component with nothing counted and nothing remembered."""
    component = Component(
        name, "1.2.3", limits=Limits(max_request_bytes=max_request_bytes, max_concurrency=64)
    )
    add_greeting(component)
    add_test_actions(component)
    add_roles(component)
    return component


def add_greeting(component: Component) -> None:
    """An action with schemas and an example that may be sent."""

    @component.action(
        "correct.greet",
        effect=READ,
        idempotency=NATURAL,
        input_schema=NAMED,
        output_schema={"type": "object", "required": ["greeting"]},
        examples=[
            {"arguments": {"name": "Ada"}, "output": {"greeting": "Hello, Ada."}, "safe": True}
        ],
    )
    async def greet(arguments: dict[str, str], call: Call) -> dict[str, str]:
        return {"greeting": f"Hello, {arguments['name']}."}

    @component.action(
        "correct.roll",
        effect=READ,
        output_schema={"type": "object", "required": ["rolled"]},
        examples=[{"arguments": {"sides": 6}, "safe": True}],
    )
    async def roll(arguments: object, call: Call) -> dict[str, int]:
        return {"rolled": 4}


def add_test_actions(component: Component) -> None:
    """The actions that SPEC section 4.2 names."""

    @component.action("acp.test.echo", effect=READ, idempotency=NATURAL)
    async def echo(arguments: object, call: Call) -> JsonText:
        return JsonText(call.arguments_text or bytes(NULL))

    @component.action("acp.test.sleep", effect=READ, idempotency=NATURAL, input_schema=MS)
    async def sleep(arguments: dict[str, int], call: Call) -> dict[str, int]:
        call.progress({"left_ms": arguments["ms"]})
        await sleep_ms(call.clock, arguments["ms"])
        return {"slept_ms": arguments["ms"]}

    @component.action("acp.test.operation", input_schema=MS, operation_timeout_ms=60_000)
    async def operation(arguments: dict[str, int], call: Call) -> object:
        async def work() -> dict[str, int]:
            await sleep_ms(call.clock, arguments["ms"])
            return {"slept_ms": arguments["ms"]}

        return call.operation(work, poll_after_ms=10)

    component.action("acp.test.fail")(fail)
    add_count(component)


async def fail(arguments: dict[str, object], call: Call) -> object:
    """Fails as told."""
    stated = dict(arguments)
    reason, message = str(stated.pop("reason")), str(stated.pop("message", "Failed as told."))
    side_effect = SideEffect[str(stated.pop("side_effect", "NONE"))]
    if "code" in stated:
        stated["code"] = Code[str(stated["code"])]
    raise call.fail(reason, message, side_effect=side_effect, **stated)  # type: ignore[arg-type]


def add_count(component: Component) -> None:
    """`acp.test.count`, with its ways to take time and to fail."""
    counted: Counter[str] = Counter()
    schema = {"type": "object", "properties": {"key": {"type": "string"}}, "required": ["key"]}

    @component.action("acp.test.count", effect=WRITE, idempotency=BY_KEY, input_schema=schema)
    async def count(arguments: dict[str, object], call: Call) -> dict[str, object]:
        key = str(arguments["key"])
        await sleep_ms(call.clock, int(str(arguments.get("ms", 0))))
        until = int(str(arguments.get("until", call.context.attempt + 1)))
        told = SideEffect[str(arguments["fail"])] if "fail" in arguments else None
        failing = told if call.context.attempt < until else None
        if failing is not SideEffect.NONE:
            counted[key] += 1
        if failing is not None:
            raise call.fail("FAILED_AS_TOLD", "Failed as told.", side_effect=failing)
        return {"key": key, "count": counted[key]}


def add_roles(component: Component) -> None:
    """Planner, observer with a memory, reflector that may retry."""
    remembered: list[Memory] = []

    @component.plan
    async def plan(request: PlanRequest, call: Call) -> PlanResponse:
        goals = (
            SubGoal(id="first", action="acp.test.echo", arguments=request.input),
            SubGoal(
                id="second",
                action="correct.greet",
                arguments=Payload(b'{"name":"?"}'),
                depends_on=("first",),
                bindings=(Binding(to="/name", from_="first", pointer="/text"),),
            ),
        )
        most = request.limits.max_sub_goals
        return PlanResponse(plan=Plan(root_goal=request.goal, sub_goals=goals[:most]))

    @component.observe
    async def observe(request: ObserveRequest, call: Call) -> ObserveResponse:
        for seen in request.observations:
            remembered.append(Memory(id=f"m{len(remembered)}", data=seen.data))
        if request.recall is None:
            return ObserveResponse(stored=len(request.observations))
        query = request.recall.query.encode()
        fitting = [item for item in reversed(remembered) if query in bytes(item.data)]
        return ObserveResponse(
            stored=len(request.observations), memory=tuple(fitting[: request.recall.limit])
        )

    @component.reflect
    async def reflect(request: ReflectRequest, call: Call) -> ReflectResponse:
        failed = [one.call_id for one in request.calls if one.status is StepStatus.FAILED]
        if failed:
            return ReflectResponse(verdict=Verdict.RETRY, retry_call_ids=tuple(failed))
        claims = tuple(
            Claim(text="It was answered.", sources=(f"/calls/{one.call_id}/output",))
            for one in request.calls
        )
        return ReflectResponse(verdict=Verdict.ACCEPT, output=request.draft, claims=claims)
