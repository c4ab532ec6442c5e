"""Ways to say a true claim differently, and ways to make it false; each says whether it could.

A mutation changes what it names and nothing else, so its label is true by how it is made. Those in
`UNSEEN` are used on the held-out half only.
"""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from hashlib import sha256
from typing import TypeVar

from gateway.rewards.grounding.tests.claim_bases import Base

Item = TypeVar("Item")


@dataclass(frozen=True)
class Case:
    """A claim to be judged. `sources`: pointers; `outputs`: by call id, JSON text."""

    text: str
    value: str
    unit: str
    sources: tuple[str, ...]
    outputs: tuple[tuple[str, str], ...]
    derivation: str = ""


@dataclass(frozen=True)
class Draw:
    """Choices that are the same in every version of Python."""

    seed: str

    def number(self, what: str, below: int) -> int:
        digest = sha256(f"{self.seed}:{what}".encode()).digest()
        return int.from_bytes(digest[:6], "big") % below

    def one_of(self, what: str, items: Sequence[Item]) -> Item:
        return items[self.number(what, len(items))]


Mutation = Callable[[Base, Draw], Case | None]


def plain_case(base: Base) -> Case:
    """The claim as it was made."""
    return Case(
        text=base.text,
        value=base.value,
        unit=base.unit,
        sources=tuple(f"/calls/c1/output/{key}" for key in base.keys),
        outputs=(("c1", base.output),),
        derivation=base.derivation,
    )


# ---- numbers and how they may be written -----------------------------------------------------

_NUMBER = re.compile(r"-?\d+(\.\d+)?")
_SYMBOLS = {"GBP": "£", "EUR": "€", "USD": "$"}
_FOREIGN = {"GBP": "CHF", "EUR": "USD", "USD": "GBP", "CHF": "EUR"}


def numbers_in(base: Base) -> list[str]:
    """Members that are numbers, stand in the sentence, and are no codes."""
    members: dict[str, object] = json.loads(base.output, parse_float=Decimal)
    return [
        key
        for key in base.keys
        if isinstance(members[key], int | Decimal)
        and not isinstance(members[key], bool)
        and _has(base.text, base.member(key))
    ]


def _has(text: str, shown: str) -> bool:
    return re.search(rf"(?<![\w.-]){re.escape(shown)}(?![\w]|\.\d)", text) is not None


def swap(text: str, shown: str, instead: str) -> str:
    """One mention for another."""
    return re.sub(rf"(?<![\w.-]){re.escape(shown)}(?![\w]|\.\d)", lambda _: instead, text, count=1)


def grouped(number: str, group: str, point: str, *, indian: bool = False) -> str:
    sign, digits = ("-", number[1:]) if number.startswith("-") else ("", number)
    whole, _, rest = digits.partition(".")
    parts = [whole[-3:]]
    whole = whole[:-3]
    size = 2 if indian else 3
    while whole:
        parts.insert(0, whole[-size:])
        whole = whole[:-size]
    return sign + group.join(parts) + (point + rest if rest else "")


def said_in_locale(base: Base, draw: Draw) -> Case | None:
    keys = [key for key in numbers_in(base) if len(base.member(key).lstrip("-")) > 4]
    if not keys:
        return None
    shown = base.member(draw.one_of("key", keys))
    ways = [
        grouped(shown, ",", "."),
        grouped(shown, ".", ","),
        grouped(shown, " ", ","),
        grouped(shown, "\u202f", ","),
        grouped(shown, "'", "."),
        grouped(shown, ",", ".", indian=True),
    ]
    return replace(plain_case(base), text=swap(base.text, shown, draw.one_of("way", ways)))


def rounded(base: Base, draw: Draw) -> Case | None:
    keys = [key for key in numbers_in(base) if "." in base.member(key).rstrip("0").rstrip(".")]
    keys = [key for key in keys if abs(Decimal(base.member(key))) >= 60]
    if not keys:
        return None
    shown = base.member(draw.one_of("key", keys))
    fair = f"{Decimal(shown):.{draw.number('places', len(shown.partition('.')[2]))}f}"
    return replace(plain_case(base), text=swap(base.text, shown, fair))


