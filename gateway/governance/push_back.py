"""A target that asked for fewer calls is left alone as long as it asked for (`retry_after_ms`).

Afterwards those who waited go one by one, a few milliseconds apart: woken all at once they would
only be told the same again. Push-back is the target's own word, so it needs no declaration; the
state is the time before which nothing is sent.
"""

import math

from acp_spec.bindings.errors import error
from acp_spec.model.enums import Boundary
from acp_spec.model.errors import Reason
from gateway.governance.outcome import Outcome
from gateway.governance.verdicts import ADMIT, Defer, Refuse, Verdict
from gateway.governance.wish import Closing, Wish

PACE_MS = 10.0
"""Between two that waited: a hundred a second, slower than any target that answers at all."""

MAX_MS = 60_000
"""No target silences itself for longer by one answer: a typo of an hour is not an hour lost."""

MAX_WAITING = 1_024
"""As many as wait for an instance by default; more are refused."""


class PushBack:
    """Of one action of one instance."""

    name = "push_back"
    fresh = -math.inf
    settles_late = False
    stirred_by = frozenset({Outcome.THROTTLED})
    fades = True

    def key(self, wish: Wish) -> str:
        return f"push_back:{wish.instance}/{wish.action}"

    def check(self, state: float, wish: Wish, *, waiting: int) -> Verdict:
        left_ms = state - wish.now_ms
        is_next = wish.is_head or not waiting
        if left_ms <= 0 and is_next:
            return ADMIT
        wait_ms = max(0.0, left_ms) + (0 if is_next else waiting) * PACE_MS
        if wait_ms < wish.patience_ms and (wish.is_head or waiting < MAX_WAITING):
            return Defer(self.name, self.key(wish), max(state, wish.now_ms))
        after_ms = max(1, math.ceil(wait_ms))
        message = f"{wish.pin or wish.instance} asked for a pause of another {after_ms} ms"
        refusal = error(
            Reason.RATE_LIMITED, message, boundary=Boundary.GATEWAY, retry_after_ms=after_ms
        )
        return Refuse(self.name, refusal)

    def take(self, state: float, wish: Wish) -> tuple[float, int]:
        return (wish.now_ms + PACE_MS if wish.is_head and state > -math.inf else state), 0

    def observe(self, state: float, closing: Closing, *, note: int) -> float:
        if closing.outcome is not Outcome.THROTTLED or not closing.retry_after_ms:
            return state
        return max(state, closing.now_ms + min(closing.retry_after_ms, MAX_MS))

    def is_idle(self, state: float, now_ms: float) -> bool:
        return state <= now_ms
