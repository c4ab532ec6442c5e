"""How much of the change of the mean reward between two windows is due to which component.

The parts are Shapley values of the game in `game.py`; with what only uncovered sessions show they
sum to the whole change. Below `Asking.coverage_least` nothing is told: parts of a few sessions that
happen to be alike would look like parts of all. Chance (resamples, orders) comes in.
"""

import enum
import math
from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from gateway.engine.finite_mean import mean_of
from gateway.insight import shapley
from gateway.insight.game import Game
from gateway.insight.histories import WINDOWS, Histories, Path, Vector, paths_of
from gateway.insight.mechanisms import INPUTS, JUDGING, WORKFLOW, Mechanisms, mechanisms
from gateway.insight.samples import SessionSample

STEPS_MAX = 200
"""Steps of a session that is taken in; each is some frames of the walk's stack."""


class PartKind(enum.Enum):
    """What a part of the change is due to."""

    COMPONENT = "COMPONENT"
    INPUTS = "INPUTS"
    WORKFLOW = "WORKFLOW"
    JUDGING = "JUDGING"
    UNCOVERED = "UNCOVERED"


_KINDS = {INPUTS: PartKind.INPUTS, WORKFLOW: PartKind.WORKFLOW, JUDGING: PartKind.JUDGING}


class Asking(msgspec.Struct, frozen=True, kw_only=True):
    """`chain`: each step is all that later ones and the reward depend on. Up to `exact_components`
    that may matter all coalitions are walked, beyond them `order_pairs` orders and reverses."""

    coverage_least: float = 0.8
    resamples: int = 200
    exact_components: int = 8
    order_pairs: int = 50
    chain: bool = False


class Span(msgspec.Struct, frozen=True):
    """Where 95% of the resamples lie."""

    low: float
    high: float


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """One part of the change. What is due to uncovered sessions is known as a rest only."""

    name: str
    kind: PartKind
    value: float
    span: Span | None = None


class WindowMean(msgspec.Struct, frozen=True, kw_only=True):
    """One window: sessions with a reward, their mean, those without one, those not walked.
    `coverage` is an upper bound where nothing is told: walking stops once it is too little."""

    sessions: int
    mean: float
    unrewarded: int = 0
    too_long: int = 0
    coverage: float = 0.0


class Contribution(msgspec.Struct, frozen=True, kw_only=True):
    """The whole change and its parts, which sum to it; no parts where it was `refused`.

    `variance`: of the components' contributions, less what the estimator's own noise adds to it
    (so it may fall under 0); None with fewer than two components.
    """

    baseline: WindowMean
    new: WindowMean
    change: float
    span: Span = Span(0.0, 0.0)
    coverage: float = 0.0
    exact: bool = True
    parts: tuple[Part, ...] = ()
    variance: float | None = None
    refused: str = ""


def contribution(
    baseline: Sequence[SessionSample],
    new: Sequence[SessionSample],
    *,
    chance: np.random.Generator,
    asking: Asking | None = None,
) -> Contribution:
    """The parts of the change of the mean reward from `baseline` to `new`."""
    asking = asking or Asking()
    windows = [_usable(one) for one in (baseline, new)]
    means = [_mean(given, used) for given, used in zip((baseline, new), windows, strict=True)]
    change = means[1].mean - means[0].mean
    if not all(windows):
        why = "a window has no session with a reward"
        return Contribution(baseline=means[0], new=means[1], change=0.0, refused=why)
    histories = Histories(chain=asking.chain)
    alike = [Counter(one) for one in windows]
    windows = [list(one) for one in alike]
    draws = [_draws(list(one.values()), asking.resamples, chance=chance) for one in alike]
    paths = [paths_of(windows[one], histories, window=one, draws=draws[one]) for one in WINDOWS]
    tables = mechanisms(paths, windows, histories=histories)
    orders = _orders(tables, asking, chance=chance)
    game = Game(tables, paths)
    coalitions = (
        shapley.coalitions_of(orders) if orders else shapley.all_coalitions(len(tables.players))
    )
    covered = game.covers(coalitions, enough=asking.coverage_least)
    coverages = [game.coverage(one, covered[one]) for one in WINDOWS]
    means = [
        msgspec.structs.replace(mean, coverage=coverage)
        for mean, coverage in zip(means, coverages, strict=True)
    ]
    found = Contribution(
        baseline=means[0],
        new=means[1],
        change=change,
        span=_span(_means(paths[1]) - _means(paths[0])) or Span(change, change),
        coverage=min(coverages),
        exact=not orders,
    )
    if not found.coverage or found.coverage < asking.coverage_least:
        return msgspec.structs.replace(found, refused=_too_little(found, asking))
    values = {one: game.value(one, covered) for one in coalitions}
    shares = (
        shapley.over_orders(values.__getitem__, orders)
        if orders
        else shapley.exact(values.__getitem__, len(tables.players))
    )
    by_player = dict(zip(tables.players, shares, strict=True))
    return _told(found, by_player, components=set(tables.player_of.values()))


