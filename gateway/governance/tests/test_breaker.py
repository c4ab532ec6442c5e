"""The breaker against a plain model, and the rules that users of other gateways miss."""

from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from gateway.governance.breaker import BAD, GOOD, Breaker, Circuit, Phase, phase_at
from gateway.governance.outcome import Outcome
from gateway.governance.rules import BreakerRules, Rules
from gateway.governance.tests.wishes import QUEUES, wish
from gateway.governance.verdicts import ADMIT, Defer, Refuse
from gateway.governance.wish import Closing, Wish

NEUTRAL = [one for one in Outcome if one not in BAD | GOOD and one is not Outcome.ACCEPTED]
STREAK = BreakerRules(
    failures_in_a_row=3, least_calls=1_000_000, open_ms=100, max_open_ms=400, successes=2,
    probes=2, ramp_calls=8, window_ms=10_000_000, probe_patience_ms=1_000_000,
)  # fmt: skip


class Line:
    """One instance's breaker with a clock: what tests do to it."""

    def __init__(self, rules: BreakerRules) -> None:
        self.rules = Rules(queues=QUEUES, breaker=rules)
        self.policy, self.state, self.now_ms = Breaker(), Circuit(), 0.0

    def wish(self, *, is_head: bool = False) -> Wish:
        return wish(self.rules, now_ms=self.now_ms, is_head=is_head)

    def check(self, *, waiting: int = 0, is_head: bool = False) -> object:
        return self.policy.check(self.state, self.wish(is_head=is_head), waiting=waiting)

    def take(self) -> int:
        self.state, note = self.policy.take(self.state, self.wish())
        return note

    def close(self, note: int, outcome: Outcome) -> None:
        closing = Closing(self.wish(), outcome, self.now_ms)
        self.state = self.policy.observe(self.state, closing, note=note)

    def call(self, outcome: Outcome) -> bool:
        """A whole call, if it is let through."""
        if self.check() is not ADMIT:
            return False
        self.close(self.take(), outcome)
        return True

    def open(self) -> None:
        while self.state.phase is not Phase.OPEN:
            self.call(Outcome.FAILED)

    def is_in(self, phase: Phase) -> bool:
        return phase_at(self.state, self.now_ms) is phase


