"""Scratchpad: runs a few lines of Python that a planner wrote, where they can do no harm.

The component itself never looks at the code. What holds it stands on the card, and docs/sandbox.md
says what that does not protect from.
"""

from pathlib import Path

from acp_spec import Component, Effect, Idempotency
from acp_spec.model.card import Limits as CardLimits
from acp_spec.sdk.sandbox import Limits, Program, offer_program

MAX_CONCURRENCY = 32
"""Runs at once; with what each may take, four gigabytes at most."""
MEMORY_BYTES = 128 * 1024 * 1024
WALL_MS = 4_000
"""Below a call's usual five seconds, so that the limit is told before the caller gives up."""
PROGRAM = Path(__file__).with_name("program")

ARGUMENTS = {
    "type": "object",
    "properties": {
        "source": {"type": "string", "maxLength": 65_536, "description": "Python; sets `result`"},
        "input": {"description": "any JSON; the source finds it as `input`"},
    },
    "required": ["source"],
}
OUTPUT = {
    "type": "object",
    "properties": {"result": {}, "printed": {"type": "string"}},
    "required": ["result", "printed"],
}
EXAMPLE = {
    "arguments": {"source": "result = sum(input)", "input": [1, 2, 3]},
    "output": {"result": 6, "printed": ""},
    "safe": True,
}


def make(limits: Limits | None = None) -> Component:
    """A scratchpad. Raises SandboxUnavailable where this system cannot hold what runs in it."""
    component = Component("scratchpad", "1.0.0", limits=CardLimits(max_concurrency=MAX_CONCURRENCY))
    offer_program(
        component,
        Program(command=("python3", "-I", str(PROGRAM / "evaluate.py")), reads=(PROGRAM,)),
        action="python.run",
        limits=limits or Limits(memory_bytes=MEMORY_BYTES, wall_ms=WALL_MS, cpu_ms=WALL_MS),
        description="Runs a few lines of Python in a sandbox; gives what they set `result` to.",
        effect=Effect.READ,
        idempotency=Idempotency.NATURAL,
        input_schema=ARGUMENTS,
        output_schema=OUTPUT,
        examples=[EXAMPLE],
    )
    return component
