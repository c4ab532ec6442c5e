"""When a second attempt may begin beside the first, and how many: of what only reads (SPEC 9.7).

After J. Dean and L. A. Barroso, "The Tail at Scale" (2013): ask a second replica once the first is
slower than 95 of 100 calls; that cuts the tail and costs a twentieth more. A bucket keeps the cost
there also when everything is slow: then a hedge would only add to it. Pure: states are values.
"""

import msgspec

from gateway.governance.rules import HedgeRules

SHARE_BELOW = 0.95
"""Of a target's calls, how many are faster than the time after which one is hedged."""

STEP = 0.05
"""How far the estimate moves with a call, as a part of itself; twenty calls and it has moved."""

LEAST_CALLS = 20
"""An estimate of the slowest twentieth needs as many calls."""

BURST = 10.0
"""Hedges that may come at once after a quiet time."""


class Tail(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What is known of one target's action: the slow end of its times, and the hedges it may have.

    `slow_ms` is estimated without keeping times: up by 19 steps with each slower call, down by one
    with each faster one, so that it rests where one call in twenty is slower.
    """

    slow_ms: float = 0.0
    calls: int = 0
    tokens: float = 0.0


FRESH = Tail()


def after_ms(tail: Tail, rules: HedgeRules) -> int:
    """When to think of a hedge; 0: not at all."""
    if not rules.share:
        return 0
    if rules.after_ms:
        return rules.after_ms
    return max(1, round(tail.slow_ms)) if tail.calls >= LEAST_CALLS else 0


def began(tail: Tail, rules: HedgeRules) -> Tail:
    """A first attempt started: a part of a hedge more may be had."""
    return msgspec.structs.replace(tail, tokens=min(BURST, tail.tokens + rules.share))


def served(tail: Tail, service_ms: float) -> Tail:
    """An attempt was answered after this time."""
    if not tail.calls:
        return msgspec.structs.replace(tail, slow_ms=service_ms, calls=1)
    step = max(tail.slow_ms * STEP, 0.1)
    up = service_ms > tail.slow_ms
    moved = tail.slow_ms + (step * SHARE_BELOW if up else -step * (1 - SHARE_BELOW))
    return msgspec.structs.replace(tail, slow_ms=max(0.1, moved), calls=tail.calls + 1)


def may_hedge(tail: Tail) -> bool:
    return tail.tokens >= 1.0


def hedged(tail: Tail) -> Tail:
    """A hedge was sent."""
    return msgspec.structs.replace(tail, tokens=tail.tokens - 1.0)
