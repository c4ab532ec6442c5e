"""A circuit breaker per instance: closed, open, half-open, and a ramp back to full load (R09).

Only outcomes that the target is to blame for count (`outcome`). Every phase has a number (`epoch`)
that a permit remembers, so that calls of an earlier phase, coming home late, judge nothing. While
half-open so many probes go out as the rules say; one that was not sent leaves its place to the
next. When the breaker closes, those who waited come in twice as many with each round, never all.
"""

import math

import msgspec

from acp_spec.bindings.errors import error
from acp_spec.model.enums import Boundary, Word
from acp_spec.model.errors import AcpError, Reason
from acp_spec.model.ids import unit_interval
from gateway.governance.outcome import Outcome
from gateway.governance.rules import BreakerRules
from gateway.governance.verdicts import ADMIT, Defer, Refuse, Verdict
from gateway.governance.wish import Closing, Wish

BAD = frozenset({Outcome.FAILED, Outcome.UNREACHED})
GOOD = frozenset({Outcome.SUCCEEDED, Outcome.ANSWERED, Outcome.DOWNSTREAM})
"""It answered. What is in neither set (throttled, cancelled, not sent) says nothing."""

SPREAD = 0.1
"""Up to a tenth is added to the open time, hashed: instances that fell together are not probed
together."""

REMEMBERED_MS = 3_600_000.0
"""An open breaker that nobody asks is forgotten after an hour; by then it says nothing any more."""

replace = msgspec.structs.replace


