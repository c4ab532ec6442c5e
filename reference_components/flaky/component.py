"""Flaky: attempt n of a call does what entry n of its script says; after the script it succeeds.

The script stands in the arguments (`{"script": [...], "output": ...}`) or, for calls that bring
none, is the component's own. Outcomes: a reason of ACP's table, or one of the words in `SPECIAL`.
By the attempt number and nothing else, so a test knows every answer before it asks.
"""

import os
from collections.abc import Sequence
from typing import Required, TypedDict

from acp_spec import Call, Component, Effect, Idempotency, SideEffect
from acp_spec.bindings.errors import ERRORS
from acp_spec.model.errors import AcpFailure, Reason
from acp_spec.sdk.clock import sleep_ms

SPECIAL = {
    "OK": "succeed",
    "HANG": "answer nothing until the deadline",
    "CRASH": "raise what the handler did not expect",
    "DIE": "end the process without an answer",
    "WRONG_OUTPUT": "succeed with an output against the output_schema",
}
FOREVER_MS = 3_600_000


class Outcome(TypedDict, total=False):
    """One entry, when a word alone is not enough."""

    do: Required[str]
    side_effect: str
    retry_after_ms: int
    delay_ms: int


class Told(TypedDict, total=False):
    script: Sequence[str | Outcome]
    output: object


WORDS = [*SPECIAL, *(reason.value for reason in Reason)]
SCHEMA = {
    "type": "object",
    "properties": {
        "script": {
            "type": "array",
            "items": {
                "anyOf": [
                    {"enum": WORDS},
                    {
                        "type": "object",
                        "properties": {
                            "do": {"enum": WORDS},
                            "side_effect": {"enum": [effect.value for effect in SideEffect]},
                            "retry_after_ms": {"type": "integer", "minimum": 0},
                            "delay_ms": {"type": "integer", "minimum": 0},
                        },
                        "required": ["do"],
                    },
                ]
            },
        },
        "output": {},
    },
}
OUTPUT = {"type": "object", "properties": {"attempt": {"type": "integer"}}, "required": ["attempt"]}

EXAMPLES = [{"arguments": {"script": ["OK"]}, "safe": True}]


def make(script: Sequence[str | Outcome] = ()) -> Component:
    """A flaky component; `script` is for calls without one of their own."""
    component = Component("flaky", "1.0.0")
    kinds = {
        "flaky.read": (Effect.READ, Idempotency.NATURAL),
        "flaky.keyed": (Effect.WRITE, Idempotency.BY_KEY),
        "flaky.write": (Effect.WRITE, Idempotency.NONE),
    }

    async def act(arguments: Told, call: Call) -> object:
        """Does what the script says for this attempt."""
        told = arguments.get("script", script)
        entry = told[call.context.attempt - 1] if call.context.attempt <= len(told) else "OK"
        outcome = Outcome(do=entry) if isinstance(entry, str) else entry
        await perform(outcome, call)
        if outcome["do"] == "WRONG_OUTPUT":
            return {"unexpected": True}
        return {"attempt": call.context.attempt, "output": arguments.get("output")}

    for name, (effect, idempotency) in kinds.items():
        component.action(
            name,
            description="Does what the script says for this attempt.",
            effect=effect,
            idempotency=idempotency,
            input_schema=SCHEMA,
            output_schema=OUTPUT,
            examples=EXAMPLES if effect is Effect.READ else (),
        )(act)
    return component


async def perform(outcome: Outcome, call: Call) -> None:
    """Return for a success, else fail, hang or die as told."""
    await sleep_ms(call.clock, outcome.get("delay_ms", 0))
    match outcome["do"]:
        case "OK" | "WRONG_OUTPUT":
            return
        case "HANG":
            await sleep_ms(call.clock, FOREVER_MS)
        case "CRASH":
            raise RuntimeError("crashed as told")
        case "DIE":
            os._exit(3)
        case reason:
            raise fail_as_told(Reason(reason), outcome, call=call)


def fail_as_told(reason: Reason, outcome: Outcome, *, call: Call) -> AcpFailure:
    """The failure of the table, with the side effect that the script or the table states."""
    stated = outcome.get("side_effect")
    side_effect = SideEffect[stated] if stated else ERRORS[reason].side_effect
    message = f"{reason.value}, as told for attempt {call.context.attempt}."
    if "retry_after_ms" in outcome:
        after_ms = outcome["retry_after_ms"]
        return call.fail(reason, message, side_effect=side_effect, retry_after_ms=after_ms)
    return call.fail(reason, message, side_effect=side_effect)
