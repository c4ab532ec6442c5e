"""Two JSON texts compared by what they mean: order of members and spelling of numbers say nothing.

Differences are counted by field, with array places written `*`, so that a thousand sessions make a
short table. Numbers are compared exactly (1.0 equals 1, 0.1 does not equal 0.10000000000000001).
"""

import json
from collections.abc import Iterator
from decimal import Decimal
from typing import TypeAlias

import msgspec

FIELDS_MAX = 200
"""Fields told apart in one table; further ones are counted together under `OTHER`."""

OTHER = "(other fields)"

Json: TypeAlias = "dict[str, Json] | list[Json] | str | bool | Decimal | None"
_ABSENT = object()


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """`fields`: JSON pointers (array places as `*`) that differ, each once; the root is `/`."""

    equal: bool
    fields: tuple[str, ...] = ()


def compare(left: bytes, right: bytes, *, ignore: tuple[str, ...] = ()) -> Comparison:
    """Compare two payloads (empty = absent, which is not null). `ignore`: pointers as in `fields`;
    what stands below an ignored one is ignored too."""
    if not left or not right:
        equal = not left and not right
        return Comparison(equal=equal, fields=() if equal else ("/",))
    found = _differences(read(left), read(right), at="")
    fields = tuple(dict.fromkeys(where or "/" for where in found if not _ignored(where, ignore)))
    return Comparison(equal=not fields, fields=fields)


def counted(table: dict[str, int], fields: tuple[str, ...]) -> dict[str, int]:
    """The table with one more of each field; it stays short."""
    grown = dict(table)
    for field in fields:
        name = field if field in grown or len(grown) < FIELDS_MAX else OTHER
        grown[name] = grown.get(name, 0) + 1
    return grown


def read(text: bytes) -> Json:
    """The value of a payload that the gateway has checked; every number exact."""
    value: Json = json.loads(text, parse_float=Decimal, parse_int=Decimal)
    return value


def canonical(text: bytes) -> str:
    """One text for all that mean the same; empty for an absent payload."""
    return written(read(text)) if text else ""


def written(value: Json) -> str:
    match value:
        case dict():
            members = (f"{json.dumps(name)}:{written(value[name])}" for name in sorted(value))
            return "{" + ",".join(members) + "}"
        case list():
            return "[" + ",".join(map(written, value)) + "]"
        case Decimal():
            return _number(value)
        case _:
            return json.dumps(value)


def _number(value: Decimal) -> str:
    """Sign, digits without zeros at the end, exponent: `normalize` would round to 28 digits."""
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int), "JSON has no NaN"
    text = "".join(map(str, digits)).lstrip("0")
    kept = text.rstrip("0")
    if not kept:
        return "0"
    return f"{'-' if sign else ''}{kept}e{exponent + len(text) - len(kept)}"


def _differences(left: Json, right: Json, *, at: str) -> Iterator[str]:
    if isinstance(left, dict) and isinstance(right, dict):
        for name in dict.fromkeys([*left, *right]):
            one, other = left.get(name, _ABSENT), right.get(name, _ABSENT)
            where = f"{at}/{name.replace('~', '~0').replace('/', '~1')}"
            if one is _ABSENT or other is _ABSENT:
                yield where
            else:
                yield from _differences(left[name], right[name], at=where)
    elif isinstance(left, list) and isinstance(right, list):
        if len(left) != len(right):
            yield f"{at}/*"
        for one_item, other_item in zip(left, right, strict=False):
            yield from _differences(one_item, other_item, at=f"{at}/*")
    elif type(left) is not type(right) or left != right:
        yield at


def _ignored(where: str, ignore: tuple[str, ...]) -> bool:
    return any(where == one or where.startswith(f"{one}/") for one in ignore)
