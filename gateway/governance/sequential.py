"""Tests that may be looked at after every sample: confidence sequences, pure and small.

A fixed-size test that is looked at daily raises false alarms far over its level; a confidence
sequence holds at all times at once, so that a rollout may stop whenever it knows enough.
- Rates: the beta-binomial mixture martingale with Jeffreys' prior (H. Robbins, Ann. Math. Stat. 41,
  1970; S. Howard, A. Ramdas, J. McAuliffe, J. Sekhon, Ann. Stat. 49(2), 2021; the mSPRT of
  R. Johari et al., Oper. Res. 70(3), 2022, is its normal sibling). Exact at every n (Ville).
- Quantiles: the same martingale over `value <= x` (S. Howard, A. Ramdas, "Sequential estimation of
  quantiles with applications to A/B testing", Bernoulli 28(3), 2022). No shape is assumed.
- Bounded means: the predictable plug-in empirical Bernstein sequence (I. Waudby-Smith, A. Ramdas,
  "Estimating means of bounded random variables by betting", J. R. Stat. Soc. B 86(1), 2024).
"""

import math
from collections.abc import Callable

import msgspec

PRIOR = 0.5
"""Jeffreys' prior: pays half as much for an unknown rate as a flat one, most of it near 0 and 1."""

BINS_PER_DOUBLING = 16
"""Bins of a `Spread`, 4.4% apart: finer than any margin of latency that somebody would declare."""

BETS_MAX = 0.5
"""Bound of the bets in `Mean`, as its authors recommend."""

UNBOUNDED = 1e15
"""Upper end of a quantile that nothing bounds yet: finite, because JSON has no infinity."""

_LOG_BETA_PRIOR = 2 * math.lgamma(PRIOR) - math.lgamma(2 * PRIOR)
_STEPS = 48


class Interval(msgspec.Struct, frozen=True):
    """What the true value is within, with the error probability that was asked for."""

    low: float
    high: float


class Rate(msgspec.Struct, frozen=True, kw_only=True):
    """How many of so many."""

    hits: int = 0
    total: int = 0

    @property
    def share(self) -> float:
        """The share seen; 0 of nothing."""
        return self.hits / self.total if self.total else 0.0

    def plus(self, hit: bool) -> "Rate":
        return Rate(hits=self.hits + hit, total=self.total + 1)


def log_evidence(rate: Rate, p: float) -> float:
    """Log of the mixture martingale against the rate `p`: over log(1/alpha) it is refuted."""
    hits, misses = rate.hits, rate.total - rate.hits
    return _log_mixture(hits, misses) - _log_likelihood(hits, misses, p=p)


def _log_mixture(hits: int, misses: int) -> float:
    joined = math.lgamma(hits + misses + 2 * PRIOR)
    return math.lgamma(hits + PRIOR) + math.lgamma(misses + PRIOR) - joined - _LOG_BETA_PRIOR


def _log_likelihood(hits: int, misses: int, *, p: float) -> float:
    if (hits and p <= 0.0) or (misses and p >= 1.0):
        return -math.inf
    of_hits = hits * math.log(p) if hits else 0.0
    return of_hits + (misses * math.log1p(-p) if misses else 0.0)


def rate_interval(rate: Rate, alpha: float) -> Interval:
    """The rates that are not refuted at level `alpha`, at any time."""
    if not rate.total:
        return Interval(0.0, 1.0)
    hits, misses = rate.hits, rate.total - rate.hits
    mixture, bar = _log_mixture(hits, misses), math.log(1 / alpha)

    def is_refuted(p: float) -> bool:
        return mixture - _log_likelihood(hits, misses, p=p) >= bar

    seen = rate.share
    low = _edge(is_refuted, out=0.0, inside=seen) if is_refuted(0.0) else 0.0
    high = _edge(is_refuted, out=1.0, inside=seen) if is_refuted(1.0) else 1.0
    return Interval(low, high)


def _edge(is_refuted: Callable[[float], bool], *, out: float, inside: float) -> float:
    """The border between a refuted and a kept rate, on the refuted side: the interval is safe."""
    for _ in range(_STEPS):
        middle = (out + inside) / 2
        if is_refuted(middle):
            out = middle
        else:
            inside = middle
    return out


class Spread(msgspec.Struct, frozen=True, kw_only=True):
    """Values over 0 by logarithmic bins; counts at the bins' edges are exact, so tests are too."""

    bins: dict[int, int] = {}
    total: int = 0

    def plus(self, value: float) -> "Spread":
        place = bin_of(value)
        return Spread(bins={**self.bins, place: self.bins.get(place, 0) + 1}, total=self.total + 1)

    def quantile(self, share: float) -> float:
        """Upper edge of the bin that this share of the values reaches; 0 of nothing."""
        reached = 0
        for place, count in sorted(self.bins.items()):
            reached += count
            if reached >= share * self.total:
                return edge_of(place)
        return 0.0


def bin_of(value: float) -> int:
    """The bin whose upper edge is the first that is not under `value`."""
    return 0 if value <= 1.0 else math.ceil(math.log2(value) * BINS_PER_DOUBLING)


def edge_of(place: int) -> float:
    """The upper edge of a bin."""
    return math.exp2(place / BINS_PER_DOUBLING)


def quantile_interval(spread: Spread, share: float, *, alpha: float) -> Interval:
    """Where the quantile lies: over every edge that surely too few values reach, up to the first
    that surely enough do."""
    low, high, reached = 0.0, UNBOUNDED, 0
    bar = math.log(1 / alpha)

    def surely(side: Callable[[float], bool]) -> bool:
        below = Rate(hits=reached, total=spread.total)
        return side(below.share) and log_evidence(below, share) >= bar

    for place, count in sorted(spread.bins.items()):
        if place and surely(lambda seen: seen < share):
            low = edge_of(place - 1)
        reached += count
        if surely(lambda seen: seen > share):
            high = edge_of(place)
            break
    return Interval(low, high)


class Mean(msgspec.Struct, frozen=True, kw_only=True):
    """The running sums of the empirical Bernstein sequence over values in 0..1."""

    total: int = 0
    sum: float = 0.0
    deviation: float = 0.0
    bets: float = 0.0
    bet_sum: float = 0.0
    cost: float = 0.0

    @property
    def mean(self) -> float:
        """The mean seen; 0 of nothing."""
        return self.sum / self.total if self.total else 0.0

    def plus(self, value: float, *, alpha: float) -> "Mean":
        """One more value in 0..1. `alpha` must be the same for all values of one sequence."""
        number = self.total + 1
        before = (0.5 + self.sum) / (self.total + 1)
        variance = (0.25 + self.deviation) / (self.total + 1)
        scale = variance * number * math.log1p(number)
        bet = min(BETS_MAX, math.sqrt(2 * math.log(2 / alpha) / scale))
        after = (0.5 + self.sum + value) / (number + 1)
        surprise = 4 * (value - before) ** 2
        return Mean(
            total=number,
            sum=self.sum + value,
            deviation=self.deviation + (value - after) ** 2,
            bets=self.bets + bet,
            bet_sum=self.bet_sum + bet * value,
            cost=self.cost + surprise * (-math.log1p(-bet) - bet) / 4,
        )


def mean_interval(mean: Mean, alpha: float) -> Interval:
    """Where the true mean lies, at any time; `alpha` as it was given to `Mean.plus`."""
    if not mean.total:
        return Interval(0.0, 1.0)
    middle = mean.bet_sum / mean.bets
    reach = (math.log(2 / alpha) + mean.cost) / mean.bets
    return Interval(max(0.0, middle - reach), min(1.0, middle + reach))
