"""What the samples of a stage say about the candidate: one verdict per metric, with its evidence.

`METRICS` is the table of what is judged and where. Each verdict is WORSE (harm beyond the margin is
proven), FINE (harm beyond the margin is ruled out) or OPEN; its intervals hold at all times, so it
may be asked after every sample. The error probability of the rollout is shared out evenly over
stages, metrics and arms (Bonferroni), so the chance of any false alarm stays under `alpha`.
"""

import enum
import math
from collections.abc import Callable
from typing import Final

import msgspec

from gateway.governance.rollout_spec import BESIDE, ORDER, RolloutSpec, Stage
from gateway.governance.sequential import (
    Interval,
    Mean,
    Rate,
    Spread,
    mean_interval,
    quantile_interval,
    rate_interval,
)


class Arm(enum.Enum):
    BASELINE = "BASELINE"
    CANDIDATE = "CANDIDATE"


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """One session that ended. `work_ms`: its time without waiting for the gateway's admission;
    `reward`: as the rule takes it, None where nobody gave one."""

    succeeded: bool
    fell_back: bool
    work_ms: float
    reward: float | None = None


class ArmStats(msgspec.Struct, frozen=True, kw_only=True):
    """What an arm's sessions came to."""

    success: Rate = Rate()
    fallback: Rate = Rate()
    latency: Spread = Spread()
    reward: Mean = Mean()

    def plus(self, sample: Sample, *, alpha: float) -> "ArmStats":
        """Rewards in 0..1. Latency counts sessions that succeeded: failing fast is no merit."""
        timed = sample.succeeded
        judged = sample.reward
        return ArmStats(
            success=self.success.plus(sample.succeeded),
            fallback=self.fallback.plus(sample.fell_back),
            latency=self.latency.plus(sample.work_ms) if timed else self.latency,
            reward=self.reward if judged is None else self.reward.plus(judged, alpha=alpha),
        )


EXAMPLES_MAX: Final = 5
"""Pairs that a person may look at; more of the same say nothing new."""


class Example(msgspec.Struct, frozen=True, kw_only=True):
    """A session and its twin that came to something else, and what: FAILED, DIFFERS, UNCOVERED."""

    primary: str
    twin: str
    what: str


class StageStats(msgspec.Struct, frozen=True, kw_only=True):
    """`differs`: twins whose output was another; `uncovered`: twins that wanted what the primary's
    record does not have; `dropped`: twins that the gateway had no room for; `deviated`: sessions
    of the candidate's arm that something else served."""

    baseline: ArmStats = ArmStats()
    candidate: ArmStats = ArmStats()
    differs: Rate = Rate()
    uncovered: Rate = Rate()
    fields: dict[str, int] = {}
    examples: tuple[Example, ...] = ()
    dropped: int = 0
    deviated: int = 0


class Outcome(enum.Enum):
    WORSE = "WORSE"
    FINE = "FINE"
    OPEN = "OPEN"


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """One metric's verdict and what it needed: samples per arm, figures, intervals, the test.

    `limit`: how far the candidate's figure may go, given the baseline's, as it is now. `strained`:
    the candidate's figure itself is beyond it, proven or not."""

    metric: str
    outcome: Outcome
    test: str
    alpha: float
    baseline_samples: int
    candidate_samples: int
    baseline: float
    candidate: float
    baseline_interval: Interval
    candidate_interval: Interval
    limit: float
    strained: bool = False
    prove: bool = False


def arm_alpha(spec: RolloutSpec) -> float:
    """The error probability of one arm of one metric in one stage."""
    return spec.alpha / len(ORDER) / len(METRICS) / len(Arm)


def judged(spec: RolloutSpec, stage: Stage, *, stats: StageStats) -> tuple[Verdict, ...]:
    """Every metric of this stage that is declared."""
    found = [judge(spec, stats) for judge, stages in METRICS if stage in stages]
    return tuple(verdict for verdict in found if verdict is not None)


def normal_reward(spec: RolloutSpec, value: float | None) -> float | None:
    """A reward as its test needs it: in 0..1."""
    rule = spec.reward
    if rule is None or value is None or not math.isfinite(value):
        return None
    return (min(max(value, rule.low), rule.high) - rule.low) / (rule.high - rule.low)


class _Seen(msgspec.Struct, frozen=True, kw_only=True):
    """One arm's figure with its interval; `better`: +1 where more is better, -1 where less is."""

    samples: int
    figure: float
    interval: Interval


def _verdict(
    metric: str, pair: tuple[_Seen, _Seen], *, test: str, margin: Callable[[float], float], up: bool
) -> Verdict:
    """Compare both arms. `margin(figure)`: the worst that is allowed when the baseline's is so."""
    baseline, candidate = pair
    worst, best = (candidate.interval.low, candidate.interval.high)
    if up:
        is_worse = best < margin(baseline.interval.low)
        is_fine = worst >= margin(baseline.interval.high)
        strained = candidate.figure < margin(baseline.figure)
    else:
        is_worse = worst > margin(baseline.interval.high)
        is_fine = best <= margin(baseline.interval.low)
        strained = candidate.figure > margin(baseline.figure)
    compared = min(baseline.samples, candidate.samples) > 0
    proven = Outcome.WORSE if is_worse else Outcome.FINE if is_fine else Outcome.OPEN
    return Verdict(
        metric=metric,
        outcome=proven,
        test=test,
        alpha=0.0,
        baseline_samples=baseline.samples,
        candidate_samples=candidate.samples,
        baseline=baseline.figure,
        candidate=candidate.figure,
        baseline_interval=baseline.interval,
        candidate_interval=candidate.interval,
        limit=margin(baseline.figure),
        strained=compared and strained,
    )


