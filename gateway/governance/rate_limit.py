"""Token buckets: calls a second of an action, of a workflow by its contract, of an instance (R11).

The bucket is kept as one number, the time at which it is full again (GCRA, ITU-T I.371): a call
moves it on by one interval and may start while it lies at most `burst` intervals ahead. Whoever
comes too early waits for its token if that comes within its time; else the row refuses, and the
recovery policy or the workflow's fallback degrades. A token that comes back leaves the bucket as if
its call had never been, which is no token more where the bucket has filled meanwhile.
"""

import math
from typing import Final

import msgspec

from acp_spec.bindings.errors import error
from acp_spec.model.enums import Boundary
from acp_spec.model.errors import AcpError, Reason
from gateway.governance.outcome import Outcome
from gateway.governance.rules import OnExcess, RateRules
from gateway.governance.verdicts import ADMIT, Defer, Refuse, Verdict
from gateway.governance.wish import Closing, Wish

GOES_BACK: Final = frozenset({Outcome.NOT_SENT, Outcome.UNREACHED})
"""Nothing reached the target: its token was not used."""

NEVER_TRIED: Final = frozenset({Outcome.NOT_SENT})
"""Of one instance's own rate: a try that finds nobody there is one. Given back, its token would
serve to try again at once, and nothing else."""

KEPT_MOST: Final = 128
"""Calls of a busy bucket that may still bring their tokens back: a kilobyte and a half of times. A
connection is refused within milliseconds; older tokens count as used, which is never too many."""


class Bucket(msgspec.Struct, frozen=True, gc=False):
    """`calls`: when those since it was last full were admitted, oldest first; `before_ms`: when it
    would be full again without them. They are reckoned anew when one of them was none."""

    full_at_ms: float = -math.inf
    before_ms: float = -math.inf
    calls: tuple[float, ...] = ()
    interval_ms: float = 0.0


FULL: Final = Bucket()


def _taken(bucket: Bucket, now_ms: float, *, interval_ms: float) -> Bucket:
    full_ms = bucket.full_at_ms
    full_at_ms = max(full_ms, now_ms) + interval_ms
    if full_ms <= now_ms or interval_ms != bucket.interval_ms:
        # It is full with all of them, as it would be without. Or the rate is another one now: then
        # what was reckoned at the old one stands.
        return Bucket(full_at_ms, full_ms, (now_ms,), interval_ms)
    before_ms, calls = bucket.before_ms, bucket.calls
    if len(calls) >= KEPT_MOST:
        before_ms, calls = max(before_ms, calls[0]) + interval_ms, calls[1:]
    return Bucket(full_at_ms, before_ms, (*calls, now_ms), interval_ms)


def _given_back(bucket: Bucket, taken_ms: float) -> Bucket:
    """Without the call that was admitted then; calls of one moment are alike."""
    if taken_ms not in bucket.calls:
        return bucket
    place, full_at_ms = bucket.calls.index(taken_ms), bucket.before_ms
    calls = bucket.calls[:place] + bucket.calls[place + 1 :]
    for at_ms in calls:
        full_at_ms = max(full_at_ms, at_ms) + bucket.interval_ms
    return Bucket(full_at_ms, bucket.before_ms, calls, bucket.interval_ms)


class RateLimit:
    """What both buckets have in common: all but whose they are."""

    name = "rate_limit"
    fresh = FULL
    settles_late = False
    stirred_by = None
    fades = True
    goes_back = GOES_BACK

    def key(self, wish: Wish) -> str:
        raise NotImplementedError

    def rules(self, wish: Wish) -> RateRules | None:
        raise NotImplementedError

    def check(self, state: Bucket, wish: Wish, *, waiting: int) -> Verdict:
        rules = self.rules(wish)
        if rules is None:
            return ADMIT
        interval_ms = 1000.0 / rules.per_second
        free_at_ms = state.full_at_ms - (rules.burst - 1) * interval_ms
        is_next = wish.is_head or not waiting
        if wish.now_ms >= free_at_ms and is_next:
            return ADMIT
        ahead = 0 if is_next else waiting
        wait_ms = max(0.0, free_at_ms - wish.now_ms) + ahead * interval_ms
        fits = wait_ms < wish.patience_ms and (wish.is_head or waiting < rules.max_waiting)
        if fits and rules.on_excess is OnExcess.WAIT:
            return Defer(self.name, self.key(wish), max(free_at_ms, wish.now_ms))
        return Refuse(self.name, _refusal(self.key(wish), rules, wait_ms=wait_ms))

    def take(self, state: Bucket, wish: Wish) -> tuple[Bucket, int]:
        rules = self.rules(wish)
        assert rules is not None, "an empty key has no bucket"
        return _taken(state, wish.now_ms, interval_ms=1000.0 / rules.per_second), 0

    def observe(self, state: Bucket, closing: Closing, *, note: int) -> Bucket:
        if closing.outcome not in self.goes_back:
            return state
        return _given_back(state, closing.wish.now_ms)

    def is_idle(self, state: Bucket, now_ms: float) -> bool:
        return state.full_at_ms <= now_ms


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

    goes_back = NEVER_TRIED

    def key(self, wish: Wish) -> str:
        return f"rate:{wish.instance}" if wish.rules.rate is not None else ""

    def rules(self, wish: Wish) -> RateRules | None:
        return wish.rules.rate
