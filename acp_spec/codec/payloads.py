"""Every payload inside a message, with its place: for the checks that look at each alone."""

from collections.abc import Iterator
from functools import cache
from typing import Any

import msgspec

from acp_spec.codec.refusals import Direction, refused
from acp_spec.codec.scan import PayloadRefused, check_payload
from acp_spec.codec.shapes import Field, Kind, Many, shape_of, structs_within
from acp_spec.model.payload import is_absent


def payloads_of(message: msgspec.Struct, path: str = "$") -> Iterator[tuple[str, bytes]]:
    """The payloads that are there, each with its JSON path, in the order of the fields."""
    for field in _fields_with_payloads(type(message)):
        value: Any = getattr(message, field.attribute)
        here = f"{path}.{field.wire}"
        if field.kind is Kind.PAYLOAD:
            if not is_absent(value):
                yield here, bytes(value)
        elif field.many is Many.LIST:
            for index, item in enumerate(value):
                yield from payloads_of(item, f"{here}[{index}]")
        elif value is not None:
            yield from payloads_of(value, here)


def check_each(message: msgspec.Struct, direction: Direction, *, max_bytes: int) -> None:
    """Scan every payload of a decoded message alone; raises AcpFailure naming the one refused."""
    for path, data in payloads_of(message):
        try:
            check_payload(data, max_bytes=max_bytes)
        except PayloadRefused as problem:
            raise refused(direction, problem, path=path) from None


@cache
def _fields_with_payloads(struct: type[msgspec.Struct]) -> tuple[Field, ...]:
    return tuple(
        field
        for field in shape_of(struct).fields
        if field.kind is Kind.PAYLOAD or (field.kind is Kind.STRUCT and _holds_payload(field.type))
    )


def _holds_payload(struct: type[msgspec.Struct]) -> bool:
    return any(
        field.kind is Kind.PAYLOAD
        for held in structs_within(struct)
        for field in shape_of(held).fields
    )
