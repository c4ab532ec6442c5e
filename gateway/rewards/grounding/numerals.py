"""Numbers as people of many countries write them: what may `1.234,50` or `1,25,000` mean?

A numeral can have several readings (`1.234` is a thousand to some); all are given, because who
compares knows what is meant. `step` is the place of the last digit written: fair rounding needs it.
"""

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

SPACES: Final = " \u00a0\u202f\u2009"
MAX_DIGITS: Final = 40
"""Longer ones are no amounts; arithmetic on them would only cost time."""

NUMERAL: Final = (
    rf"(?:\d{{1,3}}(?:[{SPACES}]\d{{3}})+(?:[.,]\d+)?(?![\d{SPACES}]?\d)"
    r"|\d+(?:[.,'\u2019]\d+)*(?:[eE][-+]?\d{1,2}(?!\w))?)"
)
"""Digits grouped by spaces, or by other marks, or not at all."""

_GROUPS = re.compile(r"\d{1,3}(?:,\d{3})+|\d{1,2}(?:,\d{2})+,\d{3}")


@dataclass(frozen=True, slots=True)
class Reading:
    """One meaning of a numeral."""

    value: Decimal
    step: Decimal

    def times(self, factor: Decimal) -> "Reading":
        """The same in another unit."""
        return Reading(self.value * factor, self.step * factor)


def readings(text: str) -> tuple[Reading, ...]:
    """Every meaning that the numeral may have; none if it is no number (`1.2.3`, an address)."""
    plain = re.sub(rf"[{SPACES}'\u2019]", "", text)
    if len(plain) > MAX_DIGITS:
        return ()
    mantissa, _, exponent = plain.lower().partition("e")
    scale = Decimal(1).scaleb(int(exponent)) if exponent else Decimal(1)
    return tuple(_reading(one).times(scale) for one in dict.fromkeys(_spellings(mantissa)))


def _spellings(text: str) -> list[str]:
    """The numeral with at most a decimal point, once per meaning."""
    marks = [mark for mark in ".," if mark in text]
    if not marks:
        return [text]
    if len(marks) == 2:
        return _two_marks(text)
    (mark,) = marks
    grouped = _ungrouped(text.replace(mark, ","))
    if text.count(mark) > 1:
        return [grouped] if grouped else []
    decimal = text.replace(mark, ".")
    return [decimal, grouped] if grouped and not text.startswith("0") else [decimal]


def _two_marks(text: str) -> list[str]:
    """The last mark is the decimal one, the other groups: `1,234.56`, `1.234,56`."""
    decimal = max(".,", key=text.rfind)
    whole, _, fraction = text.rpartition(decimal)
    grouped = _ungrouped(whole.replace("." if decimal == "," else ",", ","))
    return [f"{grouped}.{fraction}"] if grouped and decimal not in whole else []


def _ungrouped(text: str) -> str:
    return text.replace(",", "") if _GROUPS.fullmatch(text) else ""


def _reading(text: str) -> Reading:
    value = Decimal(text)
    exponent = value.as_tuple().exponent
    assert isinstance(exponent, int), "digits are finite"
    return Reading(value, Decimal(1).scaleb(exponent))


def reading_of(value: Decimal) -> Reading:
    """A number as it stands in a source."""
    exponent = value.as_tuple().exponent
    return Reading(value, Decimal(1).scaleb(exponent if isinstance(exponent, int) else 0))
