"""Token buckets: calls a second of an action, of a workflow by its contract, of an instance (R11).

The bucket is kept as one number, the time at which it is full again (GCRA, ITU-T I.371): a call
moves it on by one interval and may start while it lies at most `burst` intervals ahead. Whoever
comes too early waits for its token if that comes within its time; else the row refuses, and the
recovery policy or the workflow's fallback degrades.
"""

import math

from acp_spec.bindings.errors import error
from acp_spec.model.enums import Boundary
from acp_spec.model.errors import AcpError, Reason
from gateway.governance.outcome import Outcome
from gateway.governance.rules import OnExcess, RateRules
from gateway.governance.verdicts import ADMIT, Defer, Refuse, Verdict
from gateway.governance.wish import Closing, Wish

GOES_BACK = frozenset({Outcome.NOT_SENT, Outcome.UNREACHED})
"""Nothing reached the target: its token was not used."""


class RateLimit:
    """What both buckets have in common: all but whose they are."""

    name = "rate_limit"
    fresh = -math.inf
    settles_late = False
    stirred_by = None
    fades = True

    def key(self, wish: Wish) -> str:
        raise NotImplementedError

    def rules(self, wish: Wish) -> RateRules | None:
        raise NotImplementedError

    def check(self, state: float, wish: Wish, *, waiting: int) -> Verdict:
        rules = self.rules(wish)
        if rules is None:
            return ADMIT
        interval_ms = 1000.0 / rules.per_second
        free_at_ms = state - (rules.burst - 1) * interval_ms
        is_next = wish.is_head or not waiting
        if wish.now_ms >= free_at_ms and is_next:
            return ADMIT
        ahead = 0 if is_next else waiting
        wait_ms = max(0.0, free_at_ms - wish.now_ms) + ahead * interval_ms
        fits = wait_ms < wish.patience_ms and (wish.is_head or waiting < rules.max_waiting)
        if fits and rules.on_excess is OnExcess.WAIT:
            return Defer(self.name, self.key(wish), max(free_at_ms, wish.now_ms))
        return Refuse(self.name, _refusal(self.key(wish), rules, wait_ms=wait_ms))

    def take(self, state: float, wish: Wish) -> tuple[float, int]:
        rules = self.rules(wish)
        assert rules is not None, "an empty key has no bucket"
        return max(state, wish.now_ms) + 1000.0 / rules.per_second, 0

    def observe(self, state: float, closing: Closing, *, note: int) -> float:
        rules = self.rules(closing.wish)
        if closing.outcome not in GOES_BACK or rules is None:
            return state
        return state - 1000.0 / rules.per_second

    def is_idle(self, state: float, now_ms: float) -> bool:
        return state <= now_ms


def _refusal(key: str, rules: RateRules, *, wait_ms: float) -> AcpError:
    after_ms = max(1, math.ceil(wait_ms))
    message = (
        f"{key}: at most {rules.per_second:g} calls a second; the next is free in {after_ms} ms"
    )
    return error(Reason.RATE_LIMITED, message, boundary=Boundary.GATEWAY, retry_after_ms=after_ms)


class OfAction(RateLimit):
    """Calls of one action, on whichever instance."""

    def key(self, wish: Wish) -> str:
        if wish.action not in wish.rules.actions:
            return ""
        return f"rate:{wish.pin.partition('@')[0]}/{wish.action}"

    def rules(self, wish: Wish) -> RateRules | None:
        return wish.rules.actions.get(wish.action)


class OfWorkflow(RateLimit):
    """Calls of one action by one workflow: what its contract says."""

    def key(self, wish: Wish) -> str:
        return f"rate:{wish.workflow}:{wish.action}" if wish.contract_rate is not None else ""

    def rules(self, wish: Wish) -> RateRules | None:
        return wish.contract_rate


class OfTarget(RateLimit):
    """Calls of one instance: what its card says it can take (`limits.max_rate_per_s`)."""

    def key(self, wish: Wish) -> str:
        return f"rate:{wish.instance}" if wish.rules.rate is not None else ""

    def rules(self, wish: Wish) -> RateRules | None:
        return wish.rules.rate
