"""Sources: what a claim's JSON Pointers lead to, as facts that a sentence can be held against.

A pointer that leads nowhere is a missing source. A scalar is one fact, a small object or list one
per leaf; what is longer than `SOURCE_CHARACTERS_MAX` is no source that a person could check either.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from enum import Enum, auto
from typing import Final, TypeAlias

import msgspec

from acp_spec.codec.json_text import PointerError, find, parse_pointer, path_to_pointer
from acp_spec.model.calls import SettledCall
from gateway.rewards.grounding.dates import When, when_of
from gateway.rewards.grounding.mentions import NO_MENTIONS, Mentions, mentions_of
from gateway.rewards.grounding.units import (
    CURRENCIES,
    Dimension,
    Unit,
    minor_factor,
    name_words,
    unit_named,
    unit_of_name,
)

SOURCE_CHARACTERS_MAX: Final = 300
_MAGNITUDES: Final = range(-40, 41)
"""Powers of ten that are somebody's number; beyond, arithmetic would only overflow."""

Settled: TypeAlias = Mapping[str, SettledCall]
Value: TypeAlias = "bool | int | Decimal | str | list[Value] | dict[str, Value] | None"


class Kind(Enum):
    """What a leaf is, so that only like is compared with like."""

    NUMBER = auto()
    MOMENT = auto()
    CODE = auto()
    WORD = auto()  # one of a few: a status, a kind
    UNIT = auto()
    NAME = auto()
    TEXT = auto()
    FLAG = auto()
    NOTHING = auto()
    LIST = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One leaf of a source. `name`: the member that holds it; `text`: as a person would write it.

    `assumed`: the unit was found beside the number, not in its own name.
    """

    pointer: str
    name: str
    kind: Kind
    text: str
    number: Decimal | None = None
    unit: Unit | None = None
    assumed: bool = False
    moment: When | None = None
    inside: Mentions = NO_MENTIONS
    is_value: bool = False

    @property
    def words(self) -> tuple[str, ...]:
        return name_words(self.name)


class TooLong(Exception):
    """The source exists, but is more than can be checked."""


_NUMERIC: Final = re.compile(rb'"?[-+\d\[{]')
"""Only a number, perhaps in a string or deeper, needs the unit that stands beside it."""
_decoder = msgspec.json.Decoder(float_hook=Decimal)
_raw_members = msgspec.json.Decoder(dict[str, msgspec.Raw])


def source_text(pointer: str, calls: Settled) -> bytes | None:
    """The JSON text that a pointer into `{calls: {<call_id>: ...}}` leads to; None: nowhere."""
    try:
        tokens = parse_pointer(pointer)
        if len(tokens) < 2 or tokens[0] != "calls":
            return None
        call = calls.get(tokens[1])
        if call is None:
            return None
        return _within(call, tokens[2:])
    except PointerError:
        return None


def _within(call: SettledCall, tokens: tuple[str, ...]) -> bytes | None:
    """Payloads are walked as they are: writing a large call out again would cost its length."""
    if tokens[:1] in (("output",), ("arguments",)):
        whole = bytes(call.output if tokens[0] == "output" else call.arguments)
        return find(whole, path_to_pointer(tokens[1:])) if whole else None
    if not tokens:
        raise TooLong("a whole call")
    empty = msgspec.Raw(b"{}")
    told = msgspec.structs.replace(call, output=empty, arguments=empty)
    text = find(msgspec.json.encode(told), path_to_pointer(tokens))
    default = getattr(call, tokens[0], None) if len(tokens) == 1 else None
    return msgspec.json.encode(default) if text is None and default is not None else text


def facts_of(pointer: str, text: bytes, *, calls: Settled) -> list[Fact]:
    """The leaves of a source; TooLong if there is too much of it."""
    if len(text.decode("utf-8", "replace")) > SOURCE_CHARACTERS_MAX:
        raise TooLong(f"{len(text)} bytes")
    value: Value = _decoder.decode(text)
    beside = _beside(pointer, calls) if _NUMERIC.match(text) else {}
    return _leaves(pointer, value, beside=beside, name="")


def value_of(text: bytes) -> Value:
    """A JSON text with its numbers exact."""
    value: Value = _decoder.decode(text)
    return value


def _leaves(pointer: str, value: Value, *, beside: Mapping[str, Value], name: str) -> list[Fact]:
    name = _last_name(pointer) or name
    if isinstance(value, dict):
        leaves = [
            fact
            for key, item in value.items()
            for fact in _leaves(pointer + path_to_pointer([key]), item, beside=value, name=key)
        ]
        return leaves or [_nothing(pointer, name)]
    if isinstance(value, list):
        own = Fact(pointer=pointer, name=name, kind=Kind.LIST, text="", number=Decimal(len(value)))
        return [own] + [
            fact
            for index, item in enumerate(value)
            for fact in _leaves(f"{pointer}/{index}", item, beside=beside, name=name)
        ]
    return [leaf(pointer, value, beside=beside, name=name)]


def leaf(
    pointer: str,
    value: bool | int | Decimal | str | None,
    *,
    beside: Mapping[str, Value],
    name: str,
) -> Fact:
    """What one scalar is."""
    if value is None:
        return _nothing(pointer, name)
    if isinstance(value, bool):
        shown = "yes" if value else "no"
        number = Decimal(value)
        return Fact(pointer=pointer, name=name, kind=Kind.FLAG, text=shown, number=number)
    if isinstance(value, str):
        return _string(pointer, value, beside=beside, name=name)
    if Decimal(value).adjusted() not in _MAGNITUDES:
        return Fact(pointer=pointer, name=name, kind=Kind.TEXT, text=str(value))
    moment = when_of(str(value), name="_".join(name_words(name)))
    unit, assumed = _unit_beside(name, beside)
    return Fact(
        pointer=pointer,
        name=name,
        kind=Kind.MOMENT if moment else Kind.NUMBER,
        text=str(value),
        number=Decimal(value),
        unit=unit,
        assumed=assumed,
        moment=moment,
    )


def _nothing(pointer: str, name: str) -> Fact:
    return Fact(pointer=pointer, name=name, kind=Kind.NOTHING, text="", number=Decimal(0))


def _string(pointer: str, value: str, *, beside: Mapping[str, Value], name: str) -> Fact:
    """What a string is: a unit, a moment, a number, a code, a word of a few, a name, or text."""
    text = value.strip()
    moment = when_of(text, name="_".join(name_words(name)))
    if not text:
        return _nothing(pointer, name)
    if text in CURRENCIES or (name in ("unit", "currency") and unit_named(text)):
        return Fact(pointer=pointer, name=name, kind=Kind.UNIT, text=text, unit=unit_named(text))
    if moment is not None:
        return Fact(pointer=pointer, name=name, kind=Kind.MOMENT, text=text, moment=moment)
    number = _decimal(text)
    if number is not None and not _is_digits_code(text):
        unit, assumed = _unit_beside(name, beside)
        return Fact(
            pointer=pointer,
            name=name,
            kind=Kind.NUMBER,
            text=text,
            number=number,
            unit=unit,
            assumed=assumed,
        )
    inside = mentions_of(text)
    return Fact(pointer=pointer, name=name, kind=_kind(text, inside), text=text, inside=inside)


def _kind(text: str, inside: Mentions) -> Kind:
    words = text.split()
    if len(words) == 1 and any(mark.isdigit() for mark in text) and not inside.quantities:
        return Kind.CODE
    if _is_digits_code(text):
        return Kind.CODE
    if any(mark.isdigit() for mark in text) or len(words) > 5:
        return Kind.TEXT
    if all(word[0].isupper() and not word.isupper() for word in words) and len(words) > 1:
        return Kind.NAME
    if len(words) == 1 and text[0].isupper() and not text.isupper():
        return Kind.NAME
    return Kind.WORD if len(words) <= 3 else Kind.TEXT


def _is_digits_code(text: str) -> bool:
    """An account, an entry, the last four digits: a string on purpose, so never rounded."""
    return text.isascii() and text.isdigit() and (len(text) >= 4 or text[0] == "0")


def _decimal(text: str) -> Decimal | None:
    if len(text) > 40 or not any(mark.isdigit() for mark in text) or "_" in text:
        return None
    try:
        number = Decimal(text)
    except InvalidOperation:
        return None
    return number if number.is_finite() and number.adjusted() in _MAGNITUDES else None


def _unit_beside(name: str, beside: Mapping[str, Value]) -> tuple[Unit | None, bool]:
    """A number's unit: from its own name, else from a `currency` or `unit` in its object."""
    own = unit_of_name(name)
    currency = beside.get(f"{name}_currency") or beside.get("currency")
    code = currency if isinstance(currency, str) and currency in CURRENCIES else ""
    if own is not None:
        if own.dimension is Dimension.MONEY and not own.currency:
            return minor_factor(Unit(own.dimension, own.factors, code), code), False
        return own, False
    given = beside.get(f"{name}_unit") or beside.get("unit")
    if isinstance(given, str) and unit_named(given):
        return unit_named(given), False
    return (Unit(Dimension.MONEY, (Decimal(1),), code), True) if code else (None, False)


def _beside(pointer: str, calls: Settled) -> Mapping[str, Value]:
    """Short members of the object that holds the source: its currency may stand beside it."""
    parent = source_parent(pointer)
    try:
        text = source_text(parent, calls) if parent else None
        members = _raw_members.decode(text) if text and text[:1] == b"{" else {}
    except (TooLong, msgspec.DecodeError):
        return {}
    return {
        key: value_of(bytes(raw))
        for key, raw in members.items()
        if key.endswith(("currency", "unit")) and len(bytes(raw)) < SOURCE_CHARACTERS_MAX
    }


def source_parent(pointer: str) -> str:
    """The pointer to what holds this; empty when that is a whole call or less."""
    parent = pointer.rpartition("/")[0]
    return parent if parent.count("/") > 2 else ""


def _last_name(pointer: str) -> str:
    """The last member's name on the way; indices name nothing."""
    tokens = parse_pointer(pointer)[2:]
    return next((token for token in reversed(tokens) if not token.isdigit()), "")