def _usable(sessions: Sequence[SessionSample]) -> list[SessionSample]:
    return [one for one in sessions if one.reward is not None and len(one.steps) <= STEPS_MAX]


def _mean(given: Sequence[SessionSample], used: Sequence[SessionSample]) -> WindowMean:
    rewards = [one.reward for one in used if one.reward is not None]
    return WindowMean(
        sessions=len(used),
        mean=mean_of(rewards) if rewards else 0.0,
        unrewarded=sum(one.reward is None for one in given),
        too_long=sum(one.reward is not None and len(one.steps) > STEPS_MAX for one in given),
    )


def _draws(counts: Sequence[int], resamples: int, *, chance: np.random.Generator) -> Vector:
    """Per kind of session how often it is in the records, and in each resample of as many: drawn by
    kind, so that a hundred thousand sessions of a few kinds are a few numbers."""
    seen = np.array(counts, dtype=np.float64)
    drawn = chance.multinomial(sum(counts), seen / seen.sum(), size=resamples)
    return np.vstack([seen, drawn]).T.copy()


def _orders(
    tables: Mechanisms, asking: Asking, *, chance: np.random.Generator
) -> list[shapley.Order]:
    """None where all coalitions are few enough."""
    components = [one for one in tables.players if one not in _KINDS]
    if len(components) <= asking.exact_components:
        return []
    return shapley.drawn_orders(len(tables.players), asking.order_pairs, chance=chance)


def _too_little(found: Contribution, asking: Asking) -> str:
    return (
        f"at most {found.coverage:.1%} of the sessions have counterparts on record"
        f" ({asking.coverage_least:.0%} needed): take longer windows, leave out fields that"
        " differ from session to session, or compare on the fields that matter"
    )


def _means(paths: Sequence[Path]) -> Vector:
    weights = np.array([path.weight for path in paths])
    rewards = np.array([path.reward for path in paths])
    found: Vector = (weights * rewards).sum(axis=0) / weights.sum(axis=0)
    return found


def _span(vector: Vector) -> Span | None:
    resampled = vector[1:][~np.isnan(vector[1:])]
    if not len(resampled):
        return None
    low, high = np.quantile(resampled, (0.025, 0.975))
    return Span(float(low), float(high))


def _told(
    found: Contribution, shares: Mapping[str, Vector], *, components: set[str]
) -> Contribution:
    """The parts, greatest first, and behind them what the sum still lacks."""
    settled = [
        Part(name=name, kind=PartKind.COMPONENT, value=0.0, span=Span(0.0, 0.0))
        for name in sorted(components - shares.keys())
    ]
    moving = [
        Part(
            name=name,
            kind=_KINDS.get(name, PartKind.COMPONENT),
            value=float(share[0]),
            span=_span(share),
        )
        for name, share in shares.items()
    ]
    parts = sorted([*moving, *settled], key=lambda part: -abs(part.value))
    rest = found.change - math.fsum(part.value for part in parts)
    uncovered = Part(name="(uncovered)", kind=PartKind.UNCOVERED, value=rest)
    vectors = [share for name, share in shares.items() if name in components]
    return msgspec.structs.replace(
        found,
        parts=(*parts, uncovered),
        variance=_variance(vectors, settled=len(settled)),
    )


def _variance(vectors: Sequence[Vector], *, settled: int) -> float | None:
    """The variance across components, less the mean variance of the resamples about it."""
    players = len(vectors) + settled
    if players < 2:
        return None
    if not vectors:
        return 0.0
    table = np.vstack([*vectors, np.zeros((settled, len(vectors[0])))])
    seen = float(table[:, 0].var(ddof=1))
    resampled = table[:, 1:][:, ~np.isnan(table[:, 1:]).any(axis=0)]
    if resampled.shape[1] < 2:
        return None
    noise = resampled - resampled.mean(axis=1, keepdims=True)
    resamples = int(resampled.shape[1])
    by_noise = float(noise.var(axis=0, ddof=1).mean()) * resamples / (resamples - 1)
    return float(seen - by_noise)