def about(base: Base, draw: Draw) -> Case | None:
    keys = [key for key in numbers_in(base) if abs(Decimal(base.member(key))) >= 300]
    if not keys:
        return None
    shown = base.member(draw.one_of("key", keys))
    near = f"{Decimal(f'{Decimal(shown):.2g}'):f}"
    word = draw.one_of("word", ("about", "roughly", "approximately", "around", "nearly"))
    return replace(plain_case(base), text=swap(base.text, shown, f"{word} {near}"))


_CONVERTED = {
    "days": ("24", "hours"), "kg": ("1000", "g"), "km": ("1000", "m"), "minutes": ("60", "seconds"),
    "bytes": ("0.000001", "MB"), "GB": ("1000", "MB"), "months": ("", ""),
}  # fmt: skip


def in_another_unit(base: Base, draw: Draw) -> Case | None:
    factor, unit = _CONVERTED.get(base.unit, ("", ""))
    if base.value_key not in numbers_in(base) or not factor:
        if base.unit in _SYMBOLS and base.value_key in numbers_in(base):
            shown = base.member(base.value_key)
            minor = f"{Decimal(shown) * 100:.0f}"
            word = "pence" if base.unit == "GBP" else "cents"
            return replace(
                plain_case(base), text=base.text.replace(f"{shown} {base.unit}", f"{minor} {word}")
            )
        return None
    shown = base.member(base.value_key)
    other = f"{(Decimal(shown) * Decimal(factor)).normalize():f}"
    text = base.text.replace(f"{shown} {base.unit}", f"{other} {unit}")
    if draw.number("value too", 2):
        return replace(plain_case(base), text=text, value=other, unit=unit)
    return replace(plain_case(base), text=text)


MONTHS = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
]


def date_in_words(base: Base, draw: Draw) -> Case | None:
    found = re.search(r"(\d{4})-(\d{2})-(\d{2})", base.text)
    if found is None:
        return None
    year, month, day = found.groups()
    name = MONTHS[int(month) - 1]
    ways = (
        f"{int(day)} {name} {year}", f"{name} {int(day)}, {year}", f"{day}.{month}.{year}",
        f"{day}/{month}/{year}", f"{int(day)} {name[:3]} {year}", f"{name} {year}",
    )  # fmt: skip
    return replace(plain_case(base), text=base.text.replace(found[0], draw.one_of("way", ways)))


def with_a_symbol(base: Base, draw: Draw) -> Case | None:
    code = next((c for c in _SYMBOLS if re.search(rf"\d {c}\b", base.text)), None)
    if code is None:
        return None
    text = re.sub(
        rf"(-?)([\d.]+) {code}\b",
        lambda m: f"{m[1]}{_SYMBOLS[code]}{grouped(m[2], ',', '.')}",
        base.text,
    )
    return replace(plain_case(base), text=text)


_STATUS = re.compile(r"\b[A-Z][A-Z_]{3,}\b")


def in_small_letters(base: Base, draw: Draw) -> Case | None:
    if not _STATUS.search(base.text):
        return None
    text = _STATUS.sub(lambda m: m[0].lower().replace("_", " "), base.text)
    return replace(plain_case(base), text=text)


_EXCLUDED = {
    "ACTIVE": ("frozen", "blocked", "expired"), "FROZEN": ("active", "closed"),
    "CANCELLED": ("active", "frozen"), "DELIVERED": ("in transit", "returned"),
    "PENDING": ("completed", "failed"), "CLOSED": ("open", "active"),
}  # fmt: skip


def not_the_opposite(base: Base, draw: Draw) -> Case | None:
    status = base.value.strip('"')
    others = _EXCLUDED.get(status)
    if others is None or f"is {status}." not in base.text:
        return None
    other = draw.one_of("other", [word for word in others if " " not in word])
    text = base.text.replace(f"is {status}.", f"is not {other}.")
    return replace(plain_case(base), text=text)


def without_a_value(base: Base, draw: Draw) -> Case | None:
    return replace(plain_case(base), value="", unit="")


def derived_total(base: Base, draw: Draw) -> Case | None:
    """A sum of two members of one kind, by a derivation."""
    return _total(base, draw, wrong=False)


