"""How fast a kind of feedback loses its meaning, fitted to what turned out to be true later.

For each half-life the signals of a session are summed with their weights, and a logistic line from
that sum to the label is fitted; the half-life with the highest likelihood of held-out labels is
taken. Where the likelihood is as good for every half-life - delays that hardly vary, signals that
say nothing - the answer is "not identifiable", not a number. Pure, and the same for the same
samples in any order.
"""

import hashlib
import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from acp_spec.model.enums import Word
from gateway.rewards.decay import weight
from gateway.rewards.logistic import Line, Points, fitted
from gateway.rewards.rules import HOUR_MS

FOLDS: Final = 5
GRID: Final = 40
"""Half-lives that are tried, evenly in logarithm; the interval is as fine as that."""
REACH: Final = 8.0
"""The grid goes from an eighth of a short delay to eight times the longest."""
SAMPLES_MIN: Final = 50
OF_A_LABEL_MIN: Final = 10
CHI_95: Final = 3.841
"""Of one degree of freedom: twice the loss of log-likelihood within a 95 % interval."""
CHI_99: Final = 6.635
SAMPLES_MAX: Final = 20_000
"""More make the interval no finer than the grid and cost a second per thousand."""


class Sample(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One session: signals as (delay in ms, score), and what a trusted source said later.

    `probability`: with which the label was drawn; None where somebody volunteered it."""

    session_id: str
    signals: tuple[tuple[int, float], ...]
    label: bool
    probability: float | None = None


class FitVerdict(Word):
    """What can be said of the half-life."""

    FITTED = "FITTED"
    AT_LEAST = "AT_LEAST"  # no fading at all is as likely
    AT_MOST = "AT_MOST"  # shorter than any delay that was seen is as likely
    NOT_IDENTIFIABLE = "NOT_IDENTIFIABLE"


class DecayFit(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`half_life_hours` and the 95 % interval from `lower_hours` to `upper_hours`; null: for ever.

    `gain`: log-likelihood of a held-out label, on average, over that without any fading."""

    verdict: FitVerdict
    reason: str = ""
    half_life_hours: float | None = None
    lower_hours: float | None = None
    upper_hours: float | None = None
    gain: float = 0.0
    samples: int = 0
    effective: float = 0.0
    drawn_only: bool = False
    delay_hours: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """The tenth, the half and nine tenths of delays are shorter than these."""


def fit(found: Iterable[Sample]) -> DecayFit:
    """The half-life of the signals in these samples."""
    samples = _used(found)
    delays = sorted(delay for one in samples for delay, _ in one.signals)
    about = DecayFit(
        verdict=FitVerdict.NOT_IDENTIFIABLE,
        samples=len(samples),
        drawn_only=bool(samples) and samples[0].probability is not None,
        delay_hours=_deciles(delays),
    )
    good = sum(one.label for one in samples)
    if len(samples) < SAMPLES_MIN or min(good, len(samples) - good) < OF_A_LABEL_MIN:
        reason = f"{len(samples)} labelled sessions with signals, {good} of them good: at least"
        reason += f" {SAMPLES_MIN} are needed, and {OF_A_LABEL_MIN} of each label"
        return msgspec.structs.replace(about, reason=reason)
    weights = _weights(samples)
    about = msgspec.structs.replace(about, effective=math.fsum(weights))
    return _judged(about, _Search(samples, weights, half_lives=_grid(delays)))


def _used(found: Iterable[Sample]) -> list[Sample]:
    """Drawn labels if there are any, else all; of very many a subset that depends on ids alone."""
    with_signals = [one for one in found if one.signals]
    drawn = [one for one in with_signals if one.probability is not None]
    samples = sorted(drawn or with_signals, key=lambda one: (_hash(one.session_id), one.session_id))
    return samples[:SAMPLES_MAX]


def _weights(samples: Sequence[Sample]) -> list[float]:
    """Inverse probabilities, scaled so that they sum to the number of equal samples they are
    worth: else a few rare ones would make the interval look narrower than it is."""
    raw = [1.0 if one.probability is None else 1.0 / one.probability for one in samples]
    total = math.fsum(raw)
    scale = total / math.fsum(value * value for value in raw)
    return [value * scale for value in raw]


def _grid(delays: Sequence[int]) -> list[float | None]:
    """Half-lives in ms, shortest first, for ever last."""
    shortest = max(1.0, delays[len(delays) // 20] / REACH)
    longest = max(shortest * REACH, delays[-1] * REACH)
    ratio = (longest / shortest) ** (1 / (GRID - 1))
    return [*(shortest * ratio**number for number in range(GRID)), None]


@dataclass(frozen=True, slots=True)
class _Tried:
    half_life_ms: float | None
    held_out: float
    likelihood: float


class _Search:
    """All half-lives of a grid, with the likelihood that each gives to the labels."""

    def __init__(
        self, samples: Sequence[Sample], weights: Sequence[float], *, half_lives: list[float | None]
    ) -> None:
        scores = [score for one in samples for _, score in one.signals]
        self._mean = math.fsum(scores) / len(scores)
        self._samples = samples
        self._weights = weights
        self._folds = [_hash(one.session_id) % FOLDS for one in samples]
        self._ys = [int(one.label) for one in samples]
        zeros = self._points([0.0] * len(samples))
        self.without_signals = fitted(zeros, Line()).likelihood(zeros)
        self.tried = list(self._all(half_lives))

    def _all(self, half_lives: list[float | None]) -> Iterable[_Tried]:
        lines = [Line()] * (FOLDS + 1)
        for half_life_ms in half_lives:
            xs = self._figures(half_life_ms)
            whole = self._points(xs)
            lines[FOLDS] = fitted(whole, lines[FOLDS])
            held_out = 0.0
            for fold in range(FOLDS):
                lines[fold] = fitted(self._points(xs, beside=fold), lines[fold])
                held_out += lines[fold].likelihood(self._points(xs, only=fold))
            yield _Tried(half_life_ms, held_out, lines[FOLDS].likelihood(whole))

    def _figures(self, half_life_ms: float | None) -> list[float]:
        """Each session's summed signals, scaled to size 1 so that the prior means the same."""
        sums = [
            math.fsum((s - self._mean) * weight(delay, half_life_ms) for delay, s in one.signals)
            for one in self._samples
        ]
        size = math.sqrt(math.fsum(x * x for x in sums) / len(sums))
        return [x / size for x in sums] if size > 0 else sums

    def _points(
        self, xs: Sequence[float], *, beside: int | None = None, only: int | None = None
    ) -> Points:
        chosen = [fold != beside and (only is None or fold == only) for fold in self._folds]
        return Points(
            list(itertools.compress(xs, chosen)),
            list(itertools.compress(self._ys, chosen)),
            list(itertools.compress(self._weights, chosen)),
        )


def _judged(about: DecayFit, search: _Search) -> DecayFit:
    best = max(search.tried, key=lambda one: one.held_out)
    top = max(one.likelihood for one in search.tried)
    if 2 * (top - search.without_signals) < CHI_99:
        return msgspec.structs.replace(about, reason="the signals say nothing of the labels")
    floor = top - CHI_95 / 2
    inside = [n for n, one in enumerate(search.tried) if one.likelihood >= floor]
    shortest_too = inside[0] == 0
    for_ever_too = inside[-1] >= len(search.tried) - 2  # eight times the longest delay is for ever
    if shortest_too and for_ever_too:
        low, _, high = about.delay_hours
        reason = "every half-life explains the labels as well: delays hardly vary"
        reason += f" (from {low:.3g} to {high:.3g} h in four of five cases), or samples are too few"
        return msgspec.structs.replace(about, reason=reason)
    return msgspec.structs.replace(
        about,
        verdict=_verdict(shortest_too=shortest_too, for_ever_too=for_ever_too),
        half_life_hours=_hours(best.half_life_ms),
        lower_hours=0.0
        if shortest_too
        else _crossing(search.tried, inside[0], step=-1, floor=floor),
        upper_hours=None
        if for_ever_too
        else _crossing(search.tried, inside[-1], step=1, floor=floor),
        gain=(best.held_out - search.tried[-1].held_out) / about.effective,
    )


def _crossing(tried: Sequence[_Tried], at: int, *, step: int, floor: float) -> float:
    """Hours at which the likelihood falls to the floor, between two half-lives of the grid."""
    inner, outer = tried[at], tried[at + step]
    assert inner.half_life_ms is not None, "for ever is told apart"
    assert outer.half_life_ms is not None, "for ever is told apart"
    share = (inner.likelihood - floor) / (inner.likelihood - outer.likelihood)
    ratio = math.log(outer.half_life_ms / inner.half_life_ms)
    return inner.half_life_ms * math.exp(ratio * share) / HOUR_MS


def _verdict(*, shortest_too: bool, for_ever_too: bool) -> FitVerdict:
    if for_ever_too:
        return FitVerdict.AT_LEAST
    return FitVerdict.AT_MOST if shortest_too else FitVerdict.FITTED


def _hours(half_life_ms: float | None) -> float | None:
    return None if half_life_ms is None else half_life_ms / HOUR_MS


def _deciles(delays: Sequence[int]) -> tuple[float, float, float]:
    if not delays:
        return (0.0, 0.0, 0.0)
    last = len(delays) - 1
    low, middle, high = (delays[last * tenth // 10] / HOUR_MS for tenth in (1, 5, 9))
    return (low, middle, high)


def _hash(session_id: str) -> int:
    """The same everywhere; ids begin with a time, so their own order would fold by time."""
    return int.from_bytes(hashlib.sha256(session_id.encode()).digest()[:8], "big")
