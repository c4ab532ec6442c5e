"""One message as a tree of dicts, lists and scalars whose payloads stay text (`Text`).

The same tree is written as JSON and as protobuf, guided by the descriptors of acp.proto, so that
a case states a message once. It is lenient on purpose: a suite must be able to say wrong things
and to read them; what cannot be said in protobuf (a number where text belongs) is `Inexpressible`.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import TypeAlias, cast

import msgspec
from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass

from acp_spec.proto.v1 import acp_pb2

UNKNOWN_ENUM_NUMBER = 99
"""What an enum name that does not exist becomes in protobuf."""
UNKNOWN_FIELD_NUMBER = 4000
"""Where the text of an unknown field goes in protobuf; acp.proto stays far below."""


@dataclass(frozen=True, slots=True)
class Text:
    """JSON text, carried byte for byte."""

    data: bytes

    def value(self) -> "Value":
        """What the text says; raises ValueError when it is not JSON."""
        return parse(self.data)


Value: TypeAlias = (
    "bool | int | float | str | Decimal | Text | list[Value] | dict[str, Value] | None"
)
Tree: TypeAlias = dict[str, Value]


class Inexpressible(Exception):
    """The tree cannot be written in this binding."""


def parse(data: bytes) -> Value:
    """JSON text as plain values; fractions keep their digits."""
    return cast("Value", json.loads(data, parse_float=Decimal))


def write_value(value: Value) -> bytes:
    """A value as JSON text; `Text` inside it is written as it stands."""
    match value:
        case Text(data=data):
            return data
        case dict():
            inside = (json.dumps(k).encode() + b":" + write_value(v) for k, v in value.items())
            return b"{" + b",".join(inside) + b"}"
        case list():
            return b"[" + b",".join(write_value(item) for item in value) + b"]"
        case Decimal():
            return str(value).encode()
        case _:
            return json.dumps(value).encode()


def as_text(value: Value) -> Text:
    """A value as payload."""
    return value if isinstance(value, Text) else Text(write_value(value))


def descriptor(message: str) -> Descriptor:
    """The descriptor of a message by its name in acp.proto."""
    return acp_pb2.DESCRIPTOR.message_types_by_name[message]


def prefix_of(enum: EnumDescriptor) -> str:
    """`Effect` -> `EFFECT_`, as the values of its enum begin."""
    return str(enum.values_by_number[0].name).removesuffix("UNSPECIFIED")


# ---- JSON ---------------------------------------------------------------------------------------


def read_json(data: bytes, message: str) -> Tree | None:
    """A JSON body as a tree, or None when it is no JSON object."""
    try:
        return _read_object(data, descriptor(message))
    except (msgspec.MsgspecError, ValueError):
        return None


def _read_object(data: bytes, about: Descriptor) -> Tree:
    raw = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
    return {
        name: _read_field(bytes(text), about.fields_by_name.get(name)) for name, text in raw.items()
    }


def _read_field(data: bytes, field: FieldDescriptor | None) -> Value:
    if field is None or is_map(field):
        return parse(data)
    if is_payload(field):
        return Text(data)
    if field.message_type is None:
        return parse(data)
    try:
        if field.is_repeated:
            items = msgspec.json.decode(data, type=list[msgspec.Raw])
            return [_read_object(bytes(item), field.message_type) for item in items]
        return _read_object(data, field.message_type)
    except msgspec.MsgspecError:
        return parse(data)


def is_payload(field: FieldDescriptor) -> bool:
    """In acp.proto every `bytes` field is a payload."""
    return bool(field.type == FieldDescriptor.TYPE_BYTES)


def is_map(field: FieldDescriptor) -> bool:
    return field.message_type is not None and bool(field.message_type.GetOptions().map_entry)


# ---- protobuf -----------------------------------------------------------------------------------


def to_proto(tree: Tree, message: str) -> bytes:
    """The tree in protobuf's binary form. Raises Inexpressible."""
    about = descriptor(message)
    unknown = [as_text(value) for name, value in tree.items() if name not in about.fields_by_name]
    try:
        data = bytes(_build(tree, about).SerializeToString())
    except (TypeError, ValueError) as problem:
        raise Inexpressible(f"{message}: {problem}") from None
    return data + b"".join(unknown_field(value.data) for value in unknown)


