"""Means that cannot hide what is missing: every one carries how many could not be judged.

Per version, because a version that fails to be judged more often than another is not comparable
with it. Rates of what people say count drawn judgements only, each by the inverse of the
probability with which it was drawn. Pure; fed one by one.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import msgspec

from acp_spec.model.enums import FeedbackKind
from acp_spec.model.reward_vector import Quality, RewardVector
from acp_spec.model.trajectory import FeedbackRow, Trajectory


class Mean(msgspec.Struct, frozen=True, kw_only=True):
    """`value` is over the `judged` alone; null when there are none. `operational` is over all."""

    of: str
    version: str
    value: float | None
    judged: int
    missing: int
    missing_share: float
    operational: float


class Rate(msgspec.Struct, frozen=True, kw_only=True):
    """Of scores that were drawn to be given; `volunteered` ones are not in it."""

    kind: FeedbackKind
    version: str
    value: float | None
    drawn: int
    volunteered: int


@dataclass(slots=True)
class _Sum:
    judged: int = 0
    missing: int = 0
    quality: float = 0.0
    operational: float = 0.0

    def add(self, quality: Quality, operational: float) -> None:
        if quality.value is None:
            self.missing += 1
        else:
            self.judged += 1
            self.quality += quality.value
        self.operational += operational

    def mean(self, of: str, version: str) -> Mean:
        total = self.judged + self.missing
        return Mean(
            of=of,
            version=version,
            value=self.quality / self.judged if self.judged else None,
            judged=self.judged,
            missing=self.missing,
            missing_share=self.missing / total,
            operational=self.operational / total,
        )


@dataclass(slots=True)
class Means:
    """Of vectors, by workflow version for sessions and by component version for steps."""

    _sums: dict[tuple[str, str], _Sum] = field(default_factory=dict)

    def add(self, workflow: str, vector: RewardVector) -> None:
        session, later = vector.session, vector.long_term
        self._of("session", workflow).add(session.quality, session.operational)
        self._of("long_term", workflow).add(later.quality, later.operational)
        for one in vector.step:
            version = f"{one.component}@{one.component_version}"
            self._of("step", version).add(one.quality, one.operational)

    def _of(self, of: str, version: str) -> _Sum:
        return self._sums.setdefault((of, version), _Sum())

    @property
    def rows(self) -> tuple[Mean, ...]:
        return tuple(one.mean(*key) for key, one in sorted(self._sums.items()))


@dataclass(slots=True)
class Rates:
    """Of feedback by kind and workflow version, weighted by the inverse of the probability."""

    _weights: dict[tuple[FeedbackKind, str], tuple[float, float]] = field(default_factory=dict)
    _drawn: dict[tuple[FeedbackKind, str], int] = field(default_factory=dict)
    _volunteered: dict[tuple[FeedbackKind, str], int] = field(default_factory=dict)

    def add(self, trajectory: Trajectory) -> None:
        for row in trajectory.feedback:
            if row.feedback.score is not None:
                self._add(row, row.feedback.score, version=trajectory.workflow)

    def _add(self, row: FeedbackRow, score: float, *, version: str) -> None:
        key = (row.feedback.kind, version)
        probability = row.feedback.sampling_probability
        if probability is None:
            self._volunteered[key] = self._volunteered.get(key, 0) + 1
            return
        weight, total = self._weights.get(key, (0.0, 0.0))
        self._weights[key] = (weight + 1 / probability, total + score / probability)
        self._drawn[key] = self._drawn.get(key, 0) + 1

    @property
    def rows(self) -> tuple[Rate, ...]:
        return tuple(self._rows())

    def _rows(self) -> Iterator[Rate]:
        keys = self._drawn.keys() | self._volunteered.keys()
        for kind, version in sorted(keys, key=lambda key: (key[1], key[0].value)):
            weight, total = self._weights.get((kind, version), (0.0, 0.0))
            yield Rate(
                kind=kind,
                version=version,
                value=total / weight if weight else None,
                drawn=self._drawn.get((kind, version), 0),
                volunteered=self._volunteered.get((kind, version), 0),
            )
