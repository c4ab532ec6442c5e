"""Messages as protobuf: the same values, the same refusals as JSON, payload bytes untouched.

One table per type is built from the descriptors at first use; a message is then one loop over the
fields that are set (json_format would cost ten times as much). Absent and null stay apart: a
payload field without bytes is absent, `null` is four bytes. Optional numbers keep their presence.
"""

import enum
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from operator import attrgetter
from typing import Any, TypeVar

import msgspec
from google.protobuf.message import DecodeError, Message

from acp_spec.bindings.fields import MAX_RESPONSE_BYTES, READS_AS
from acp_spec.codec.payloads import check_each
from acp_spec.codec.refusals import Direction, refused, wrong
from acp_spec.codec.scan import PayloadProblem, PayloadRefused
from acp_spec.codec.shapes import Field, Kind, Many, message_name, shape_of
from acp_spec.model.payload import payload
from acp_spec.proto.v1 import acp_pb2

T = TypeVar("T", bound=msgspec.Struct)
Convert = Callable[[Any], Any]


class _Wrong(Exception):
    """A value that breaks the contract; the place is put together on the way out."""

    def __init__(self, said: str, *steps: str) -> None:
        super().__init__(said)
        self.said = said
        self.steps = list(steps)

    def __str__(self) -> str:
        return f"${''.join(reversed(self.steps))}: {self.said}"


# ---- outwards ---------------------------------------------------------------------------------


def to_proto(message: msgspec.Struct) -> bytes:
    """The message in protobuf's binary form."""
    writing = _writing(type(message))
    return bytes(writing.message(**_tree(writing, message)).SerializeToString())


def tree_of(message: msgspec.Struct) -> dict[str, Any]:
    """What a protobuf field of this message's type is built from, inside a larger message."""
    return _tree(_writing(type(message)), message)


def _tree(writing: "_Writing", message: msgspec.Struct) -> dict[str, Any]:
    """What the protobuf class is built from: only the fields that differ from their default."""
    tree: dict[str, Any] = {}
    for attribute, wire, default, write in writing.writers:
        value = getattr(message, attribute)
        if value is not default:
            tree[wire] = value if write is None else write(value)
    return tree


def _writer(field: Field) -> Callable[[Any], Any] | None:
    """How one field's value goes into protobuf; None = as it is."""
    one: Callable[[Any], Any]
    match field.kind:
        case Kind.PAYLOAD:
            one = bytes
        case Kind.ENUM:
            # By identity: an enum's own hash is a Python function and would cost more than this.
            numbers = {id(member): number for member, number in _numbers(field.type).items()}

            def one(member: Any) -> int:
                return numbers[id(member)]

        case Kind.STRUCT:
            one = partial(_tree, _writing(field.type))
        case _:
            return None
    if field.many is Many.LIST:
        return lambda values: [one(value) for value in values]
    return one


# ---- inwards ----------------------------------------------------------------------------------


def from_proto(type_: type[T], data: bytes, *, direction: Direction = Direction.REQUEST) -> T:
    """Read protobuf's binary form; strict for a request, lenient for a response.

    Raises AcpFailure as the JSON codec does. Payloads are not scanned: `decode_*` do that too.
    """
    reading = _reading(type_, direction)
    try:
        built: T = _build(reading, reading.message.FromString(data))
    except _Wrong as said:
        raise wrong(direction, str(said)) from None
    except DecodeError:
        text = f"$: the bytes are not a protobuf message {message_name(type_)}"
        raise wrong(direction, text) from None
    return built


def from_message(
    type_: type[T], found: Message, *, direction: Direction, max_bytes: int = MAX_RESPONSE_BYTES
) -> T:
    """Read and check one part of a larger message that protobuf has parsed already."""
    try:
        built: T = _build(_reading(type_, direction), found)
    except _Wrong as said:
        raise wrong(direction, str(said)) from None
    check_each(built, direction, max_bytes=max_bytes)
    return built


def decode_request(type_: type[T], data: bytes, *, max_bytes: int = MAX_RESPONSE_BYTES) -> T:
    """Read and check a request: bounds, sizes, and every payload once."""
    return _checked(type_, data, direction=Direction.REQUEST, max_bytes=max_bytes)


def decode_response(type_: type[T], data: bytes, *, max_bytes: int = MAX_RESPONSE_BYTES) -> T:
    """Read and check a peer's response; unknown enum values read as the safest."""
    return _checked(type_, data, direction=Direction.RESPONSE, max_bytes=max_bytes)


def _checked(type_: type[T], data: bytes, *, direction: Direction, max_bytes: int) -> T:
    if len(data) > max_bytes:
        detail = f"{len(data)} bytes, at most {max_bytes} are allowed"
        raise refused(direction, PayloadRefused(PayloadProblem.TOO_LARGE, max_bytes, detail=detail))
    message = from_proto(type_, data, direction=direction)
    check_each(message, direction, max_bytes=max_bytes)
    return message


def _build(reading: "_Reading", found: Any) -> Any:
    """The struct: plain fields all at once, then the others where they are set."""
    values: dict[str, Any] = dict(zip(reading.plain, reading.get_plain(found), strict=False))
    for attribute, wire, is_right, said in reading.checks:
        if not is_right(values[attribute]):
            raise _Wrong(said, f".{wire}")
    try:
        for attribute, wire, convert in reading.filled:
            if value := getattr(found, wire):
                values[attribute] = convert(value)
        for attribute, wire, convert in reading.present:
            if found.HasField(wire):
                values[attribute] = convert(getattr(found, wire))
    except _Wrong as failed:
        failed.steps.append(f".{wire}")
        raise
    try:
        return reading.struct(**values)
    except TypeError:
        missing = next(wire for attribute, wire in reading.required if attribute not in values)
        raise _Wrong(f"Object missing required field `{missing}`") from None


