"""A token bucket of retries per target, as gRPC throttles them (proposal A6, "retry throttling").

Each failure takes a token, each success gives back a fraction; while at most half of them are left
nothing is repeated. So retries follow the target's health instead of multiplying its trouble, and
every level of a chain of callers stops by itself (27 calls become 1). First attempts always pass.
The state is what is missing: nothing, for a healthy target.
"""

from acp_spec.bindings.errors import error
from acp_spec.model.enums import Boundary
from acp_spec.model.errors import Reason
from gateway.governance.outcome import Outcome
from gateway.governance.rules import RetryTokenRules
from gateway.governance.verdicts import ADMIT, Refuse, Verdict
from gateway.governance.wish import Closing, Wish

DRAINS = frozenset({Outcome.FAILED, Outcome.UNREACHED, Outcome.DOWNSTREAM, Outcome.THROTTLED})
"""Failures that somebody would repeat; a caller's mistake is repeated by nobody."""


def may_retry(missing: float, rules: RetryTokenRules) -> bool:
    """Whether more than half of the tokens are there."""
    return not rules.enabled or rules.max_tokens - missing > rules.max_tokens / 2


def share_left(missing: float, rules: RetryTokenRules) -> float:
    """How full the bucket is, 0 to 1."""
    return max(0.0, 1.0 - missing / rules.max_tokens)


class RetryTokens:
    """Of one component version, all its instances together: A6 counts per service."""

    name = "retry_tokens"
    fresh = 0.0
    settles_late = True
    stirred_by = DRAINS
    fades = False

    def key(self, wish: Wish) -> str:
        return f"retries:{wish.pin}" if wish.pin else ""

    def check(self, state: float, wish: Wish, *, waiting: int) -> Verdict:
        rules = wish.rules.retries
        if not wish.is_retry or may_retry(state, rules):
            return ADMIT
        message = (
            f"too many calls of {wish.pin} fail: nothing is repeated until some succeed"
            f" ({rules.max_tokens - state:.1f} of {rules.max_tokens:g} retry tokens are left)"
        )
        refusal = error(Reason.BUDGET_EXHAUSTED, message, boundary=Boundary.GATEWAY)
        return Refuse(self.name, refusal)

    def take(self, state: float, wish: Wish) -> tuple[float, int]:
        return state, 0

    def observe(self, state: float, closing: Closing, *, note: int) -> float:
        rules = closing.wish.rules.retries
        if closing.outcome in DRAINS:
            return min(rules.max_tokens, state + 1.0)
        if closing.outcome is Outcome.SUCCEEDED and state:
            return max(0.0, state - rules.token_ratio)
        return state

    def is_idle(self, state: float, now_ms: float) -> bool:
        return state == 0.0
