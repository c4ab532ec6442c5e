"""What a window shows of each mechanism: how often which outcome came, under which history.

A history is a node of a trie: the session's input, then each step with its outcome. Every count is
a vector: the records as they are first, then each bootstrap resample of them, so that one walk
gives all intervals.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from gateway.insight.samples import SessionSample, StepSample

Vector: TypeAlias = npt.NDArray[np.float64]
Key = TypeVar("Key", bound=Hashable)
Outcome = TypeVar("Outcome", bound=Hashable)

BASELINE, NEW = 0, 1
WINDOWS = (BASELINE, NEW)
_ROOT = -1


class Asked(tuple[str, str, str]):
    """Slot, link and input of one step: what a workflow asks for, before anything came of it."""

    __slots__ = ()

    @classmethod
    def of(cls, step: StepSample) -> "Asked":
        return cls((step.slot, step.link, step.given))

    @property
    def link(self) -> str:
        return self[1]

    @property
    def work(self) -> tuple[str, str]:
        """What a component sees of it: equal work, wherever it stands."""
        return self[1], self[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class Path:
    """One way through the workflow in one window. `nodes[k]` is the history before step k, the last
    one the whole; `reward` the mean of the sessions that took it (0 where a resample has none)."""

    window: int
    steps: tuple[StepSample, ...]
    asked: tuple[Asked, ...]
    nodes: tuple[int, ...]
    weight: Vector
    reward: Vector


def share_of(count: Vector, total: Vector) -> Vector:
    """`count / total`, and 0 where there is none."""
    return np.divide(count, total, out=np.zeros_like(total), where=total > 0)


@dataclass(slots=True)
class Counts(Generic[Key, Outcome]):
    """How often each outcome came, by key."""

    by_key: dict[Key, dict[Outcome, Vector]] = field(default_factory=dict)

    def add(self, key: Key, outcome: Outcome, *, weight: Vector) -> None:
        of_key = self.by_key.setdefault(key, {})
        of_key[outcome] = of_key[outcome] + weight if outcome in of_key else weight

    def total(self, key: Key) -> Vector | float:
        """How often the key was seen at all."""
        return np.sum(list(self.by_key[key].values()), axis=0) if key in self.by_key else 0.0

    def shares(self) -> dict[Key, list[tuple[Outcome, Vector]]]:
        """Per key each outcome with its share; all 0 in a resample that never saw the key."""
        found: dict[Key, list[tuple[Outcome, Vector]]] = {}
        for key, outcomes in self.by_key.items():
            total = np.sum(list(outcomes.values()), axis=0)
            found[key] = [(one, share_of(count, total)) for one, count in outcomes.items()]
        return found


class Histories:
    """The trie of everything that both windows saw.

    `chain`: what comes after a step depends on that step alone, so that histories which agree in
    their last step are one.
    """

    def __init__(self, *, chain: bool = False) -> None:
        self._chain = chain
        self._nodes: dict[tuple[int, Hashable, str], int] = {}
        self._depths: list[int] = []
        self.below: dict[int, set[int]] = {}
        """Per history those with one step more."""

    def child(self, node: int, asked: Asked, *, came: str) -> int | None:
        """The history with one step more; None: nobody ever saw it."""
        return self._nodes.get((self._above(node), asked, came))

    def root(self, given: str) -> int:
        """The history of a session that was only opened."""
        return self._grown(_ROOT, given, came="", depth=0)

    def grown(self, node: int, asked: Asked, *, came: str) -> int:
        depth = self._depths[node] + 1
        found = self._grown(self._above(node), asked, came=came, depth=depth)
        self.below.setdefault(node, set()).add(found)
        return found

    def deepest_first(self) -> list[int]:
        """All histories, each behind those that go on from it."""
        return sorted(range(len(self._depths)), key=lambda node: -self._depths[node])

    def _above(self, node: int) -> int:
        """In a chain only how far it is: a number of its own kind, and no way in circles."""
        return -2 - self._depths[node] if self._chain else node

    def _grown(self, above: int, what: Hashable, *, came: str, depth: int) -> int:
        found = self._nodes.setdefault((above, what, came), len(self._depths))
        if found == len(self._depths):
            self._depths.append(depth)
        return found


def paths_of(
    sessions: Sequence[SessionSample], histories: Histories, *, window: int, draws: Vector
) -> list[Path]:
    """The distinct ways with their weights; `draws[i]` says how often session i is in each
    resample. All sessions have a reward."""
    weights: dict[tuple[str, tuple[StepSample, ...]], Vector] = {}
    sums: dict[tuple[str, tuple[StepSample, ...]], Vector] = {}
    for session, drawn in zip(sessions, draws, strict=True):
        assert session.reward is not None, "a session without a reward is left out before"
        way = session.given, session.steps
        weights[way] = weights[way] + drawn if way in weights else drawn
        earned = drawn * session.reward
        sums[way] = sums[way] + earned if way in sums else earned
    return [
        Path(
            window=window,
            steps=way[1],
            asked=tuple(map(Asked.of, way[1])),
            nodes=nodes_of(histories, given=way[0], steps=way[1]),
            weight=weight,
            reward=share_of(sums[way], weight),
        )
        for way, weight in weights.items()
    ]


def nodes_of(histories: Histories, *, given: str, steps: tuple[StepSample, ...]) -> tuple[int, ...]:
    """The history before each step, and the whole."""
    nodes = [histories.root(given)]
    for step in steps:
        nodes.append(histories.grown(nodes[-1], Asked.of(step), came=step.came))
    return tuple(nodes)
