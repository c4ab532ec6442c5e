"""JSON Schemas (2020-12) of every message that crosses HTTP, each complete in one file.

Shapes give the form, acp.proto's comments the texts (docstrings where it has no such message).
Requests and responses have one schema: it is strict, as a receiver of requests is; unknown fields
stay allowed, as the protocol wants.
"""

import enum
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from acp_spec.bindings.routes import messages_over_http
from acp_spec.codec.generate.protobuf import Comments
from acp_spec.codec.shapes import Field, Kind, Many, message_name, shape_of, structs_within
from acp_spec.model.trajectory import Trajectory

Schema = dict[str, Any]

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
HERE: Final = "#/$defs/"

_SCALARS: Final[dict[Kind, Schema]] = {
    Kind.TEXT: {"type": "string"},
    Kind.INTEGER: {"type": "integer"},
    Kind.NUMBER: {"type": "number"},
    Kind.FLAG: {"type": "boolean"},
    Kind.PAYLOAD: {},
    Kind.SCALAR: {"type": ["number", "string", "boolean", "null"]},
}


def all(comments: Comments) -> Iterator[tuple[str, Schema]]:
    """Every schema file: its name without ending, its document."""
    structs: tuple[type[msgspec.Struct], ...] = (*messages_over_http(), Trajectory)
    for struct in structs:
        yield message_name(struct), standalone(struct, comments)


def standalone(struct: type[msgspec.Struct], comments: Comments) -> Schema:
    """The schema of one message with everything it refers to in `$defs`."""
    name = message_name(struct)
    defs = definitions((struct,), comments, prefix=HERE)
    own = defs.pop(name)
    document = {"$schema": DIALECT, "$id": f"urn:acp:v1:{name}", "title": name, **own}
    return document | ({"$defs": defs} if defs else {})


def definitions(
    structs: tuple[type[msgspec.Struct], ...], comments: Comments, *, prefix: str
) -> dict[str, Schema]:
    """Schemas by name of these messages and of all they hold; `prefix` is how they refer."""
    held = {inner: None for struct in structs for inner in structs_within(struct)}
    enums = {f.type: None for s in held for f in shape_of(s).fields if f.kind is Kind.ENUM}
    found = {message_name(struct): _message(struct, comments, prefix=prefix) for struct in held}
    found |= {type_.__name__: _enum(type_, comments) for type_ in enums}
    return dict(sorted(found.items()))


def _message(struct: type[msgspec.Struct], comments: Comments, *, prefix: str) -> Schema:
    name = message_name(struct)
    fields = shape_of(struct).fields
    schema: Schema = _described(comments.of(name) or _docstring(struct)) | {"type": "object"}
    schema["properties"] = {
        field.wire: _described(comments.of(f"{name}.{field.wire}")) | _field(field, prefix)
        for field in fields
    }
    required = [field.wire for field in fields if field.required]
    return schema | ({"required": required} if required else {})


def _described(text: str) -> Schema:
    return {"description": text} if text else {}


def _docstring(type_: type) -> str:
    """The text of a type that acp.proto does not have (parts of a trajectory)."""
    text = type_.__doc__ or ""
    return "" if text.startswith(type_.__name__ + "(") else " ".join(text.split())


def _field(field: Field, prefix: str) -> Schema:
    one = _one(field, prefix)
    match field.many:
        case Many.LIST:
            least = field.bounds.list_min_length
            return {"type": "array", "items": one} | ({"minItems": least} if least else {})
        case Many.MAP:
            return {"type": "object", "additionalProperties": one}
        case Many.OPTIONAL:
            return {"anyOf": [one, {"type": "null"}]}
        case Many.ONE:
            return one | _default(field)


def _one(field: Field, prefix: str) -> Schema:
    if field.kind in {Kind.STRUCT, Kind.ENUM}:
        name = message_name(field.type) if field.kind is Kind.STRUCT else field.type.__name__
        return {"$ref": prefix + name}
    schema = dict(_SCALARS[field.kind])
    if field.bounds.min_length:
        schema["minLength"] = field.bounds.min_length
    if field.bounds.minimum is not None:
        schema["minimum"] = field.bounds.minimum
    if field.bounds.maximum is not None:
        schema["maximum"] = field.bounds.maximum
    return schema


def _default(field: Field) -> Schema:
    """What an absent field reads as, where that is one word."""
    value = field.default
    if isinstance(value, enum.Enum):
        return {"default": value.name}
    return {"default": value} if isinstance(value, (str, int, float)) else {}


def _enum(type_: type, comments: Comments) -> Schema:
    assert issubclass(type_, enum.Enum)
    text = comments.of(type_.__name__) or _docstring(type_)
    return _described(text) | {"type": "string", "enum": [member.name for member in type_]}
