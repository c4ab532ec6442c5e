"""Reading enum values that the strict decoder refuses, without touching a payload's bytes.

The message is taken apart one level at a time with `msgspec.Raw`, only the enum texts are replaced,
and the parts are put together again. It runs after the strict decoder has failed, never before.
"""

import enum
from collections.abc import Callable
from functools import cache

import msgspec

from acp_spec.bindings.fields import READS_AS
from acp_spec.codec.shapes import Field, Kind, Many, shape_of, structs_within

ReadAs = Callable[[type[enum.Enum], str], str]
"""What the text of an enum of this type shall be read as (itself, if nothing better is known)."""

_members = msgspec.json.Decoder(dict[str, msgspec.Raw])
_items = msgspec.json.Decoder(list[msgspec.Raw])
_encoder = msgspec.json.Encoder()


def safest(enum_type: type[enum.Enum], text: str) -> str:
    """A value this version does not know reads as the safest it knows (SPEC section 1)."""
    if text in enum_type.__members__ or enum_type not in READS_AS:
        return text
    name: str = READS_AS[enum_type].name
    return name


def capitals(_enum_type: type[enum.Enum], text: str) -> str:
    """The gateway's own API takes enum names in lower case too."""
    return text.upper()


def rewrite(struct: type[msgspec.Struct], data: bytes, *, read_as: ReadAs) -> bytes:
    """The same message with its enum texts read as `read_as` says; payloads byte for byte.

    Raises msgspec.ValidationError where the message is not made as its type says.
    """
    fields = _fields_with_enums(struct)
    members = _members.decode(data)
    for name in members.keys() & fields.keys():
        members[name] = msgspec.Raw(_field(fields[name], bytes(members[name]), read_as=read_as))
    return _encoder.encode(members)


def _field(field: Field, data: bytes, *, read_as: ReadAs) -> bytes:
    if field.many is Many.LIST:
        items = [
            msgspec.Raw(_one(field, bytes(item), read_as=read_as)) for item in _items.decode(data)
        ]
        return _encoder.encode(items)
    return _one(field, data, read_as=read_as)


def _one(field: Field, data: bytes, *, read_as: ReadAs) -> bytes:
    if data[:1] == b"n":
        return data
    if field.kind is Kind.STRUCT:
        return rewrite(field.type, data, read_as=read_as)
    assert issubclass(field.type, enum.Enum)
    return _encoder.encode(read_as(field.type, msgspec.json.decode(data, type=str)))


@cache
def _fields_with_enums(struct: type[msgspec.Struct]) -> dict[str, Field]:
    return {
        field.wire: field
        for field in shape_of(struct).fields
        if field.kind is Kind.ENUM or (field.kind is Kind.STRUCT and _holds_enum(field.type))
    }


def _holds_enum(struct: type[msgspec.Struct]) -> bool:
    return any(
        f.kind is Kind.ENUM for held in structs_within(struct) for f in shape_of(held).fields
    )
