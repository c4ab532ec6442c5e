"""JSON values for handlers: exact numbers in, payload text out.

Integers arrive as `int` of any size and every other number as `Decimal`, because 0.10 must not
become 0.1000000000000000055. A handler that wants the bytes themselves takes `call.arguments_text`
and returns `JsonText`, which passes unchanged. This module never checks who may send what;
`codec.scan` does.
"""

from decimal import Decimal
from typing import TypeAlias

import jiter
import msgspec

from acp_spec.model.payload import ABSENT, Payload, payload

Json: TypeAlias = "bool | int | float | Decimal | str | list[Json] | dict[str, Json] | None"

_ENCODER = msgspec.json.Encoder(decimal_format="number")


class JsonText(bytes):
    """JSON text that is to pass byte for byte: `return JsonText(call.arguments_text)`."""

    __slots__ = ()


def read(text: Payload | bytes, *, absent: Json = None) -> Json:
    """The value of a payload; `absent` when nothing was sent. Numbers stay exact."""
    data = bytes(text)
    if not data:
        return absent
    value: Json = jiter.from_json(data, float_mode="decimal", cache_mode="keys")
    return value


def write(value: object) -> Payload:
    """A handler's value as payload text. Raises TypeError or ValueError for what JSON cannot
    say.
    """
    if isinstance(value, JsonText):
        return payload(bytes(value))
    if isinstance(value, msgspec.Raw):
        return value if bytes(value) else ABSENT
    return payload(_ENCODER.encode(value))
