"""Records put beside those with like inputs, so that only answers are compared.

Equal inputs where enough of them came in both windows; else inputs whose bins agree in as many
fields as coverage allows, those first whose mix changed most. Decided from inputs alone, before
any answer is looked at. Pure.
"""

import json
from collections import Counter
from collections.abc import Hashable, Sequence

import msgspec

from gateway.insight.fields import Field, FieldKind, Leaves
from gateway.insight.permuting import divergence, table_of
from gateway.insight.samples import Json

EQUAL = "(equal inputs)"


class Strata(msgspec.Struct, frozen=True, kw_only=True):
    """`of`: each record's stratum, baseline first. `by`: the fields that agree within one."""

    of: tuple[Hashable, ...]
    by: tuple[str, ...]
    coverage: float


def strata(
    inputs: Sequence[Json],
    records: Sequence[Leaves],
    *,
    fields: Sequence[Field],
    baseline: int,
    coverage_least: float,
) -> Strata:
    """The finest strata in which at least that share of both windows has counterparts."""
    exact = tuple(json.dumps(one, sort_keys=True) for one in inputs)
    covered = coverage(exact, baseline=baseline)
    if covered >= coverage_least:
        return Strata(of=exact, by=(EQUAL,), coverage=covered)
    chosen: list[str] = []
    keys: tuple[Hashable, ...] = ((),) * len(records)
    for field in _by_change(fields, records, baseline=baseline):
        finer = tuple((key, _bin(field, record)) for key, record in zip(keys, records, strict=True))
        if coverage(finer, baseline=baseline) >= coverage_least:
            keys, chosen = finer, [*chosen, field.pointer]
    return Strata(of=keys, by=tuple(chosen), coverage=coverage(keys, baseline=baseline))


def coverage(keys: Sequence[Hashable], *, baseline: int) -> float:
    """The share of the records with a counterpart in the other window, where it is less."""
    old, new = Counter(keys[:baseline]), Counter(keys[baseline:])
    shared = old.keys() & new.keys()
    windows = (old, new)
    return min(sum(one[key] for key in shared) / max(1, one.total()) for one in windows)


def _bin(field: Field, record: Leaves) -> int:
    """The bin of most of it."""
    shares = field.shares(record)
    return max(shares, key=lambda place: (shares[place], -place))


def _by_change(fields: Sequence[Field], records: Sequence[Leaves], *, baseline: int) -> list[Field]:
    """Fields with one bin a value, most changed first; what chance adds by mere number of bins is
    taken off."""

    def change(field: Field) -> float:
        table = table_of(field, records)
        old, new = table[:baseline], table[baseline:]
        kl: float = float(divergence(new.sum(axis=0)[None, :], old.sum(axis=0)[None, :])[0])
        by_chance = (table.shape[1] - 1) / 2 * (1 / max(1, len(old)) + 1 / max(1, len(new)))
        return float(kl - by_chance)

    usable = [one for one in fields if one.kind is not FieldKind.WORDS]
    return sorted(usable, key=change, reverse=True)