RATES: Final = "beta-binomial mixture confidence sequence per arm"
QUANTILES: Final = "quantile confidence sequence per arm"
MEANS: Final = "empirical Bernstein confidence sequence per arm"
ONE_RATE: Final = "beta-binomial mixture confidence sequence against a fixed share"


def _with(verdict: Verdict, spec: RolloutSpec, *, prove: bool) -> Verdict:
    return msgspec.structs.replace(verdict, alpha=arm_alpha(spec), prove=prove)


def _rate(rate: Rate, alpha: float) -> _Seen:
    return _Seen(samples=rate.total, figure=rate.share, interval=rate_interval(rate, alpha))


def _success(spec: RolloutSpec, stats: StageStats) -> Verdict | None:
    rule, alpha = spec.success, arm_alpha(spec)
    if rule is None:
        return None
    margin = rule.margin
    pair = (_rate(stats.baseline.success, alpha), _rate(stats.candidate.success, alpha))
    found = _verdict("success", pair, test=RATES, margin=lambda rate: rate - margin, up=True)
    return _with(found, spec, prove=rule.prove)


def _fallback(spec: RolloutSpec, stats: StageStats) -> Verdict | None:
    rule, alpha = spec.fallback, arm_alpha(spec)
    if rule is None:
        return None
    margin = rule.margin
    pair = (_rate(stats.baseline.fallback, alpha), _rate(stats.candidate.fallback, alpha))
    found = _verdict("fallback", pair, test=RATES, margin=lambda rate: rate + margin, up=False)
    return _with(found, spec, prove=rule.prove)


def _latency(spec: RolloutSpec, stats: StageStats) -> Verdict | None:
    rule, alpha = spec.latency, arm_alpha(spec)
    if rule is None:
        return None
    share, factor, slack_ms = rule.quantile, 1 + rule.margin, rule.slack_ms

    def seen(spread: Spread) -> _Seen:
        interval = quantile_interval(spread, share, alpha=alpha)
        return _Seen(samples=spread.total, figure=spread.quantile(share), interval=interval)

    pair = (seen(stats.baseline.latency), seen(stats.candidate.latency))
    found = _verdict(
        "latency", pair, test=QUANTILES, margin=lambda ms: ms * factor + slack_ms, up=False
    )
    return _with(found, spec, prove=rule.prove)


def _reward(spec: RolloutSpec, stats: StageStats) -> Verdict | None:
    """Figures in the reward's own unit; the test ran on 0..1."""
    rule, alpha = spec.reward, arm_alpha(spec)
    if rule is None:
        return None
    low, width, margin = rule.low, rule.high - rule.low, rule.margin

    def seen(mean: Mean) -> _Seen:
        interval = mean_interval(mean, alpha)
        own = Interval(low + width * interval.low, low + width * interval.high)
        return _Seen(samples=mean.total, figure=low + width * mean.mean, interval=own)

    pair = (seen(stats.baseline.reward), seen(stats.candidate.reward))
    found = _verdict("reward", pair, test=MEANS, margin=lambda mean: mean - margin, up=True)
    rewarded = min(one.samples for one in pair) > 0
    return _with(found, spec, prove=rule.prove) if rewarded else None


def _one_rate(spec: RolloutSpec, metric: str, *, rate: Rate, most: float) -> Verdict:
    """A share of the twins against what was declared: there is no second arm."""
    declared = _Seen(samples=rate.total, figure=most, interval=Interval(most, most))
    pair = (declared, _rate(rate, arm_alpha(spec)))
    return _verdict(metric, pair, test=ONE_RATE, margin=lambda share: share, up=False)


def _output(spec: RolloutSpec, stats: StageStats) -> Verdict | None:
    rule = spec.output
    if rule is None:
        return None
    found = _one_rate(spec, "output", rate=stats.differs, most=rule.most)
    return _with(found, spec, prove=rule.prove)


def _uncovered(spec: RolloutSpec, stats: StageStats) -> Verdict | None:
    rule = spec.uncovered
    if rule is None:
        return None
    found = _one_rate(spec, "uncovered", rate=stats.uncovered, most=rule.most)
    return _with(found, spec, prove=rule.prove)


Judge = Callable[[RolloutSpec, StageStats], Verdict | None]
EVERYWHERE: Final = frozenset(ORDER)
METRICS: Final[tuple[tuple[Judge, frozenset[Stage]], ...]] = (
    (_success, EVERYWHERE),
    (_fallback, EVERYWHERE),
    (_latency, EVERYWHERE),
    (_reward, EVERYWHERE),
    (_output, frozenset({Stage.SHADOW})),
    (_uncovered, BESIDE),
)