def _total(base: Base, draw: Draw, *, wrong: bool) -> Case | None:
    pairs = (("amount", "fee"), ("total", "shipping"), ("atm_daily", "payments_daily"),
             ("duration_minutes", "delay_minutes"), ("amount", "balance"))  # fmt: skip
    members: dict[str, object] = json.loads(base.output, parse_float=Decimal)
    one, other = next(((a, b) for a, b in pairs if a in members and b in members), ("", ""))
    if not one:
        return None
    total = Decimal(str(members[one])) + Decimal(str(members[other]))
    if wrong:
        total += draw.one_of("off", (Decimal(1), Decimal("-2"), Decimal(10)))
    by = draw.one_of("by", (f"{one} + {other}", "sources[0] + sources[1]", ""))
    return Case(
        text=f"Together that is {total}.",
        value=str(total),
        unit="",
        sources=(f"/calls/c1/output/{one}", f"/calls/c1/output/{other}"),
        outputs=(("c1", base.output),),
        derivation=by,
    )


# ---- making it false -------------------------------------------------------------------------


def _wrong_number(shown: str, draw: Draw) -> str:
    """Another number of the same look."""
    places = len(shown.partition(".")[2])
    step = Decimal(1).scaleb(-places)
    value = Decimal(shown)
    change = draw.one_of(
        "change", (step, step * 10, value * Decimal("0.1"), value * Decimal("-0.25"), Decimal(100))
    )
    other = value + (change or Decimal(1))
    changed = f"{other:.{places}f}"
    return changed if Decimal(changed) != value else f"{value + 1:.{places}f}"


def other_number(base: Base, draw: Draw) -> Case | None:
    """In the sentence and the value."""
    if base.value_key not in numbers_in(base):
        return None
    shown = base.member(base.value_key)
    wrong = _wrong_number(shown, draw)
    return replace(plain_case(base), text=swap(base.text, shown, wrong), value=wrong)


def other_number_said(base: Base, draw: Draw) -> Case | None:
    """In the sentence only."""
    keys = numbers_in(base)
    if not keys:
        return None
    shown = base.member(draw.one_of("key", keys))
    return replace(plain_case(base), text=swap(base.text, shown, _wrong_number(shown, draw)))


def other_value(base: Base, draw: Draw) -> Case | None:
    """In the value only."""
    if base.value_key not in numbers_in(base):
        return None
    return replace(plain_case(base), value=_wrong_number(base.member(base.value_key), draw))


_WRONG_UNITS = {
    "days": "weeks", "kg": "g", "km": "miles", "minutes": "hours", "bytes": "kB", "GB": "TB",
    "percent": "permille", "months": "years",
}  # fmt: skip


def other_unit(base: Base, draw: Draw) -> Case | None:
    other = _WRONG_UNITS.get(base.unit) or _FOREIGN.get(base.unit)
    if other is None or f" {base.unit}" not in base.text:
        return None
    text = base.text.replace(f" {base.unit}", f" {other}", 1)
    if draw.number("unit too", 2):
        return replace(plain_case(base), text=text, unit=other)
    return replace(plain_case(base), text=text)


def other_sign(base: Base, draw: Draw) -> Case | None:
    keys = [key for key in numbers_in(base) if Decimal(base.member(key))]
    if not keys:
        return None
    shown = base.member(draw.one_of("key", keys))
    other = shown[1:] if shown.startswith("-") else f"-{shown}"
    return replace(plain_case(base), text=swap(base.text, shown, other))


def other_date(base: Base, draw: Draw) -> Case | None:
    found = re.search(r"(\d{4})-(\d{2})(?:-(\d{2}))?", base.text)
    if found is None:
        return None
    year, month, day = int(found[1]), int(found[2]), int(found[3] or 0)
    which = draw.number("part", 3 if day else 2)
    year, month = (
        (year + 1, month) if which == 0 else (year, month % 12 + 1 if which == 1 else month)
    )
    day = day if which != 2 else day % 28 + 1
    wrong = f"{year}-{month:02}" + (f"-{day:02}" if day else "")
    return replace(plain_case(base), text=base.text.replace(found[0], wrong))


