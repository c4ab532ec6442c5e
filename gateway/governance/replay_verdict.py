"""Recorded sessions and the same sessions on another combination of versions: paired, end to end.

Every figure is a difference within pairs, with a 95% interval, against a limit that was given. It
passes by the figure itself; `strict` asks the interval's worse end, which needs many pairs.
- Rates: the adjusted Wald interval of a difference of paired proportions (A. Agresti, Y. Min,
  "Simple improved confidence intervals for comparing matched proportions", Stat. Med. 24, 2005).
- One rate: Wilson's interval. Times: the median of the ratios, with the sign test's interval.
"""

import math
from collections.abc import Sequence
from typing import Final

import msgspec

from gateway.governance.comparison import counted
from gateway.governance.rollout_judging import Sample
from gateway.governance.sequential import UNBOUNDED, Interval

Z: Final = 1.959964
"""Of a 95% interval."""


class ReplayedPair(msgspec.Struct, frozen=True, kw_only=True):
    """One recorded session and its replay. `calls`: how many each made."""

    recorded: Sample
    replayed: Sample
    calls: tuple[int, int]
    fields: tuple[str, ...] = ()
    uncovered: bool = False


class ReplayLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How far each figure may go; times and calls relative, the others absolute. The slack is on
    top of the recorded time, because a rise of a call of one millisecond says little."""

    success_drop: float = 0.0
    fallback_rise: float = 0.0
    latency_rise: float = 0.25
    latency_slack_ms: float = 10.0
    calls_rise: float = 0.25
    equal_least: float = 0.99
    uncovered_most: float = 0.10
    strict: bool = False


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """One figure: both sides, their difference with its interval, the limit, and the verdict."""

    name: str
    recorded: float
    replayed: float
    difference: float
    interval: Interval
    limit: float
    passed: bool


class ReplayVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """All figures. `pairs` were compared; those that were uncovered count for that figure alone."""

    passed: bool
    pairs: int
    uncovered: int
    figures: dict[str, Figure]
    fields: dict[str, int] = {}


def verdict(pairs: Sequence[ReplayedPair], limits: ReplayLimits) -> ReplayVerdict:
    """What the pairs say; nothing at all to compare is no pass."""
    covered = [pair for pair in pairs if not pair.uncovered]
    both = [pair for pair in covered if pair.recorded.succeeded and pair.replayed.succeeded]
    figures = (
        _success(covered, limits),
        _fallback(covered, limits),
        _equality(both, limits),
        _ratio(
            "latency",
            [_times(pair) for pair in both],
            limit=limits.latency_rise,
            slack=limits.latency_slack_ms,
        ),
        _ratio("calls", [_calls(pair) for pair in covered], limit=limits.calls_rise, slack=0.0),
        _coverage(pairs, limits),
    )
    judged = {figure.name: _judged(figure, strict=limits.strict) for figure in figures}
    fields: dict[str, int] = {}
    for pair in both:
        fields = counted(fields, pair.fields)
    return ReplayVerdict(
        passed=bool(covered) and all(figure.passed for figure in judged.values()),
        pairs=len(covered),
        uncovered=len(pairs) - len(covered),
        figures=judged,
        fields=fields,
    )


HIGHER_IS_BETTER: Final = frozenset({"success", "equal"})


def _judged(figure: Figure, *, strict: bool) -> Figure:
    """Whether it keeps its limit."""
    up = figure.name in HIGHER_IS_BETTER
    bad_end = figure.interval.low if up else figure.interval.high
    shown = bad_end if strict else figure.difference
    return msgspec.structs.replace(
        figure, passed=shown >= figure.limit if up else shown <= figure.limit
    )


def _success(pairs: list[ReplayedPair], limits: ReplayLimits) -> Figure:
    found = [(pair.recorded.succeeded, pair.replayed.succeeded) for pair in pairs]
    return _rates("success", found, limit=-limits.success_drop)


def _fallback(pairs: list[ReplayedPair], limits: ReplayLimits) -> Figure:
    found = [(pair.recorded.fell_back, pair.replayed.fell_back) for pair in pairs]
    return _rates("fallback", found, limit=limits.fallback_rise)


def _rates(name: str, pairs: list[tuple[bool, bool]], *, limit: float) -> Figure:
    count = len(pairs)
    before, after = sum(one for one, _ in pairs), sum(other for _, other in pairs)
    lost = sum(one and not other for one, other in pairs) + 0.5
    won = sum(other and not one for one, other in pairs) + 0.5
    total = count + 2
    middle = (won - lost) / total
    reach = Z * math.sqrt(max(0.0, won + lost - (won - lost) ** 2 / total)) / total
    return Figure(
        name=name,
        recorded=before / count if count else 0.0,
        replayed=after / count if count else 0.0,
        difference=(after - before) / count if count else 0.0,
        interval=Interval(max(-1.0, middle - reach), min(1.0, middle + reach)),
        limit=limit,
        passed=False,
    )


def _equality(pairs: list[ReplayedPair], limits: ReplayLimits) -> Figure:
    equal = sum(not pair.fields for pair in pairs)
    return _share("equal", equal, total=len(pairs), recorded=1.0, limit=limits.equal_least)


def _coverage(pairs: Sequence[ReplayedPair], limits: ReplayLimits) -> Figure:
    uncovered = sum(pair.uncovered for pair in pairs)
    return _share(
        "uncovered", uncovered, total=len(pairs), recorded=0.0, limit=limits.uncovered_most
    )


def _share(name: str, hits: int, *, total: int, recorded: float, limit: float) -> Figure:
    """Wilson's interval; of no pairs the recorded figure with an interval that says nothing."""
    if not total:
        whole = Interval(0.0, 1.0)
        return _figure(name, (recorded, recorded), difference=recorded, interval=whole, limit=limit)
    share, factor = hits / total, Z * Z / total
    middle = (share + factor / 2) / (1 + factor)
    reach = Z / (1 + factor) * math.sqrt(share * (1 - share) / total + factor / 4 / total)
    interval = Interval(max(0.0, middle - reach), min(1.0, middle + reach))
    return _figure(name, (recorded, share), difference=share, interval=interval, limit=limit)


