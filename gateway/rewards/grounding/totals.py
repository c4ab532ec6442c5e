"""Totals a sentence may give of several sources without a derivation: sum, difference, mean, ends.

They only ever support: that a number is no total of the sources proves nothing.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Final

from gateway.rewards.grounding import words
from gateway.rewards.grounding.facts import Fact, Kind
from gateway.rewards.grounding.units import Unit

Numbers = Sequence[Decimal]

_WAYS: Final[dict[str, Callable[[Numbers], Decimal]]] = {
    "sum": lambda numbers: sum(numbers, Decimal(0)),
    "difference": lambda numbers: max(numbers) * 2 - sum(numbers, Decimal(0)),
    "mean": lambda numbers: sum(numbers, Decimal(0)) / len(numbers),
    "most": max,
    "least": min,
}


def totals(facts: Sequence[Fact], text: str | None = None) -> list[Fact]:
    """Those that the sentence names a word for; sum and difference when there is no sentence."""
    numbers = [fact for fact in facts if fact.kind is Kind.NUMBER and fact.pointer]
    summed = _in_one_unit(numbers)
    if len(summed) < 2:
        return []
    named = [
        way
        for way, cue in words.TOTALS.items()
        if (way in ("sum", "difference") if text is None else cue.search(text))
    ]
    return [_total(way, summed) for way in named]


def _in_one_unit(numbers: Sequence[Fact]) -> list[Fact]:
    """The numbers as they are if they share a unit, in its base unit if they share a dimension."""
    if len({fact.unit for fact in numbers}) == 1:
        return list(numbers)
    units = [fact.unit for fact in numbers if fact.unit is not None]
    shared = {(unit.dimension, unit.currency) for unit in units}
    if len(units) < len(numbers) or len(shared) != 1:
        return []
    base = Unit(units[0].dimension, (Decimal(1),), units[0].currency)
    return [
        replace(fact, number=fact.number * unit.factors[0], unit=base)
        for fact, unit in zip(numbers, units, strict=True)
        if fact.number is not None
    ]


def _total(way: str, summed: Sequence[Fact]) -> Fact:
    number = _WAYS[way]([fact.number for fact in summed if fact.number is not None])
    return Fact(
        pointer=f"the {way} of its sources",
        name=way,
        kind=Kind.NUMBER,
        text=f"{number.normalize():f}",
        number=number,
        unit=summed[0].unit,
        assumed=summed[0].assumed,
    )
