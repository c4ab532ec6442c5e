"""Slow: sleeps as told, says how far it is, honours cancel or pretends not to.

What a test needs to see deadlines shrink, cancels cascade and operations end by poll or call-back.
"""

import asyncio
from typing import Required, TypedDict

from acp_spec import Call, Component, Effect, Idempotency, SideEffect
from acp_spec.model.errors import Reason
from acp_spec.sdk.clock import sleep_ms

STEP_MS = 100
"""Between two progress messages, and the most that a cancel has to wait for."""


class Told(TypedDict, total=False):
    ms: Required[int]
    deaf: bool
    fail: bool
    poll_after_ms: int


SCHEMA = {
    "type": "object",
    "properties": {
        "ms": {"type": "integer", "minimum": 0, "maximum": 600_000},
        "deaf": {"type": "boolean", "description": "go on although cancelled"},
        "fail": {"type": "boolean", "description": "fail at the end"},
        "poll_after_ms": {"type": "integer", "minimum": 1},
    },
    "required": ["ms"],
}


def make() -> Component:
    component = Component("slow", "1.0.0")
    example = {"arguments": {"ms": 20}, "output": {"took_ms": 20}, "safe": True}

    @component.action(
        "slow.read",
        effect=Effect.READ,
        idempotency=Idempotency.NATURAL,
        input_schema=SCHEMA,
        examples=[example],
    )
    async def slow_read(arguments: Told, call: Call) -> dict[str, object]:
        """Takes `ms` milliseconds and changes nothing."""
        return await work(arguments, call)

    @component.action("slow.write", input_schema=SCHEMA)
    async def slow_write(arguments: Told, call: Call) -> dict[str, object]:
        """Takes `ms` milliseconds; stopped in time it has done nothing."""
        return await work(arguments, call)

    @component.action("slow.keyed", idempotency=Idempotency.BY_KEY, input_schema=SCHEMA)
    async def slow_keyed(arguments: Told, call: Call) -> dict[str, object]:
        """Like slow.write, and a repeated call_id waits for the first."""
        return await work(arguments, call)

    @component.action(
        "slow.operation",
        idempotency=Idempotency.BY_KEY,
        input_schema=SCHEMA,
        operation_timeout_ms=600_000,
    )
    async def slow_operation(arguments: Told, call: Call) -> object:
        """A long operation: accepted at once, done after `ms`, reported by poll and call-back."""

        async def go_on() -> dict[str, object]:
            return await work(arguments, call)

        return call.operation(go_on, poll_after_ms=arguments.get("poll_after_ms", 200))

    return component


async def work(told: Told, call: Call) -> dict[str, object]:
    """Sleep in steps. A cancel ends it with side effect NONE, unless told to be deaf."""
    left_ms = told["ms"]
    while left_ms > 0:
        step_ms = min(left_ms, STEP_MS)
        try:
            await sleep_ms(call.clock, step_ms)
        except asyncio.CancelledError:
            if not told.get("deaf"):
                raise call.fail(
                    Reason.CANCELLED, "Stopped before it was done.", side_effect=SideEffect.NONE
                ) from None
        left_ms -= step_ms
        call.progress({"left_ms": left_ms})
    if told.get("fail"):
        raise call.fail(
            "FAILED_AS_TOLD", "Failed at the end, as told.", side_effect=SideEffect.NONE
        )
    return {"took_ms": told["ms"]}