class Phase(Word):
    """As an attempt's row names it."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


class Circuit(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """State of one instance. `good` and `bad` count the window that began at `since_ms`, `*_before`
    the one before it. `out`: probes, or calls of the ramp, in flight. `ramp` 0: full load."""

    phase: Phase = Phase.CLOSED
    epoch: int = 0
    failures: int = 0
    since_ms: float = -math.inf
    good: int = 0
    bad: int = 0
    good_before: int = 0
    bad_before: int = 0
    until_ms: float = 0.0
    opened: int = 0
    out: int = 0
    proved: int = 0
    ramp: int = 0
    probed_ms: float = -math.inf
    idle_at_ms: float = -math.inf


FRESH = Circuit()


def phase_at(circuit: Circuit, now_ms: float) -> Phase:
    """The phase as it is seen now: an open breaker whose time is over may be probed."""
    if circuit.phase is Phase.OPEN and now_ms >= circuit.until_ms:
        return Phase.HALF_OPEN
    return circuit.phase


def open_left_ms(circuit: Circuit, now_ms: float) -> int:
    """How long it stays open, 0 when it is not."""
    if circuit.phase is not Phase.OPEN:
        return 0
    return max(0, math.ceil(circuit.until_ms - now_ms))


def has_room(circuit: Circuit, rules: BreakerRules, *, now_ms: float) -> bool:
    """Would somebody whose turn it is be let through?"""
    if not rules.enabled:
        return True
    match circuit.phase:
        case Phase.CLOSED:
            return not circuit.ramp or circuit.out < circuit.ramp
        case Phase.OPEN:
            return now_ms >= circuit.until_ms
        case Phase.HALF_OPEN:
            patient_until_ms = circuit.probed_ms + rules.probe_patience_ms
            return circuit.out < rules.probes or now_ms >= patient_until_ms


def key_of(instance: str) -> str:
    """Under which the circuit of an instance is kept."""
    return f"breaker:{instance}"


class Breaker:
    """The policy."""

    name = "breaker"
    fresh = FRESH
    settles_late = True
    stirred_by = None
    fades = True

    def key(self, wish: Wish) -> str:
        return key_of(wish.instance)

    def check(self, state: Circuit, wish: Wish, *, waiting: int) -> Verdict:
        rules = wish.rules.breaker
        if has_room(state, rules, now_ms=wish.now_ms) and (wish.is_head or not waiting):
            return ADMIT
        is_open = state.phase is Phase.OPEN and wish.now_ms < state.until_ms
        if is_open or not (wish.is_head or waiting < rules.max_waiting):
            return Refuse(self.name, _refusal(state, wish))
        until_ms = 0.0
        if state.phase is Phase.HALF_OPEN:
            until_ms = max(wish.now_ms, state.probed_ms + rules.probe_patience_ms)
        return Defer(self.name, self.key(wish), until_ms)

    def take(self, state: Circuit, wish: Wish) -> tuple[Circuit, int]:
        if state.phase is Phase.CLOSED:
            if state.ramp:
                state = replace(state, out=state.out + 1)
            return state, state.epoch
        if state.phase is Phase.OPEN:
            state = replace(state, phase=Phase.HALF_OPEN, epoch=state.epoch + 1, out=0, proved=0)
        state = replace(state, out=state.out + 1, probed_ms=wish.now_ms)
        return state, state.epoch

    def observe(self, state: Circuit, closing: Closing, *, note: int) -> Circuit:
        if note != state.epoch or not closing.wish.rules.breaker.enabled:
            return state
        if state.phase is Phase.HALF_OPEN:
            return _probed(state, closing)
        return _counted(state, closing)

    def is_idle(self, state: Circuit, now_ms: float) -> bool:
        return now_ms >= state.idle_at_ms


def _refusal(state: Circuit, wish: Wish) -> AcpError:
    after_ms = max(1, open_left_ms(state, wish.now_ms))
    what = wish.pin or wish.instance
    message = f"calls of {what} fail: none is sent there for another {after_ms} ms"
    if state.phase is not Phase.OPEN:
        message = f"{what} has just failed and is being tried; too many calls wait for that"
    return error(Reason.BREAKER_OPEN, message, boundary=Boundary.GATEWAY, retry_after_ms=after_ms)


def _probed(state: Circuit, closing: Closing) -> Circuit:
    """A probe came home."""
    rules, outcome = closing.wish.rules.breaker, closing.outcome
    if outcome in BAD:
        return _opened(state, closing)
    proved = state.proved + (outcome in GOOD)
    if proved < rules.successes:
        return replace(state, out=max(0, state.out - 1), proved=proved)
    return Circuit(
        epoch=state.epoch + 1,
        opened=state.opened,
        ramp=2 * rules.probes,
        since_ms=closing.now_ms,
        idle_at_ms=closing.now_ms + 2 * rules.window_ms,
    )


def _counted(state: Circuit, closing: Closing) -> Circuit:
    """A call came home while the breaker is closed."""
    outcome = closing.outcome
    bad = outcome in BAD
    if not bad and outcome not in GOOD:
        return replace(state, out=max(0, state.out - 1)) if state.ramp else state
    rules = closing.wish.rules.breaker
    state = _in_window(state, rules.window_ms, now_ms=closing.now_ms)
    if bad:
        state = replace(
            state,
            bad=state.bad + 1,
            failures=state.failures + 1,
            out=max(0, state.out - 1),
            ramp=max(1, state.ramp // 2) if state.ramp else 0,
        )
        return _opened(state, closing) if _is_broken(state, rules) else state
    if state.ramp:
        return _ramped(state, rules)
    return replace(state, good=state.good + 1, failures=0)


def _ramped(state: Circuit, rules: BreakerRules) -> Circuit:
    """One more that went well on the way back: two may follow it."""
    ramp = state.ramp + 1
    is_over = ramp > rules.ramp_calls
    return replace(
        state,
        good=state.good + 1,
        failures=0,
        out=0 if is_over else max(0, state.out - 1),
        ramp=0 if is_over else ramp,
        opened=0 if is_over else state.opened,
        epoch=state.epoch + is_over,
    )


def _in_window(state: Circuit, window_ms: int, *, now_ms: float) -> Circuit:
    """The counts as of now: a window that is over becomes the one before, older ones are gone."""
    age_ms = now_ms - state.since_ms
    if age_ms < window_ms:
        return state
    is_next = age_ms < 2 * window_ms
    return replace(
        state,
        since_ms=now_ms,
        good=0,
        bad=0,
        good_before=state.good if is_next else 0,
        bad_before=state.bad if is_next else 0,
        failures=state.failures if is_next else 0,
        idle_at_ms=now_ms + 2 * window_ms,
    )


def _is_broken(state: Circuit, rules: BreakerRules) -> bool:
    if state.failures >= rules.failures_in_a_row:
        return True
    bad = state.bad + state.bad_before
    calls = bad + state.good + state.good_before
    return calls >= rules.least_calls and bad * 100 >= calls * rules.failure_percent


def _opened(state: Circuit, closing: Closing) -> Circuit:
    """Nothing is sent for a while; longer each time the probes fail."""
    rules, epoch, opened = closing.wish.rules.breaker, state.epoch + 1, state.opened + 1
    for_ms = min(rules.max_open_ms, rules.open_ms * 2 ** min(opened - 1, 30))
    spread = 1 + SPREAD * unit_interval("breaker", closing.wish.instance, str(epoch))
    until_ms = closing.now_ms + for_ms * spread
    return Circuit(
        phase=Phase.OPEN,
        epoch=epoch,
        opened=opened,
        until_ms=until_ms,
        idle_at_ms=until_ms + REMEMBERED_MS,
    )
