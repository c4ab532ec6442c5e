"""Wishes for tests of the row: one of a healthy target, with what a test changes."""

import msgspec

from gateway.governance.rules import Rules, Slots
from gateway.governance.wish import Wish

QUEUES = {name: Slots(limit=9, max_waiting=99) for name in ("PLAN", "TOOL", "LLM")}


def wish(rules: Rules | None = None, **fields: object) -> Wish:
    """A tool call of action `x` on instance `a` of component `c`, with a second left."""
    plain = Wish(
        rules=rules or Rules(queues=QUEUES),
        step_type="TOOL",
        instance="a",
        pin="c@1.0.0",
        action="x",
        left_ms=1_000,
    )
    return msgspec.structs.replace(plain, **fields)
