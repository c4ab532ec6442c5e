"""What a row of policies goes by for one target: limits, thresholds, times, each with its reason.

Made from the live parameters, the target's card and the contract (`parameters.rules_for`); a row
never looks anything up. The names are those of the parameters' document, which people edit.
"""

import enum
from typing import Annotated, Final

import msgspec

Percent = Annotated[int, msgspec.Meta(ge=1, le=100)]
Many = Annotated[int, msgspec.Meta(ge=1, le=1_000_000)]
Waiting = Annotated[int, msgspec.Meta(ge=0, le=10_000_000)]
Milliseconds = Annotated[int, msgspec.Meta(ge=1, le=86_400_000)]
Tokens = Annotated[float, msgspec.Meta(gt=0, le=1_000)]
Ratio = Annotated[float, msgspec.Meta(gt=0, le=1_000)]
PER_SECOND_LEAST: Final = 0.001
"""Rarer than every quarter of an hour is no rate but a schedule, and no number to divide by."""
PER_SECOND_MOST: Final = 1_000_000.0
PerSecond = Annotated[float, msgspec.Meta(ge=PER_SECOND_LEAST, le=PER_SECOND_MOST)]


class Slots(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`limit` calls in flight, `max_waiting` behind them."""

    limit: Many = 32
    max_waiting: Waiting = 1_024


class BreakerRules(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When an instance counts as broken, and how it is tried again."""

    enabled: bool = True
    failures_in_a_row: Many = 5
    """Five in a row is no accident at any sane error rate (5% ** 5 = 3 in 10 million)."""
    failure_percent: Percent = 50
    """Of the calls in the window; with half of them lost, calling on helps nobody."""
    least_calls: Many = 20
    """A share of fewer calls than this is noise."""
    window_ms: Milliseconds = 10_000
    """Calls of the last one to two windows count: the default deadline of two calls."""
    open_ms: Milliseconds = 1_000
    """How long nothing is sent after opening; doubled each time the probes fail: one restart."""
    max_open_ms: Milliseconds = 2_000
    """And never longer. Doubled up to a minute it stayed open for 5 s beyond an outage of 10 s
    (`make bench-storm`), and a call every two seconds hurts no target."""
    probes: Many = 1
    """Calls at once while half-open: one is enough to know."""
    successes: Many = 2
    """Probes that must come back well before it closes."""
    probe_patience_ms: Milliseconds = 10_000
    """A probe that has not ended by then (a long operation) does not keep the next one out."""
    ramp_calls: Many = 32
    """After closing the target gets twice as many at once with each round, up to this many."""
    max_waiting: Waiting = 1_024
    """Calls that may wait for a probe's outcome; more are refused BREAKER_OPEN."""


class RetryTokenRules(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """gRPC's retry throttling (proposal A6): failures drain, successes fill, half stops retries."""

    enabled: bool = True
    max_tokens: Tokens = 20.0
    """Ten failures' worth of retries before they stop: one instance's blip, not an outage."""
    token_ratio: Ratio = 0.1
    """What a success gives back: at most one retry in ten calls while things go badly (A6)."""


class OnExcess(enum.Enum):
    """What becomes of a call over its rate."""

    WAIT = "WAIT"
    REFUSE = "REFUSE"


class RateRules(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A token bucket. WAIT: it waits for its token if that comes within its time, else it is
    refused RATE_LIMITED; REFUSE: it is refused at once, and the workflow degrades as it says."""

    per_second: PerSecond
    burst: Many = 1
    on_excess: OnExcess = OnExcess.WAIT
    max_waiting: Waiting = 1_024


Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
HedgeDelay = Annotated[int, msgspec.Meta(ge=0, le=86_400_000)]


class HedgeRules(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A second attempt, at another instance, of a call that only reads and is slow to answer."""

    share: Share = 0.0
    """Hedges a call, at most; 0: none. 0.05 cuts the tail and costs a twentieth more calls."""
    after_ms: HedgeDelay = 0
    """How slow; 0: slower than 95 of 100 calls of this action lately."""


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that holds for calls of one target now. `version`: of the parameters."""

    queues: dict[str, Slots]
    target: Slots = Slots()
    breaker: BreakerRules = BreakerRules()
    retries: RetryTokenRules = RetryTokenRules()
    rate: RateRules | None = None
    actions: dict[str, RateRules] = {}
    hedge: HedgeRules = HedgeRules()
    version: int = 0
