"""JSON values for handlers: exact numbers in, payload text out.

Integers arrive as `int` of any size and every other number as `Decimal`, because 0.10 must not
become 0.1000000000000000055. A handler that wants the bytes themselves takes `call.arguments_text`
and returns `JsonText`, which passes unchanged. What enters here is checked here, once: NaN and
infinity never leave as null, and what leaves is text that every peer can read.
"""

import dataclasses
import json
import math
from decimal import Decimal
from typing import TypeAlias

import jiter
import msgspec

from acp_spec.bindings.fields import MAX_RESPONSE_BYTES
from acp_spec.codec.scan import PayloadRefused, check_payload
from acp_spec.model.payload import ABSENT, Payload, payload

Json: TypeAlias = "bool | int | float | Decimal | str | list[Json] | dict[str, Json] | None"

INT_DIGITS_MAX = 4_000
"""Below what Python converts (sys.get_int_max_str_digits)."""

_ENCODER = msgspec.json.Encoder(decimal_format="number")


class JsonText(bytes):
    """JSON text that is to pass byte for byte: `return JsonText(call.arguments_text)`."""

    __slots__ = ()


def read(text: Payload | bytes, *, absent: Json = None) -> Json:
    """The value of a payload; `absent` when nothing was sent. Numbers stay exact.

    Raises ValueError for a number that Python cannot hold, such as 1e99999999999999999999.
    """
    data = bytes(text)
    if not data:
        return absent
    value: Json
    try:
        value = jiter.from_json(data, float_mode="decimal", cache_mode="keys")
    except (ValueError, ArithmeticError):
        value = _with_long_integers(data)
    return value


def _with_long_integers(data: bytes) -> Json:
    """Integers of more digits than `int` takes from text arrive as `Decimal`."""
    try:
        value: Json = json.loads(data, parse_float=Decimal, parse_int=_whole)
    except ArithmeticError:
        raise ValueError("a number in it is beyond every measure") from None
    return value


def _whole(text: str) -> int | Decimal:
    return int(text) if len(text) <= INT_DIGITS_MAX else Decimal(text)


def write(value: object) -> Payload:
    """A handler's value as payload text. Raises TypeError or ValueError for what JSON cannot say,
    and for text that may not be carried: too deep, a key twice, too large.
    """
    data = bytes(value) if isinstance(value, JsonText | msgspec.Raw) else _encoded(value)
    if not data:
        return ABSENT
    try:
        check_payload(data, max_bytes=MAX_RESPONSE_BYTES)
    except PayloadRefused as refused:
        raise ValueError(str(refused)) from None
    return payload(data)


def _encoded(value: object) -> bytes:
    try:
        data = _ENCODER.encode(value)
    except RecursionError:
        raise ValueError("it nests too deep, or contains itself") from None
    if b"null" in data:  # the encoder's word for NaN and infinity too
        check_sayable(value)
    return data


def check_sayable(value: object) -> None:
    """Raise ValueError where a number or a text inside `value` has no JSON form; payloads that
    are text already are not looked into.
    """
    left: list[object] = [value]
    while left:
        found = left.pop()
        if isinstance(found, float):
            if not math.isfinite(found):
                raise ValueError(f"the number {found} has no JSON form")
        elif isinstance(found, str):
            if not found.isascii():
                found.encode()  # half of a surrogate pair is a UnicodeEncodeError, a ValueError
        else:
            left.extend(_within(found))


def _within(value: object) -> list[object]:
    """What a container holds; nothing for everything else."""
    if isinstance(value, dict):
        return [*value.keys(), *value.values()]
    if isinstance(value, list | tuple | set | frozenset):
        return list(value)
    if isinstance(value, msgspec.Struct):
        return [getattr(value, name) for name in value.__struct_fields__]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [getattr(value, field.name) for field in dataclasses.fields(value)]
    return []