def _times(pair: ReplayedPair) -> tuple[float, float]:
    return pair.recorded.work_ms, pair.replayed.work_ms


def _calls(pair: ReplayedPair) -> tuple[float, float]:
    return float(pair.calls[0]), float(pair.calls[1])


def _ratio(name: str, pairs: list[tuple[float, float]], *, limit: float, slack: float) -> Figure:
    """How much longer (or more) the middle pair is; one is added so that nothing is no problem."""
    ratios = sorted((after + 1) / (before + slack + 1) - 1 for before, after in pairs)
    if not ratios:
        return _figure(
            name, (0.0, 0.0), difference=0.0, interval=Interval(-1.0, UNBOUNDED), limit=limit
        )
    before, after = (_median(sorted(side)) for side in zip(*pairs, strict=True))
    count = len(ratios)
    edge = max(0, math.floor((count - Z * math.sqrt(count)) / 2))
    interval = Interval(ratios[edge], ratios[count - 1 - edge])
    return _figure(
        name, (before, after), difference=_median(ratios), interval=interval, limit=limit
    )


def _median(values: Sequence[float]) -> float:
    half = len(values) // 2
    return values[half] if len(values) % 2 else (values[half - 1] + values[half]) / 2


def _figure(
    name: str,
    sides: tuple[float, float],
    *,
    difference: float,
    interval: Interval,
    limit: float,
) -> Figure:
    return Figure(
        name=name,
        recorded=sides[0],
        replayed=sides[1],
        difference=difference,
        interval=interval,
        limit=limit,
        passed=False,
    )
