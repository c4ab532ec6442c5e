"""Two groups of records compared by exchanging their labels: KL, its mean by chance, and a p-value.

Labels are exchanged among records with equal inputs only (within strata), and the new group is
weighted to the baseline's inputs. So what changes with the inputs alone is no change, exactly: if
equal inputs have equal answers, every exchange is as likely as what was seen. Chance comes in.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from gateway.insight.fields import Field, Leaves

Table: TypeAlias = npt.NDArray[np.float64]
Flags: TypeAlias = npt.NDArray[np.bool_]

CHUNK = 128
"""Exchanges at once: some megabytes for thousands of records."""
SMOOTHING = 0.5
"""Records added to each bin, so that an empty one is rare instead of impossible."""
_TIE = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Groups:
    """Records in the order of their strata. `weight`: of a record while it is labelled new."""

    is_new: Flags
    stratum: Table
    weight: Table
    places: npt.NDArray[np.intp]
    """Which of the records given stands where; those without a counterpart are left out."""

    @property
    def sizes(self) -> tuple[int, int]:
        """How many of the baseline and how many new."""
        new = int(self.is_new.sum())
        return len(self.is_new) - new, new


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """`kl` in nats, its mean over the exchanges, and the share of them that came as far."""

    kl: float
    kl_by_chance: float
    p: float


def groups(strata: Sequence[Hashable], *, baseline: int) -> Groups:
    """The first `baseline` records against the others; strata that one of them lacks are out."""
    numbers: dict[Hashable, int] = {}
    code = np.asarray([numbers.setdefault(one, len(numbers)) for one in strata], dtype=np.intp)
    is_new = np.arange(len(strata)) >= baseline
    old_in = np.bincount(code[~is_new], minlength=len(numbers)).astype(np.float64)
    new_in = np.bincount(code[is_new], minlength=len(numbers)).astype(np.float64)
    shared = (old_in > 0) & (new_in > 0)
    places = np.flatnonzero(shared[code])
    places = places[np.lexsort((is_new[places], code[places]))]
    weight = np.divide(old_in, new_in, out=np.zeros_like(old_in), where=shared)
    scale = new_in[shared].sum() / old_in[shared].sum() if shared.any() else 1.0
    return Groups(
        is_new=is_new[places],
        stratum=code[places].astype(np.float64),
        weight=weight[code[places]] * scale,
        places=places,
    )


def table_of(field: Field, records: Sequence[Leaves]) -> Table:
    """A row per record, a column per bin that any of them uses."""
    table = np.zeros((len(records), field.bins))
    for row, record in zip(table, records, strict=True):
        for place, share in field.shares(record).items():
            row[place] = share
    used: Table = table[:, table.any(axis=0)]
    return used


def compare(
    tables: Sequence[Table], by: Groups, *, exchanges: int, chance: np.random.Generator
) -> list[Compared]:
    """Each table (rows in the order of `by`) under the same exchanges."""
    ends = np.cumsum([0, *(table.shape[1] for table in tables)])
    joined = np.hstack(tables)

    def divergences(labels: Table) -> Table:
        """A row per labelling, a column per table."""
        counts = labels @ joined
        new, old = counts[: len(labels) // 2], counts[len(labels) // 2 :]
        columns = [slice(*span) for span in pairwise(ends)]
        return np.stack([divergence(new[:, at], old[:, at]) for at in columns], axis=1)

    observed = divergences(_labels(by))[0]
    total, as_far = np.zeros(len(tables)), np.zeros(len(tables))
    for begun in range(0, exchanges, CHUNK):
        found = divergences(_exchanged(by, min(CHUNK, exchanges - begun), chance=chance))
        total += found.sum(axis=0)
        as_far += (found >= observed - _TIE).sum(axis=0)
    return [
        Compared(
            kl=float(observed[place]),
            kl_by_chance=float(total[place] / exchanges),
            p=float((1 + as_far[place]) / (1 + exchanges)),
        )
        for place in range(len(tables))
    ]


def _labels(by: Groups) -> Table:
    """Weights of the new as they are, and below of the baseline."""
    return np.stack([np.where(by.is_new, by.weight, 0.0), (~by.is_new).astype(np.float64)])


def _exchanged(by: Groups, times: int, *, chance: np.random.Generator) -> Table:
    """The same with the labels shuffled within each stratum: so many of the new, then of the
    baseline."""
    keys = by.stratum[None, :] + chance.random((times, len(by.stratum)))
    order = np.argsort(keys, axis=1)
    labels = np.zeros((2 * times, len(by.stratum)))
    new, old = _labels(by)
    np.put_along_axis(labels[:times], order, new[None, :], axis=1)
    np.put_along_axis(labels[times:], order, old[None, :], axis=1)
    return labels


def divergence(new: Table, baseline: Table) -> Table:
    """Row by row the Kullback-Leibler divergence of the new counts from the baseline's, in nats."""
    p, q = _smoothed(new), _smoothed(baseline)
    found: Table = (p * np.log(p / q)).sum(axis=1)
    return found


def _smoothed(counts: Table) -> Table:
    raised = counts + SMOOTHING
    found: Table = raised / raised.sum(axis=1, keepdims=True)
    return found


def holm(ps: Sequence[float]) -> list[float]:
    """Adjusted p-values: below `level` for any of those that are chance with at most that chance,
    however they depend on each other (S. Holm, Scand. J. Stat. 6, 1979)."""
    order = sorted(range(len(ps)), key=lambda place: ps[place])
    adjusted, least = [1.0] * len(ps), 0.0
    for rank, place in enumerate(order):
        least = max(least, min(1.0, ps[place] * (len(ps) - rank)))
        adjusted[place] = least
    return adjusted
