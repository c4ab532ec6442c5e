"""Units: what a word, a symbol or the end of a field's name says about the number beside it.

Within a dimension, `factor` leads to its base unit. Money keeps its currency apart: amounts of two
currencies are never equal here, whatever the rate of the day. KB may be 1000 or 1024 bytes.
"""

import functools
import re
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import Final


class Dimension(StrEnum):
    MONEY = "money"
    TIME = "time"
    MONTHS = "calendar time"
    LENGTH = "length"
    MASS = "mass"
    BYTES = "bytes"
    SHARE = "share"


@dataclass(frozen=True, slots=True)
class Unit:
    """`factors`: to the base unit; more than one where the word is ambiguous."""

    dimension: Dimension
    factors: tuple[Decimal, ...]
    currency: str = ""


_TABLE: Final[dict[Dimension, dict[str, str]]] = {
    Dimension.TIME: {
        "0.000001": "us µs microsecond microseconds",
        "0.001": "ms msec millisecond milliseconds millis",
        "1": "s sec secs second seconds sekunde sekunden seconde secondes",
        "60": "min mins minute minutes minuten",
        "3600": "h hr hrs hour hours stunde stunden heure heures",
        "86400": "day days tag tage tagen jour jours",
        "604800": "week weeks woche wochen semaine semaines",
    },
    Dimension.MONTHS: {
        "1": "month months monat monate mois",
        "12": "year years yr yrs jahr jahre ans",
    },
    Dimension.LENGTH: {
        "0.001": "mm millimetre millimetres millimeter millimeters",
        "0.01": "cm centimetre centimetres centimeter centimeters",
        "1": "m metre metres meter meters",
        "1000": "km kilometre kilometres kilometer kilometers",
        "1609.344": "mi mile miles",
        "0.3048": "ft foot feet",
        "0.0254": "inch inches",
    },
    Dimension.MASS: {
        "0.001": "mg milligram milligrams",
        "1": "g gram grams gramme grammes",
        "1000": "kg kilo kilos kilogram kilograms",
        "1000000": "tonne tonnes ton tons",
        "453.59237": "lb lbs pound-weight",
        "28.349523125": "oz ounce ounces",
    },
    Dimension.BYTES: {
        "1": "b byte bytes",
        "1024": "kib",
        "1048576": "mib",
        "1073741824": "gib",
        "1099511627776": "tib",
    },
    Dimension.SHARE: {
        "1": "% percent pct prozent percentage",
        "0.1": "‰ permille",
        "0.01": "bps bp",
        "100": "ratio fraction share proportion probability",
    },
}
_TWO_BYTES: Final = {"kb": 1, "mb": 2, "gb": 3, "tb": 4}
"""Powers of 1000 to some and of 1024 to others."""

_CODES: Final = (
    "AED ARS AUD BGN BRL CAD CHF CLP CNY COP CZK DKK EGP EUR GBP HKD HUF IDR ILS INR ISK JPY "
    "KRW KWD MXN MYR NGN NOK NZD PEN PHP PLN RON RUB SAR SEK SGD THB TRY TWD UAH USD VND ZAR"
)
CURRENCIES: Final = frozenset(_CODES.split())
_NO_MINOR: Final = frozenset(["CLP", "ISK", "JPY", "KRW", "VND"])
_NAMES_KEPT: Final = 1024
"""Names of members read before: the same ones come in every session."""
_SIGNS: Final = {"£": "GBP", "€": "EUR", "$": "$", "us$": "USD", "¥": "JPY", "₹": "INR"}
_MONEY_WORDS: Final = {
    **dict.fromkeys(("pound", "pounds", "sterling"), "GBP"),
    **dict.fromkeys(("euro", "euros"), "EUR"),
    **dict.fromkeys(("dollar", "dollars"), "$"),
    **dict.fromkeys(("rupee", "rupees", "rs"), "INR"),
    "yen": "JPY",
}
_DOLLARS: Final = frozenset({"$", "USD", "AUD", "CAD", "HKD", "NZD", "SGD", "TWD", "MXN"})
_MINOR: Final = dict.fromkeys(("pence", "penny"), "GBP") | dict.fromkeys(("cent", "cents"), "")
_ONE: Final = (Decimal(1),)
_HUNDREDTH: Final = (Decimal("0.01"),)