def _converter(field: Field, direction: Direction) -> Convert:
    """How one field's value comes out of protobuf."""
    if field.many is Many.MAP:
        return dict
    one = _one_converter(field, direction)
    if field.many is not Many.LIST:
        return _same if one is None else one
    return tuple if one is None else _list_converter(one)


def _one_converter(field: Field, direction: Direction) -> Convert | None:
    match field.kind:
        case Kind.PAYLOAD:
            return payload
        case Kind.ENUM:
            return _enum_converter(field.type, direction)
        case Kind.STRUCT:
            return partial(_build, _reading(field.type, direction))
        case _:
            check = _check(field)
            return _checking(*check) if check else None


def _same(value: Any) -> Any:
    return value


def _list_converter(one: Convert) -> Convert:
    def convert(values: Any) -> tuple[Any, ...]:
        items = []
        for index, value in enumerate(values):
            try:
                items.append(one(value))
            except _Wrong as failed:
                failed.steps.append(f"[{index}]")
                raise
        return tuple(items)

    return convert


def _enum_converter(type_: type, direction: Direction) -> Convert:
    members = {number: member for member, number in _numbers(type_).items()}
    safest = READS_AS.get(type_) if direction is Direction.RESPONSE else None
    known = ", ".join(str(member.name) for member in members.values())

    def convert(value: int) -> Any:
        member = members.get(value, safest)
        if member is None:
            raise _Wrong(f"Invalid enum value {value}; known: {known}")
        return member

    return convert


def _checking(is_right: Convert, said: str) -> Convert:
    def convert(value: Any) -> Any:
        if not is_right(value):
            raise _Wrong(said)
        return value

    return convert


def _check(field: Field) -> tuple[Convert, str] | None:
    """What a text or number must keep, in the words of the JSON decoder."""
    bounds = field.bounds
    if field.kind is Kind.NUMBER:
        # JSON has no infinity and no not-a-number, so neither has this binding.
        return math.isfinite, "Expected a finite number"
    if bounds.minimum is not None and bounds.minimum >= 0:
        return bounds.minimum.__le__, f"Expected `int` >= {bounds.minimum}"
    if bounds.min_length:
        return bool, "Expected `str` of length >= 1"
    return None


# ---- tables -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Writing:
    """How a type goes out: attribute, wire name, default (not written), conversion."""

    message: Any
    writers: tuple[tuple[str, str, object, Convert | None], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reading:
    """How a type comes in.

    `plain` fields hold their zero when they are not on the wire, so all are read in one call.
    `filled` ones differ from their default when they are not empty, `present` ones know presence.
    """

    struct: type[msgspec.Struct]
    message: Any
    plain: tuple[str, ...]
    get_plain: Callable[[Any], tuple[Any, ...]]
    checks: tuple[tuple[str, str, Convert, str], ...]
    filled: tuple[tuple[str, str, Convert], ...]
    present: tuple[tuple[str, str, Convert], ...]
    required: tuple[tuple[str, str], ...]


@cache
def _writing(struct: type[msgspec.Struct]) -> _Writing:
    fields = shape_of(struct).fields
    return _Writing(
        message=_message(struct),
        writers=tuple((f.attribute, f.wire, f.default, _writer(f)) for f in fields),
    )


@cache
def _reading(struct: type[msgspec.Struct], direction: Direction) -> _Reading:
    fields, message = shape_of(struct).fields, _message(struct)
    presence = {f.name for f in message.DESCRIPTOR.fields if f.has_presence}
    plain = tuple(f for f in fields if _is_plain(f) and f.wire not in presence)
    others = tuple(f for f in fields if f not in plain)
    checks = [(f, check) for f in plain if (check := _check(f))]
    converters = [(f.attribute, f.wire, _converter(f, direction)) for f in others]
    return _Reading(
        struct=struct,
        message=message,
        plain=tuple(f.attribute for f in plain),
        get_plain=_getter([f.wire for f in plain]),
        checks=tuple((f.attribute, f.wire, *check) for f, check in checks),
        filled=tuple(c for c in converters if c[1] not in presence),
        present=tuple(c for c in converters if c[1] in presence),
        required=tuple((f.attribute, f.wire) for f in fields if f.required),
    )


def _is_plain(field: Field) -> bool:
    return field.many is Many.ONE and field.kind in {
        Kind.TEXT,
        Kind.INTEGER,
        Kind.NUMBER,
        Kind.FLAG,
    }


def _getter(names: list[str]) -> Callable[[Any], tuple[Any, ...]]:
    """All these fields as a tuple, in one call (attrgetter gives no tuple for fewer than two)."""
    if not names:
        return lambda _found: ()
    return attrgetter(*names, names[0])


def _message(struct: type[msgspec.Struct]) -> Any:
    message: Any = getattr(acp_pb2, message_name(struct))
    known = set(message.DESCRIPTOR.fields_by_name)
    assert {f.wire for f in shape_of(struct).fields} == known, f"{struct} differs from acp.proto"
    return message


@cache
def _numbers(type_: type) -> dict[enum.Enum, int]:
    """Enum member -> its number; on the wire the member's name carries the type as prefix."""
    assert issubclass(type_, enum.Enum)
    descriptor = acp_pb2.DESCRIPTOR.enum_types_by_name[type_.__name__]
    prefix = descriptor.values_by_number[0].name.removesuffix("UNSPECIFIED")
    return {member: descriptor.values_by_name[prefix + member.name].number for member in type_}
