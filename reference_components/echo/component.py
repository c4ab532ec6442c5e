"""Echo: plans one sub-goal that echoes the input, executes it, observes everything, accepts it.

With it a whole four-call session runs on one process, and payloads can be compared byte for byte.
The `acp.test.*` actions are the ones that the spec names for conformance tests.
"""

from collections import Counter
from typing import Required, TypedDict

from acp_spec import Call, Component, Effect, Idempotency, JsonText, SideEffect, Verdict
from acp_spec.model.calls import (
    ObserveRequest,
    ObserveResponse,
    PlanRequest,
    ReflectRequest,
    ReflectResponse,
)
from acp_spec.model.card import Limits
from acp_spec.model.errors import Code
from acp_spec.model.payload import NULL, is_absent
from acp_spec.model.plan import Plan, SubGoal
from acp_spec.sdk.clock import sleep_ms

MAX_CONCURRENCY = 512
"""Each call costs microseconds; the limit only keeps a runaway test from filling the memory."""
READ = Effect.READ
NATURAL = Idempotency.NATURAL


def make() -> Component:
    """A fresh echo component, with nothing counted yet."""
    component = Component("echo", "1.0.0", limits=Limits(max_concurrency=MAX_CONCURRENCY))
    component.action("echo", effect=READ, idempotency=NATURAL)(echo)
    component.action("acp.test.echo", effect=READ, idempotency=NATURAL)(echo)
    component.action("acp.test.sleep", effect=READ, idempotency=NATURAL, input_schema=SLEEP)(sleep)
    component.action("acp.test.fail", input_schema=FAIL)(fail)
    component.action("acp.test.operation", input_schema=SLEEP, operation_timeout_ms=60_000)(
        operation
    )
    add_count(component)
    component.plan(plan)
    component.observe_idempotent(observe)
    component.reflect(reflect)
    return component


async def echo(arguments: object, call: Call) -> JsonText:
    """Gives the arguments back, byte for byte."""
    return JsonText(call.arguments_text or bytes(NULL))


SLEEP = {
    "type": "object",
    "properties": {"ms": {"type": "integer", "minimum": 0, "maximum": 600_000}},
    "required": ["ms"],
}


async def sleep(arguments: dict[str, int], call: Call) -> dict[str, int]:
    """Answers after `ms` milliseconds, with one progress message a second."""
    left_ms = arguments["ms"]
    while left_ms > 0:
        await sleep_ms(call.clock, min(left_ms, 1000))
        left_ms -= min(left_ms, 1000)
        call.progress({"left_ms": left_ms})
    return {"slept_ms": arguments["ms"]}


FAIL = {
    "type": "object",
    "properties": {
        "reason": {"type": "string", "minLength": 1},
        "code": {"enum": [code.value for code in Code]},
        "message": {"type": "string"},
        "side_effect": {"enum": [effect.value for effect in SideEffect]},
        "retryable": {"type": "boolean"},
        "retry_after_ms": {"type": "integer", "minimum": 0},
        "details": {},
    },
    "required": ["reason"],
}


async def fail(arguments: dict[str, object], call: Call) -> object:
    """Fails exactly as told."""
    stated = dict(arguments)
    reason, message = str(stated.pop("reason")), str(stated.pop("message", "Failed as told."))
    side_effect = SideEffect[str(stated.pop("side_effect", "NONE"))]
    if "code" in stated:
        stated["code"] = Code[str(stated["code"])]
    raise call.fail(reason, message, side_effect=side_effect, **stated)  # type: ignore[arg-type]


class Counting(TypedDict, total=False):
    """What `acp.test.count` takes; SPEC section 4.2 says what each means."""

    key: Required[str]
    ms: int
    fail: str
    until: int


COUNT = {
    "type": "object",
    "properties": {
        "key": {"type": "string"},
        "ms": {"type": "integer", "minimum": 0, "maximum": 600_000},
        "fail": {"enum": [effect.value for effect in SideEffect]},
        "until": {"type": "integer", "minimum": 1},
    },
    "required": ["key"],
}


def add_count(component: Component) -> None:
    """`acp.test.count`: how often the work for a key was really done in this process."""
    counted: Counter[str] = Counter()

    @component.action("acp.test.count", idempotency=Idempotency.BY_KEY, input_schema=COUNT)
    async def count(arguments: Counting, call: Call) -> dict[str, object]:
        """Counts one for `key`; a repeated call_id counts nothing and gets the first answer."""
        key = arguments["key"]
        await sleep_ms(call.clock, arguments.get("ms", 0))
        fails = call.context.attempt < arguments.get("until", call.context.attempt + 1)
        side_effect = SideEffect[arguments["fail"]] if "fail" in arguments and fails else None
        if side_effect is not SideEffect.NONE:
            counted[key] += 1
        if side_effect is not None:
            raise call.fail("FAILED_AS_TOLD", "Failed as told.", side_effect=side_effect)
        return {"key": key, "count": counted[key]}


async def operation(arguments: dict[str, int], call: Call) -> object:
    """Accepts at once and is done after `ms` milliseconds."""

    async def work() -> dict[str, int]:
        await sleep_ms(call.clock, arguments["ms"])
        return {"slept_ms": arguments["ms"]}

    return call.operation(work, poll_after_ms=max(10, min(1000, arguments["ms"] // 4)))


async def plan(request: PlanRequest, call: Call) -> Plan:
    """One sub-goal: echo the session's input."""
    arguments = NULL if is_absent(request.input) else request.input
    goal = SubGoal(id="echo", description="give it back", action="echo", arguments=arguments)
    return Plan(root_goal=request.goal or "echo", sub_goals=(goal,))


async def observe(request: ObserveRequest, call: Call) -> ObserveResponse:
    """Counts what it is shown and keeps nothing, so a repeat is harmless."""
    return ObserveResponse(stored=len(request.observations))


async def reflect(request: ReflectRequest, call: Call) -> ReflectResponse:
    """Accepts; the output is the draft, or the last output there is."""
    outputs = [called.output for called in request.calls if not is_absent(called.output)]
    output = outputs[-1] if is_absent(request.draft) and outputs else request.draft
    return ReflectResponse(verdict=Verdict.ACCEPT, output=output)
