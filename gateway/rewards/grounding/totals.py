"""Totals a sentence may give of several sources without a derivation: sum, difference, mean, ends.

They only ever support: that a number is no total of the sources proves nothing.
"""

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Final

from gateway.rewards.grounding import words
from gateway.rewards.grounding.facts import Fact, Kind

Numbers = Sequence[Decimal]

_WAYS: Final[dict[str, Callable[[Numbers], Decimal]]] = {
    "sum": lambda numbers: sum(numbers, Decimal(0)),
    "difference": lambda numbers: numbers[0] - sum(numbers[1:], Decimal(0)),
    "mean": lambda numbers: sum(numbers, Decimal(0)) / len(numbers),
    "most": max,
    "least": min,
}


def totals(facts: Sequence[Fact], text: str | None = None) -> list[Fact]:
    """Those that the sentence names a word for; sum and difference when there is no sentence."""
    summed = [fact for fact in facts if fact.kind is Kind.NUMBER and fact.pointer]
    units = {fact.unit for fact in summed}
    if len(summed) < 2 or len(units) > 1:
        return []
    named = [
        way
        for way, cue in words.TOTALS.items()
        if (way in ("sum", "difference") if text is None else cue.search(text))
    ]
    return [_total(way, summed) for way in named]


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
