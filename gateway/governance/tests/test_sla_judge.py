"""A breach begins only on enough samples, ends only on fresh proof, and never flaps."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from gateway.governance import sla_judge
from gateway.governance.sla import OnBreach, Sla
from gateway.governance.sla_judge import Change, Demand, Standing
from gateway.governance.sla_window import CallSample, Counts, Sample, SessionSample

SLA = Sla(
    component="c",
    max_latency_ms=100,
    latency_quantile=0.9,
    min_success_rate=0.9,
    max_fallback_rate=0.2,
    window_ms=60_000,
    min_samples=10,
    on_breach=OnBreach.REFUSE,
)
FINE, BAD, SLOW = CallSample(), CallSample(failed=True), CallSample(slow=True)
FELL, STOOD = SessionSample(fell_back=True), SessionSample()


def after(
    *samples: Sample, sla: Sla = SLA, start: Standing | None = None
) -> tuple[Standing, list[Change]]:
    standing, changes = start or sla_judge.fresh(sla), []
    for number, sample in enumerate(samples):
        standing, change = sla_judge.observe(standing, sla, sample=sample, now_ms=10**9 + number)
        changes += [change] if change else []
    return standing, changes


@pytest.mark.parametrize(
    ("samples", "broken"),
    [
        ([BAD] * 2 + [FINE] * 8, (Demand.SUCCESS,)),
        ([SLOW] * 2 + [FINE] * 8, (Demand.LATENCY,)),
        ([FELL] * 3 + [STOOD] * 7, (Demand.FALLBACK,)),
        ([CallSample(failed=True, slow=True)] * 10, (Demand.LATENCY, Demand.SUCCESS)),
    ],
)
def test_each_demand_is_broken_by_more_than_it_allows(
    samples: list[Sample], broken: tuple[Demand, ...]
) -> None:
    standing, changes = after(*samples)
    assert changes == [Change.BEGAN]
    assert standing.breach is not None
    assert standing.breach.broken == broken


@pytest.mark.parametrize(
    "samples", [[BAD] + [FINE] * 9, [SLOW] + [FINE] * 9, [FELL] * 2 + [STOOD] * 8, [BAD] * 9]
)
def test_what_is_allowed_or_too_little_to_judge_is_no_breach(samples: list[Sample]) -> None:
    assert after(*samples)[1] == []


def test_a_breach_tells_its_figures() -> None:
    standing, _ = after(*[BAD] * 2, *[SLOW] * 8)
    assert standing.breach is not None
    assert sla_judge.told(SLA, standing.breach) == (
        "component 'c' is outside its SLA: 8 of 10 calls took over 100 ms (10% may);"
        " 2 of 10 calls failed (10% may)"
    )


def test_a_breach_ends_when_as_many_new_calls_as_a_judgement_needs_are_good() -> None:
    broken, _ = after(*[BAD] * 10)
    assert after(*[FINE] * 9, start=broken)[1] == []
    assert after(*[FINE] * 10, start=broken)[1] == [Change.ENDED]


def test_to_end_a_breach_a_margin_is_kept_that_to_begin_one_is_not_needed() -> None:
    standing, _ = after(*[BAD] * 10)
    assert after(BAD, *[FINE] * 9, start=standing)[1] == [], "10 % bad are allowed, 8 % end it"
    assert after(BAD, *[FINE] * 10, start=standing)[1] == [Change.ENDED]


def test_good_calls_do_not_end_a_breach_of_fallbacks() -> None:
    standing, _ = after(*[FELL] * 10)
    assert after(*[FINE] * 50, start=standing)[1] == []
    assert after(*[FINE] * 10, *[STOOD] * 10, start=standing)[1] == [Change.ENDED]


def test_what_is_not_demanded_keeps_no_breach_open() -> None:
    sla = Sla(component="c", max_latency_ms=100, min_samples=4)
    slow, _ = after(*[SLOW] * 4, sla=sla)
    assert slow.breach is not None
    assert after(*[BAD] * 4, sla=sla, start=slow)[1] == [Change.ENDED]


def test_while_it_is_barred_a_probe_may_pass_every_so_often() -> None:
    standing, _ = after(*[BAD] * 10)
    assert standing.breach is not None
    since_ms, every_ms = standing.breach.since_ms, sla_judge.probe_every_ms(SLA)
    assert every_ms == 1_500
    assert sla_judge.is_barred(standing, SLA, now_ms=since_ms + every_ms - 1)
    assert not sla_judge.is_barred(standing, SLA, now_ms=since_ms + every_ms)
    probed = sla_judge.sent(standing, now_ms=since_ms + every_ms)
    assert sla_judge.is_barred(probed, SLA, now_ms=since_ms + every_ms + 1)


def test_a_clock_that_was_set_back_bars_nobody_until_it_is_there_again() -> None:
    """Set back by an hour, it had every call of the workflow refused for an hour."""
    standing, _ = after(*[BAD] * 10)
    assert standing.breach is not None
    earlier_ms = standing.breach.since_ms - 3_600_000
    assert not sla_judge.is_barred(standing, SLA, now_ms=earlier_ms)
    probed = sla_judge.sent(standing, now_ms=earlier_ms)
    assert sla_judge.is_barred(probed, SLA, now_ms=earlier_ms + 1)


def test_an_alarm_bars_nothing_and_without_a_breach_nothing_is_barred() -> None:
    alarm = Sla(component="c", min_success_rate=0.9, min_samples=1)
    standing, _ = after(BAD, sla=alarm)
    assert standing.breach is not None
    assert not sla_judge.is_barred(standing, alarm, now_ms=0)
    assert not sla_judge.is_barred(sla_judge.fresh(SLA), SLA, now_ms=0)


@given(st.integers(1, 50), st.floats(0.5, 1), st.integers(0, 200), st.integers(0, 200))
def test_a_breach_is_exactly_a_quantile_over_the_limit(
    least: int, quantile: float, calls: int, slow: int
) -> None:
    sla = Sla(component="c", max_latency_ms=1, latency_quantile=quantile, min_samples=least)
    slow = min(slow, calls)
    broken = sla_judge.broken_by(sla, Counts(calls=calls, slow=slow))
    assert bool(broken) is (calls >= least and slow / max(1, calls) > 1 - quantile + 1e-9 / calls)


class Judging(RuleBasedStateMachine):
    """Any samples at any time: what a breach may and may not do."""

    @initialize(
        least=st.integers(1, 12),
        success=st.sampled_from([0.0, 0.5, 0.9, 1.0]),
        latency_ms=st.sampled_from([0, 100]),
        fallback=st.sampled_from([0.0, 0.5, 1.0]),
    )
    def begin(self, least: int, success: float, latency_ms: int, fallback: float) -> None:
        self.sla = Sla(
            component="c",
            max_latency_ms=latency_ms,
            min_success_rate=success,
            max_fallback_rate=fallback,
            min_samples=least,
            window_ms=12_000,
        )
        self.standing, self.now_ms = sla_judge.fresh(self.sla), 10**9
        self.since_change = 0

    @rule(failed=st.booleans(), slow=st.booleans(), gap_ms=st.integers(0, 2_000))
    def call(self, failed: bool, slow: bool, gap_ms: int) -> None:
        self.observe(CallSample(failed=failed, slow=slow), gap_ms)

    @rule(count=st.integers(1, 15), gap_ms=st.integers(0, 100))
    def good_calls(self, count: int, gap_ms: int) -> None:
        for _ in range(count):
            self.observe(FINE, gap_ms)

    @rule(fell_back=st.booleans(), gap_ms=st.integers(0, 2_000))
    def session(self, fell_back: bool, gap_ms: int) -> None:
        self.observe(SessionSample(fell_back=fell_back), gap_ms)

    def observe(self, sample: Sample, gap_ms: int) -> None:
        before, self.now_ms = self.standing, self.now_ms + gap_ms
        self.standing, change = sla_judge.observe(
            before, self.sla, sample=sample, now_ms=self.now_ms
        )
        self.since_change += 1
        is_change = (before.breach is None) is not (self.standing.breach is None)
        assert is_change is (change is not None)
        if change is not None:
            assert self.since_change >= self.sla.min_samples, "nothing flaps on a few samples"
            self.since_change = 0
        if change is Change.BEGAN:
            assert sla_judge.broken_by(self.sla, self.standing.window.total)

    @invariant()
    def a_breach_names_what_it_broke(self) -> None:
        breach = getattr(self, "standing", None) and self.standing.breach
        if breach:
            assert breach.broken
            assert sla_judge.told(self.sla, breach)

    @invariant()
    def outside_a_breach_no_demand_is_broken(self) -> None:
        standing = getattr(self, "standing", None)
        if standing and standing.breach is None:
            assert not sla_judge.broken_by(self.sla, standing.window.total)


TestJudging = Judging.TestCase
TestJudging.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