@dataclass
class Model:
    """The rules in plain words and lists: consecutive failures open, probes close, a ramp follows.

    `era` changes with each phase; a call remembers the era it left in.
    """

    era: int = 0
    phase: str = "closed"
    streak: int = 0
    until: float = 0.0
    out: list[int] = field(default_factory=list)
    proved: int = 0
    ramp: int = 0

    def may(self, now: float) -> bool:
        if self.phase == "open":
            return now >= self.until
        if self.phase == "half_open":
            return len(self.out) < STREAK.probes
        return self.ramp == 0 or len(self.out) < self.ramp

    def begin(self) -> None:
        if self.phase == "open":
            self.turn("half_open")

    def turn(self, phase: str) -> None:
        self.phase, self.era, self.out, self.proved, self.streak = phase, self.era + 1, [], 0, 0

    def end(self, outcome: Outcome, line: Line) -> None:
        """A call of this era came home."""
        bad, good = outcome in BAD, outcome in GOOD
        if self.phase == "half_open":
            self.proved += good
            if bad:
                self.turn("open")
            elif self.proved >= STREAK.successes:
                self.turn("closed")
                self.ramp = 2 * STREAK.probes
        elif bad:
            self.streak += 1
            self.ramp = max(1, self.ramp // 2) if self.ramp else 0
            if self.streak >= STREAK.failures_in_a_row:
                self.turn("open")
                self.ramp = 0
        elif good:
            self.streak = 0
            if self.ramp:
                self.ramp += 1
                if self.ramp > STREAK.ramp_calls:
                    self.ramp, self.out, self.era = 0, [], self.era + 1
        self.until = line.state.until_ms


class Machine(RuleBasedStateMachine):
    """Calls come, end in any order and any way, and time goes on."""

    @initialize()
    def begin(self) -> None:
        self.line, self.model = Line(STREAK), Model()
        self.flying: list[tuple[int, int, int]] = []
        self.number = 0

    @rule(after_ms=st.sampled_from([0, 1, 50, 130, 500]))
    def time_passes(self, after_ms: int) -> None:
        self.line.now_ms += after_ms

    @rule()
    def somebody_asks(self) -> None:
        verdict = self.line.check()
        assert (verdict is ADMIT) is self.model.may(self.line.now_ms)
        if verdict is ADMIT:
            self.model.begin()
            self.number += 1
            if self.model.phase == "half_open" or self.model.ramp:
                self.model.out.append(self.number)
            self.flying.append((self.number, self.line.take(), self.model.era))
        elif self.model.phase == "open":
            assert isinstance(verdict, Refuse)
            assert verdict.error.reason == "BREAKER_OPEN"
            assert (verdict.error.retry_after_ms or 0) >= self.model.until - self.line.now_ms
        else:
            assert isinstance(verdict, Defer)

    @precondition(lambda self: self.flying)
    @rule(which=st.integers(0, 1_000), outcome=st.sampled_from(
        [*BAD, *GOOD, *NEUTRAL, Outcome.FAILED, Outcome.SUCCEEDED]
    ))  # fmt: skip
    def a_call_ends(self, which: int, outcome: Outcome) -> None:
        number, note, era = self.flying.pop(which % len(self.flying))
        before = self.line.state
        self.line.close(note, outcome)
        if era != self.model.era:
            assert self.line.state is before, "a call of an earlier phase judges nothing"
            return
        if number in self.model.out:
            self.model.out.remove(number)
        self.model.end(outcome, self.line)

    @invariant()
    def they_agree(self) -> None:
        state = self.line.state
        assert state.phase.value == self.model.phase
        assert state.ramp == self.model.ramp
        if self.model.phase == "half_open" or self.model.ramp:
            assert state.out == len(self.model.out)

    def teardown(self) -> None:
        """Whatever has happened: a target that answers again gets its full load again."""
        line = self.line
        for number, note, _ in self.flying:
            assert number
            line.close(note, Outcome.CANCELLED)
        line.now_ms += STREAK.max_open_ms * 1.2
        for _ in range(STREAK.successes + STREAK.ramp_calls + 2):
            assert line.call(Outcome.SUCCEEDED)
        assert line.is_in(Phase.CLOSED)
        assert not line.state.ramp


TestMachine = Machine.TestCase
TestMachine.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


def test_it_opens_after_failures_in_a_row_and_one_success_begins_the_count_anew() -> None:
    line = Line(STREAK)
    for outcome in (Outcome.FAILED, Outcome.FAILED, Outcome.SUCCEEDED, Outcome.FAILED):
        line.call(outcome)
    assert line.is_in(Phase.CLOSED)
    for _ in range(2):
        line.call(Outcome.UNREACHED)
    assert line.is_in(Phase.OPEN)


def test_it_opens_on_a_share_of_failures_once_there_are_enough_calls() -> None:
    line = Line(BreakerRules(failures_in_a_row=1_000, failure_percent=50, least_calls=20))
    for number in range(19):
        line.call(Outcome.FAILED if number % 2 else Outcome.SUCCEEDED)
    assert line.is_in(Phase.CLOSED)
    line.call(Outcome.FAILED)
    assert line.is_in(Phase.OPEN)


def test_failures_of_long_ago_are_forgotten() -> None:
    line = Line(BreakerRules(failures_in_a_row=3, window_ms=1_000))
    for _ in range(10):
        line.call(Outcome.FAILED)
        line.call(Outcome.FAILED)
        line.now_ms += 2_000
    assert line.is_in(Phase.CLOSED)


def test_each_failed_probe_doubles_the_pause_up_to_its_bound() -> None:
    line = Line(STREAK)
    line.open()
    pauses = []
    for _ in range(5):
        pauses.append(line.state.until_ms - line.now_ms)
        line.now_ms = line.state.until_ms
        assert line.call(Outcome.FAILED), "the probe"
    for pause, least in zip(pauses, (100, 200, 400, 400, 400), strict=True):
        assert least <= pause <= least * 1.1


def test_instances_that_fell_together_are_not_probed_together() -> None:
    until = set()
    for name in "abcdefgh":
        line = Line(STREAK)
        for _ in range(3):
            asking = wish(line.rules, instance=name)
            line.state, note = line.policy.take(line.state, asking)
            closing = Closing(asking, Outcome.FAILED, 0.0)
            line.state = line.policy.observe(line.state, closing, note=note)
        until.add(line.state.until_ms)
    assert len(until) == 8


@pytest.mark.parametrize("outcome", [Outcome.NOT_SENT, Outcome.CANCELLED, Outcome.THROTTLED])
def test_a_probe_that_says_nothing_leaves_its_place_to_the_next(outcome: Outcome) -> None:
    line = Line(STREAK)
    line.open()
    line.now_ms = line.state.until_ms
    for _ in range(20):
        first, second = line.take(), line.take()
        assert isinstance(line.check(), Defer)
        line.close(first, outcome)
        line.close(second, outcome)
        assert line.check() is ADMIT
    assert line.is_in(Phase.HALF_OPEN)


def test_a_probe_that_never_ends_does_not_keep_the_next_one_out_for_ever() -> None:
    line = Line(BreakerRules(failures_in_a_row=1, open_ms=100, probe_patience_ms=500))
    line.open()
    line.now_ms = line.state.until_ms
    line.take()
    found = line.check()
    assert isinstance(found, Defer)
    assert found.until_ms == line.now_ms + 500, "asked again then, by a timer"
    line.now_ms = found.until_ms
    assert line.check() is ADMIT


def test_when_it_closes_those_who_waited_come_in_few_at_a_time() -> None:
    """Woken all at once, a thousand deferred calls knocked the healed target over again."""
    line = Line(BreakerRules(failures_in_a_row=1, open_ms=100, probes=1, successes=1))
    line.open()
    line.now_ms = line.state.until_ms
    line.close(line.take(), Outcome.SUCCEEDED)
    assert line.is_in(Phase.CLOSED)
    rounds, left = [], 1_000
    while left:
        flying = []
        while left and line.check(is_head=True) is ADMIT:
            flying.append(line.take())
            left -= 1
        rounds.append(len(flying))
        for note in flying:
            line.close(note, Outcome.SUCCEEDED)
    assert rounds[:4] == [2, 4, 8, 16], "twice as many with each round"


def test_a_failure_on_the_way_back_halves_the_ramp() -> None:
    line = Line(BreakerRules(failures_in_a_row=3, open_ms=100, probes=1, successes=1))
    line.open()
    line.now_ms = line.state.until_ms
    line.call(Outcome.SUCCEEDED)
    for _ in range(6):
        line.call(Outcome.SUCCEEDED)
    assert line.state.ramp == 8
    line.call(Outcome.FAILED)
    assert line.state.ramp == 4


@given(st.integers(0, 2_000))
def test_more_may_wait_for_a_probe_only_up_to_the_bound(waiting: int) -> None:
    line = Line(BreakerRules(failures_in_a_row=1, open_ms=100, max_waiting=1_000))
    line.open()
    line.now_ms = line.state.until_ms
    line.take()
    assert isinstance(line.check(waiting=waiting), Defer if waiting < 1_000 else Refuse)


def test_switched_off_it_lets_everything_through_and_counts_nothing() -> None:
    line = Line(BreakerRules(enabled=False, failures_in_a_row=1))
    for _ in range(50):
        assert line.call(Outcome.FAILED)
    assert line.state == Circuit()
