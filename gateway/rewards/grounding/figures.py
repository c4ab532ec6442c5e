"""Does a number fit a fact? Units converted, locales read, fair rounding allowed, signs kept.

Rounding is fair when the digits written are the right ones and no more than 1% is lost; after
a word such as `about`, 5%. What is rounded more coarsely than that is for a person to judge.
"""

from collections.abc import Iterator
from decimal import Decimal
from enum import IntEnum
from typing import Final

from gateway.rewards.grounding.facts import Fact, Kind
from gateway.rewards.grounding.mentions import Quantity
from gateway.rewards.grounding.numerals import Reading
from gateway.rewards.grounding.units import Dimension, Unit, same_currency

FAIR: Final = Decimal("0.01")
FAIR_HEDGED: Final = Decimal("0.05")
COARSE_HEDGED: Final = Decimal("0.10")
BOUND_FAR: Final = Decimal("1.5")
"""`more than 100` of 1,250 is true and tells nothing; of 1,250 `more than 1,000` is fair."""

_LIMIT_WORDS: Final = "max min maximum minimum limit limits cap daily monthly weekly"
_LIMITS: Final = frozenset(_LIMIT_WORDS.split())


class Fit(IntEnum):
    """How a number in a sentence relates to a fact; the larger, the better."""

    UNLIKE = 0  # they cannot be compared
    DIFFERENT = 1
    COARSE = 2
    SAME = 3


def fit(said: Quantity, fact: Fact, *, minus: bool = False) -> Fit:
    """`minus`: the sentence calls the number negative by a word, such as `overdrawn by`."""
    if fact.kind is Kind.CODE:
        return _as_code(said, fact)
    if fact.number is None or fact.kind is Kind.MOMENT or fact.kind is Kind.FLAG:
        return Fit.UNLIKE
    if fact.kind is Kind.LIST and said.unit is not None:
        return Fit.UNLIKE
    if _unlike_units(said.unit, fact):
        if fact.assumed:
            return Fit.UNLIKE
        same = any(one.value == fact.number for one in said.readings)
        return Fit.DIFFERENT if same else Fit.UNLIKE
    best = Fit.DIFFERENT
    if said.unit and fact.unit and not same_currency(said.unit.currency, fact.unit.currency):
        return best
    for number in _in_said_unit(said.unit, fact):
        for reading in said.readings:
            best = max(best, _compare(said, reading, number=number, fact=fact, minus=minus))
    return best


def wrong_unit(said: Quantity, fact: Fact) -> bool:
    """The number is the fact's, its unit is not."""
    return (
        fact.number is not None
        and said.unit is not None
        and any(one.value == fact.number for one in said.readings)
    )


def _as_code(said: Quantity, fact: Fact) -> Fit:
    """An account's number is that one or another: it has no unit and is never rounded."""
    if not fact.text.isdigit() or not said.shown.isdigit() or said.unit is not None:
        return Fit.UNLIKE
    if said.shown == fact.text:
        return Fit.SAME
    return Fit.DIFFERENT if len(said.shown) == len(fact.text) else Fit.UNLIKE


def _unlike_units(unit: Unit | None, fact: Fact) -> bool:
    return bool(unit and fact.unit and unit.dimension is not fact.unit.dimension)


def _in_said_unit(unit: Unit | None, fact: Fact) -> Iterator[Decimal]:
    """The fact's number as the sentence's unit would give it, once per meaning."""
    assert fact.number is not None
    if fact.unit is not None and unit is not None:
        for own in fact.unit.factors:
            for said in unit.factors:
                yield fact.number * own / said
        return
    yield fact.number
    if fact.unit is not None and fact.unit.dimension in (Dimension.MONEY, Dimension.SHARE):
        yield from (fact.number * factor for factor in fact.unit.factors if factor != 1)
    is_share = unit is not None and unit.dimension is Dimension.SHARE
    if is_share and fact.unit is None and abs(fact.number) <= 1:
        assert unit is not None
        yield fact.number * 100 / unit.factors[0]


def _compare(said: Quantity, reading: Reading, *, number: Decimal, fact: Fact, minus: bool) -> Fit:
    value = reading.value
    if minus and number < 0 and not said.signed:
        number = -number
    if value == number:
        return Fit.DIFFERENT if said.turned and len(said.bound) == 1 else Fit.SAME
    if said.bound:
        return _bounded(said.bound, value, number=number, fact=fact)
    lost = abs(value - number)
    if (value < 0) is not (number < 0) or not number:
        return Fit.DIFFERENT
    if said.hedged:
        share = lost / abs(number)
        if share <= FAIR_HEDGED:
            return Fit.SAME
        return Fit.COARSE if share <= COARSE_HEDGED else Fit.DIFFERENT
    if lost * 2 > reading.step or _written_places(number) <= _places(reading.step):
        return Fit.DIFFERENT
    return Fit.SAME if lost <= abs(number) * FAIR else Fit.COARSE


def _bounded(bound: str, value: Decimal, *, number: Decimal, fact: Fact) -> Fit:
    """A limit that is not the number itself: it must hold, and say something about it."""
    holds = number > value if bound[0] == ">" else number < value
    if not holds:
        return Fit.DIFFERENT
    if len(bound) == 2:
        return Fit.DIFFERENT if _LIMITS & set(fact.words) else Fit.COARSE
    large, small = max(abs(value), abs(number)), min(abs(value), abs(number))
    return Fit.SAME if large <= small * BOUND_FAR else Fit.COARSE


def _places(step: Decimal) -> int:
    exponent = step.as_tuple().exponent
    return -exponent if isinstance(exponent, int) else 0


def _written_places(number: Decimal) -> int:
    """Decimal places that say something: 1250.10 has one."""
    return max(0, _places(number.normalize()))