def _words() -> dict[str, Unit]:
    found = {
        word: Unit(dimension, (Decimal(factor),))
        for dimension, rows in _TABLE.items()
        for factor, words in rows.items()
        for word in words.split()
    }
    for word, power in _TWO_BYTES.items():
        both = (Decimal(1000) ** power, Decimal(1024) ** power)
        found[word] = Unit(Dimension.BYTES, both)
    for word, code in {**_SIGNS, **_MONEY_WORDS}.items():
        found[word] = Unit(Dimension.MONEY, _ONE, code)
    for word, code in _MINOR.items():
        found[word] = Unit(Dimension.MONEY, _HUNDREDTH, code)
    for code in CURRENCIES:
        found[code.lower()] = Unit(Dimension.MONEY, _ONE, code)
    return found


_WORDS: Final = _words()
_NOT_IN_TEXT: Final = frozenset({"ratio", "fraction", "share", "proportion", "probability", "try"})
"""Words of a field's name, or of no unit, that in a sentence say nothing about a number's unit."""
_IN_NAMES_ONLY: Final = {
    **dict.fromkeys(("minor", "cents", "pence"), Unit(Dimension.MONEY, _HUNDREDTH)),
    "micros": Unit(Dimension.MONEY, (Decimal("0.000001"),)),
}
_SHORT: Final = frozenset(["b", "m", "g", "s", "h", "h", "mi", "us"])
"""Too short to be read from a name unless it stands last, after an underscore."""
SIGNS: Final = "£€$¥₹"


def unit_of(word: str) -> Unit | None:
    """What a word beside a number says; a code of money counts in capitals only."""
    stripped = word.strip(".")
    if stripped.lower() in _NOT_IN_TEXT:
        return None
    found = _WORDS.get(stripped.lower())
    is_code = found is not None and found.currency.lower() == stripped.lower()
    if is_code and stripped != stripped.upper():
        return None
    return found


def unit_named(text: str) -> Unit | None:
    """A unit given as such (a claim's `unit`, a member `currency`), in any case of letters."""
    return _WORDS.get(text.strip().strip(".").lower())


@functools.lru_cache(maxsize=_NAMES_KEPT)
def unit_of_name(name: str) -> Unit | None:
    """What the name of a member says: `delivery_days`, `fee_cents`, `sizeBytes`."""
    words = name_words(name)
    if len(words) > 1 and words[-1] == "ms" and words[-2] in {"at", "time"}:
        return None  # a moment, not a length of time
    for index, word in enumerate(reversed(words)):
        if word in _IN_NAMES_ONLY:
            return _IN_NAMES_ONLY[word]
        if word in _SHORT and (len(words) == 1 or index > 0):
            continue
        if word in _WORDS:
            return _WORDS[word]
    return None


@functools.lru_cache(maxsize=_NAMES_KEPT)
def name_words(name: str) -> tuple[str, ...]:
    """`pinTriesLeft` and `pin_tries_left` as words in lower case."""
    found = re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+|[%£€$]", name)
    return tuple(word.lower() for word in found)


def same_currency(one: str, other: str) -> bool:
    """Unknown ones are not held against each other; `$` may be any dollar."""
    if not one or not other or one == other:
        return True
    return "$" in (one, other) and one in _DOLLARS and other in _DOLLARS


def minor_factor(unit: Unit, currency: str) -> Unit:
    """Minor units of a currency that has none, or a thousand of them."""
    if unit.factors != _HUNDREDTH or unit.dimension is not Dimension.MONEY:
        return unit
    factor = Decimal(1) if currency in _NO_MINOR else Decimal("0.01")
    return Unit(unit.dimension, (Decimal("0.001") if currency == "KWD" else factor,), currency)
