"""What a sentence mentions that can be looked up: amounts, dates, times, codes.

Each stretch of text is taken once, by the first reader that knows it: a date is no amount, a card's
number is no amount either. Lengths are bounded, so that no sentence costs more than a moment.
"""

import re
from dataclasses import dataclass
from decimal import Decimal
from itertools import islice
from typing import Final

from gateway.rewards.grounding import dates, words
from gateway.rewards.grounding.dates import When
from gateway.rewards.grounding.numerals import NUMERAL, Reading, readings
from gateway.rewards.grounding.units import SIGNS, Dimension, Unit, unit_of

TEXT_CHARACTERS_MAX: Final = 600
"""A claim is a sentence. What is longer is left to a person."""
MENTIONS_MAX: Final = 24
"""Of a kind in one text: more are a table, not a sentence, and looking them up would take long."""
LOOKED_BACK: Final = 60
"""Characters before a number in which `about` or `more than` may stand."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantity:
    """A number in a sentence, in each of its readings."""

    start: int
    end: int
    shown: str
    readings: tuple[Reading, ...]
    unit: Unit | None = None
    signed: bool = False
    worded: bool = False
    hedged: bool = False
    bound: str = ""
    """`>=`, `>`, `<=`, `<` where the sentence gives a limit rather than the number itself."""
    compound: bool = False
    """Its unit goes on (`g/dL`), so that another number may be the same amount."""
    turned: bool = False
    """A denial turned the limit round: `will not pay more than`."""


@dataclass(frozen=True, slots=True)
class Moment:
    """A date or a time of day; no readings: there is no such day."""

    start: int
    end: int
    shown: str
    readings: tuple[When, ...]


@dataclass(frozen=True, slots=True)
class Code:
    """An id, or the visible part of one (`ending in 9534`, `****9534`)."""

    start: int
    end: int
    shown: str
    core: str
    partial: bool = False


@dataclass(frozen=True, slots=True)
class Mentions:
    quantities: tuple[Quantity, ...] = ()
    moments: tuple[Moment, ...] = ()
    codes: tuple[Code, ...] = ()


NO_MENTIONS: Final = Mentions()
_DIGIT = re.compile(r"\d")
_CODE = re.compile(
    r"(?<![\w.])(?:[*•xX#]{2,}[ -]?\d{2,}|(?=[\w./#:-]*\d)(?=[\w./#:-]*[A-Za-z])"
    r"[A-Za-z0-9](?:[\w]|[./#:-](?=\w))*)"
)
_NO_CODE = re.compile(
    rf"(?:[A-Z]{{3}})?\d[\d.,]*(?:(?:-[a-z]+)+|[a-zA-Zµ°]{{1,5}}|[eE][-+]?\d+)?|\d+(?:st|nd|rd|th)|[A-Z]{{3}}{NUMERAL}"
)
_ENDING = re.compile(
    r"(?:ending|ends|last digits|last four(?: digits)?)(?: in| with| are)?\s*$", re.I
)
_QUANTITY = re.compile(
    r"(?P<sign>[-\u2212+](?=[\s£€$¥₹]?[\d.£€$¥₹]))?(?P<open>\()?"
    rf"(?:(?P<symbol>(?:US)?[{SIGNS}])\s?|\b(?P<before>[A-Z]{{3}}|Rs\.?)\s?)?(?P<inner>[-\u2212])?"
    rf"(?P<number>{NUMERAL}|\.\d+)"
    r"(?P<scale>\s?(?:thousand|million|mn|billion|bn|lakh|lakhs|crore|crores)\b|[kKMm](?![a-zA-Z]))?"
    rf"(?P<close>\))?(?:\s?(?P<percent>[%‰])|[\s-]?(?P<unit>[{SIGNS}]|[A-Za-zµ]+))?"
)
_SCALES: Final = {
    "thousand": 3, "k": 3, "million": 6, "mn": 6, "m": 6, "billion": 9, "bn": 9, "lakh": 5,
    "lakhs": 5, "crore": 7, "crores": 7,
}  # fmt: skip
_WORDED = re.compile(
    r"\b(" + "|".join(words.SMALL_NUMBERS) + r")\b(?:[\s-](?P<unit>[A-Za-z]+))?", re.IGNORECASE
)
_JOINED: Final = (Dimension.TIME, Dimension.LENGTH, Dimension.MASS)
"""`2 h 30 min` is one length of time."""


def mentions_of(text: str) -> Mentions:
    """Everything in `text` that can be looked up, in its order."""
    if not _DIGIT.search(text):
        return Mentions(tuple(_worded(text)))
    left = list(text)
    moments = [*_dates(text, left), *_times("".join(left), left)]
    codes = _codes("".join(left), left)
    quantities = [*_quantities("".join(left), left), *_worded("".join(left))]
    quantities.sort(key=lambda one: one.start)
    return Mentions(tuple(_joined(quantities, text)), tuple(moments), tuple(codes))


def _blank(left: list[str], span: tuple[int, int]) -> None:
    left[slice(*span)] = "\0" * (span[1] - span[0])


def _dates(text: str, left: list[str]) -> list[Moment]:
    found = []
    for match in islice(dates.DATE.finditer(text), MENTIONS_MAX):
        found.append(Moment(*match.span(), match[0], tuple(dates.readings(match))))
        _blank(left, match.span())
    return found


def _times(text: str, left: list[str]) -> list[Moment]:
    found = []
    for match in islice(dates.TIME.finditer(text), MENTIONS_MAX):
        time = dates.time_of(match)
        if time is not None:
            found.append(Moment(*match.span(), match[0], (time,)))
            _blank(left, match.span())
    return found


def _codes(text: str, left: list[str]) -> list[Code]:
    found = []
    for match in islice(_CODE.finditer(text), MENTIONS_MAX):
        if _NO_CODE.fullmatch(match[0]):
            continue
        core = re.sub(r"^[*•xX#]{2,}[ -]?", "", match[0])
        found.append(Code(*match.span(), match[0], core, partial=core != match[0]))
        _blank(left, match.span())
    for match in islice(re.finditer(r"\d{3,6}\b", text), MENTIONS_MAX):
        if left[match.start()] != "\0" and _ENDING.search(text[: match.start()]):
            found.append(Code(*match.span(), match[0], match[0], partial=True))
            _blank(left, match.span())
    return found


def _quantities(text: str, left: list[str]) -> list[Quantity]:
    found = []
    for match in islice(_QUANTITY.finditer(text), MENTIONS_MAX):
        start = match.start()
        if start and (text[start - 1].isalnum() or text[start - 1] in "._"):
            continue
        one = _quantity(match, text)
        if one is not None:
            found.append(one)
            _blank(left, (one.start, one.end))
    return found


def _quantity(match: re.Match[str], text: str) -> Quantity | None:
    numbers = readings(match["number"])
    if not numbers:
        return None
    metres = match["scale"] == "m" and not (match["symbol"] or match["before"])
    scale = Decimal(1).scaleb(
        0 if metres else _SCALES.get((match["scale"] or "").strip().lower(), 0)
    )
    negative = bool(match["sign"] in ("-", "\u2212") or match["inner"])
    in_brackets = bool(match["open"] and match["close"])
    factors = (scale, -scale) if in_brackets else (-scale if negative else scale,)
    unit, end = (unit_of("m"), match.end("scale")) if metres else _unit(match)
    before = text[max(0, match.start() - LOOKED_BACK) : match.start()]
    bound, turned = _bound(before)
    return Quantity(
        start=match.start(),
        end=end,
        shown=text[match.start() : end].replace("\0", "").strip("() "),
        readings=tuple(
            Reading(r.value * factor, r.step * scale) for r in numbers for factor in factors
        ),
        unit=unit,
        signed=negative or match["sign"] == "+",
        hedged=bool(words.HEDGE.search(before)),
        bound=bound,
        turned=turned,
        compound=re.match(r"/[A-Za-z]", text[end:]) is not None,
    )


def _unit(match: re.Match[str]) -> tuple[Unit | None, int]:
    """What stands before or behind the number says its unit; and where the amount ends."""
    bare = match.end("close" if match["close"] else "scale" if match["scale"] else "number")
    for name in ("percent", "unit"):
        found = unit_of(match[name]) if match[name] else None
        if found is not None and (match["unit"] or "").lower() != "b":
            return found, match.end(name)
    for name in ("symbol", "before"):
        if match[name]:
            found = unit_of(match[name])
            if found is not None:
                return found, bare
    return None, bare


_TURNED: Final = {">": "<=", ">=": "<", "<": ">=", "<=": ">"}


def _bound(before: str) -> tuple[str, bool]:
    """A limit that the sentence names (`up to`, `more than`); and whether a denial turns it."""
    low = words.AT_LEAST.search(before)
    high = words.AT_MOST.search(before)
    found, bound = high, ""
    if high is not None:
        bound = "<" if high["under"] else "<="
    elif low is not None and not low[0].lower().startswith("from"):
        found, bound = low, ">" if low["over"] else ">="
    if found is None or not bound:
        return "", False
    turned = words.DENIAL.search(words.CLAUSES.split(before[: found.start()])[-1]) is not None
    return (_TURNED[bound], True) if turned else (bound, False)


def _worded(text: str) -> list[Quantity]:
    """`three days`; a bare `one` may be a pronoun, `zero` a mark, and neither proves anything."""
    found = []
    for match in islice(_WORDED.finditer(text), MENTIONS_MAX):
        value = Decimal(words.SMALL_NUMBERS[match[1].lower()])
        unit = unit_of(match["unit"]) if match["unit"] else None
        end = match.end("unit") if unit is not None else match.end(1)
        before = text[max(0, match.start() - LOOKED_BACK) : match.start()]
        bound, turned = _bound(before)
        found.append(
            Quantity(
                start=match.start(),
                end=end,
                shown=text[match.start() : end],
                readings=(Reading(value, Decimal(1)),),
                unit=unit,
                worded=value <= 1,
                hedged=bool(words.HEDGE.search(before)),
                bound=bound,
                turned=turned,
            )
        )
    return found


def _joined(quantities: list[Quantity], text: str) -> list[Quantity]:
    """Neighbours of one dimension, the larger unit first, as one amount."""
    joined: list[Quantity] = []
    for one in quantities:
        last = joined[-1] if joined else None
        if last is not None and _belong(last, one, between=text[last.end : one.start]):
            joined[-1] = _together(last, one, text=text)
        else:
            joined.append(one)
    return joined


def _belong(first: Quantity, second: Quantity, *, between: str) -> bool:
    if first.unit is None or second.unit is None or between.strip() not in ("", "and", ","):
        return False
    if first.unit.dimension is not second.unit.dimension or len(between) > 5:
        return False
    smaller = first.unit.factors[0] > second.unit.factors[0]
    return first.unit.dimension in (*_JOINED, Dimension.MONTHS, Dimension.MONEY) and smaller


def _together(first: Quantity, second: Quantity, *, text: str) -> Quantity:
    assert first.unit is not None
    assert second.unit is not None
    base = Unit(second.unit.dimension, (Decimal(1),), first.unit.currency or second.unit.currency)
    one, other = first.readings[0], second.readings[0]
    value = one.value * first.unit.factors[0] + other.value * second.unit.factors[0]
    return Quantity(
        start=first.start,
        end=second.end,
        shown=text[first.start : second.end],
        readings=(Reading(value, other.step * second.unit.factors[0]),),
        unit=base,
        signed=first.signed,
        hedged=first.hedged,
        bound=first.bound,
        turned=first.turned,
    )