def unknown_field(data: bytes) -> bytes:
    """A length-delimited field that no message has."""
    return varint(UNKNOWN_FIELD_NUMBER << 3 | 2) + varint(len(data)) + data


def varint(number: int) -> bytes:
    """Base 128, little end first."""
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def _build(tree: Tree, about: Descriptor) -> Message:
    built: Message = GetMessageClass(about)()
    for name, value in tree.items():
        field = about.fields_by_name.get(name)
        if field is None or value is None:
            continue
        if is_map(field):
            getattr(built, name).update(_expect(value, dict))
        elif field.is_repeated:
            getattr(built, name).extend([_one(item, field) for item in _expect(value, list)])
        elif field.message_type is not None and not is_payload(field):
            getattr(built, name).CopyFrom(_one(value, field))
            getattr(built, name).SetInParent()
        else:
            setattr(built, name, _one(value, field))
    return built


def _expect(value: Value, kind: type) -> list[Value]:
    if not isinstance(value, kind):
        raise TypeError(f"expected {kind.__name__}, got {value!r}")
    return cast("list[Value]", value)


def _one(value: Value, field: FieldDescriptor) -> object:
    if is_payload(field):
        return as_text(value).data
    if field.enum_type is not None:
        known = field.enum_type.values_by_name.get(f"{prefix_of(field.enum_type)}{value}")
        return UNKNOWN_ENUM_NUMBER if known is None else known.number
    if field.message_type is not None:
        if not isinstance(value, dict):
            raise TypeError(f"{field.name} takes an object, got {value!r}")
        return _build(value, field.message_type)
    return float(value) if isinstance(value, Decimal) else value


def from_proto(data: bytes, message: str) -> Tree | None:
    """Protobuf's binary form as the tree that JSON would have, or None when it is none."""
    about = descriptor(message)
    try:
        return dict(_fields(GetMessageClass(about).FromString(data)))
    except DecodeError:
        return None


def _fields(found: Message) -> Iterator[tuple[str, Value]]:
    for field, value in found.ListFields():
        if is_map(field):
            yield field.name, dict(value)
        elif field.is_repeated:
            yield field.name, [_plain(item, field) for item in value]
        else:
            yield field.name, _plain(value, field)


def _plain(value: object, field: FieldDescriptor) -> Value:
    if is_payload(field):
        return Text(cast("bytes", value))
    if field.enum_type is not None:
        known = field.enum_type.values_by_number.get(cast("int", value))
        return f"#{value}" if known is None else known.name.removeprefix(prefix_of(field.enum_type))
    if field.message_type is not None:
        return dict(_fields(cast("Message", value)))
    return cast("Value", value)


# ---- places -------------------------------------------------------------------------------------


class NoSuchPlace(KeyError):
    """The path leads nowhere."""


def at(tree: Value, path: str) -> Value:
    """The value at `a/b/0/c`; steps into payloads. Raises NoSuchPlace."""
    found = tree
    for part in filter(None, path.split("/")):
        step = part.replace("~1", "/").replace("~0", "~")
        if isinstance(found, Text):
            found = _inside(found, path)
        if isinstance(found, dict) and step in found:
            found = found[step]
        elif isinstance(found, list) and step == "-1" and found:
            found = found[-1]
        elif isinstance(found, list) and step.isdecimal() and int(step) < len(found):
            found = found[int(step)]
        else:
            raise NoSuchPlace(path)
    return found


def _inside(text: Text, path: str) -> Value:
    try:
        return text.value()
    except ValueError:
        raise NoSuchPlace(path) from None


def plain(value: Value) -> Value:
    """The value with every payload parsed, for comparison."""
    match value:
        case Text():
            return plain(value.value())
        case dict():
            return {key: plain(item) for key, item in value.items()}
        case list():
            return [plain(item) for item in value]
        case _:
            return value