def negated(base: Base, draw: Draw) -> Case | None:
    for verb, without in (
        (" holds ", " does not hold "), (" is ", " is not "), (" are ", " are not "),
        (" costs ", " does not cost "), (" arrives ", " does not arrive "),
        (" takes ", " does not take "), (" weighs ", " doesn't weigh "),
        (" has ", " does not have "),
        (" uses ", " does not use "), (" pays ", " does not pay "), (" went ", " never went "),
    ):  # fmt: skip
        if verb in base.text:
            return replace(plain_case(base), text=base.text.replace(verb, without, 1))
    return None


def other_source(base: Base, draw: Draw) -> Case | None:
    """The sources lead to another call of the kind, where the value is another one."""
    members: dict[str, object] = json.loads(base.output, parse_float=str)
    key = base.value_key
    value = members[key]
    if isinstance(value, bool | list):
        return None
    other = dict(members)
    if isinstance(value, int):
        other[key] = value + 1 + draw.number("off", 40)
    elif _NUMBER.fullmatch(str(value)):
        other[key] = _Number(_wrong_number(str(value), draw))
    else:
        known = {"ACTIVE": "FROZEN", "FROZEN": "ACTIVE", "CANCELLED": "ACTIVE", "PENDING": "FAILED"}
        other[key] = known.get(str(value), "")
        if not other[key]:
            return None
    text = _dumped(other)
    sources = tuple(f"/calls/c2/output/{key}" for key in base.keys)
    return replace(plain_case(base), sources=sources, outputs=(("c1", base.output), ("c2", text)))


class _Number(str):
    """Written without quotes."""


def _dumped(members: dict[str, object]) -> str:
    parts = [f"{json.dumps(key)}:{_member(value)}" for key, value in members.items()]
    return "{" + ",".join(parts) + "}"


def _member(value: object) -> str:
    """Decimal numbers were read as they are written."""
    is_number = isinstance(value, str) and _NUMBER.fullmatch(value) and "." in value
    return str(value) if is_number else json.dumps(value)


def other_status(base: Base, draw: Draw) -> Case | None:
    status = base.value.strip('"')
    if not _STATUS.fullmatch(status) or status not in base.text:
        return None
    others = [w for w in ("ACTIVE", "FROZEN", "CANCELLED", "EXPIRED", "FAILED") if w != status]
    other = draw.one_of("other", others)
    text = swap(base.text, status, other)
    if draw.number("value too", 2):
        return replace(plain_case(base), text=text, value=json.dumps(other))
    return replace(plain_case(base), text=text)


def other_code(base: Base, draw: Draw) -> Case | None:
    codes = [
        k
        for k in base.keys
        if re.fullmatch(r"[\w-]*\d{3,}", base.member(k)) and k not in numbers_in(base)
    ]
    codes = [key for key in codes if _has(base.text, base.member(key))]
    if not codes:
        return None
    shown = base.member(draw.one_of("key", codes))
    place = max(i for i, mark in enumerate(shown) if mark.isdigit()) - draw.number("place", 2)
    wrong = (
        shown[:place]
        + str((int(shown[place]) + 1 + draw.number("by", 8)) % 10)
        + shown[place + 1 :]
    )
    return replace(plain_case(base), text=swap(base.text, shown, wrong))


def no_such_source(base: Base, draw: Draw) -> Case | None:
    case = plain_case(base)
    which = draw.number("which", 3)
    if which == 0:
        return replace(case, sources=())
    wrong = f"/calls/c9/output/{base.value_key}" if which == 1 else case.sources[0] + "_total"
    return replace(case, sources=(wrong, *case.sources[1:]))


def wrong_total(base: Base, draw: Draw) -> Case | None:
    return _total(base, draw, wrong=True)


def as_it_was(base: Base, draw: Draw) -> Case | None:
    return plain_case(base)


TRUE: tuple[Mutation, ...] = (
    as_it_was, said_in_locale, rounded, about, in_another_unit, date_in_words, with_a_symbol,
    in_small_letters, not_the_opposite, without_a_value, derived_total,
)  # fmt: skip
FALSE: tuple[Mutation, ...] = (
    other_number, other_number_said, other_value, other_unit, other_sign, other_date, negated,
    other_source, other_status, other_code, no_such_source, wrong_total,
)  # fmt: skip
