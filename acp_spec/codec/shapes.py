"""The shape of every wire type, read once from its `msgspec.Struct`.

Both codecs, the generator of schemas and the property tests walk these tables, so that a field has
one meaning everywhere. Nothing here knows protobuf, and nothing here reads a value.
"""

import enum
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import msgspec
from msgspec import inspect

from acp_spec.model.payload import Payload
from acp_spec.model.session import Component


class Kind(enum.Enum):
    """What one value of a field is."""

    TEXT = "text"
    INTEGER = "integer"
    NUMBER = "number"
    FLAG = "flag"
    ENUM = "enum"
    PAYLOAD = "payload"
    STRUCT = "struct"
    SCALAR = "scalar"
    """A number, text, flag or null: only in records that have no protobuf form."""


class Many(enum.Enum):
    """How many values a field holds. OPTIONAL: one, or None when absent."""

    ONE = "one"
    OPTIONAL = "optional"
    LIST = "list"
    MAP = "map"


class _Required:
    def __repr__(self) -> str:
        return "REQUIRED"


REQUIRED: Final = _Required()
"""The default of a field that has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What `msgspec.Meta` demands of one value (or, for `list_min_length`, of the list)."""

    minimum: int | None = None
    maximum: int | None = None
    min_length: int = 0
    list_min_length: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One field: `attribute` in Python, `wire` in JSON and proto (they differ for `from`)."""

    attribute: str
    wire: str
    kind: Kind
    many: Many
    type: type
    default: object
    bounds: Bounds

    @property
    def required(self) -> bool:
        return self.default is REQUIRED


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    type: type[msgspec.Struct]
    fields: tuple[Field, ...]


_SCALARS: Final[dict[type, tuple[Kind, type]]] = {
    inspect.StrType: (Kind.TEXT, str),
    inspect.IntType: (Kind.INTEGER, int),
    inspect.FloatType: (Kind.NUMBER, float),
    inspect.BoolType: (Kind.FLAG, bool),
    inspect.RawType: (Kind.PAYLOAD, Payload),
}


_MESSAGE_NAMES: Final[dict[type[msgspec.Struct], str]] = {Component: "RegisteredComponent"}
"""In acp.proto, services and messages share one name space, and `Component` is the service."""


@cache
def shape_of(struct: type[msgspec.Struct]) -> Shape:
    """The table of this type's fields, in the order of their declaration."""
    described = inspect.type_info(struct)
    assert isinstance(described, inspect.StructType)
    return Shape(type=struct, fields=tuple(_field(field) for field in described.fields))


def message_name(struct: type[msgspec.Struct]) -> str:
    """The name of this type in acp.proto, in schemas and in examples."""
    return _MESSAGE_NAMES.get(struct, struct.__name__)


def structs_within(struct: type[msgspec.Struct]) -> tuple[type[msgspec.Struct], ...]:
    """This type and every type it holds, each once, holders first."""
    found: dict[type[msgspec.Struct], None] = {}
    waiting = [struct]
    while waiting:
        current = waiting.pop(0)
        if current in found:
            continue
        found[current] = None
        waiting += [f.type for f in shape_of(current).fields if f.kind is Kind.STRUCT]
    return tuple(found)


def _field(field: inspect.Field) -> Field:
    described, many, list_min_length = _multiplicity(field.type)
    kind, type_ = _kind(described)
    return Field(
        attribute=field.name,
        wire=field.encode_name,
        kind=kind,
        many=many,
        type=type_,
        default=_default(field),
        bounds=_bounds(described, list_min_length),
    )


def _multiplicity(described: inspect.Type) -> tuple[inspect.Type, Many, int]:
    if isinstance(described, inspect.UnionType):
        [one] = [t for t in described.types if not isinstance(t, inspect.NoneType)]
        return one, Many.OPTIONAL, 0
    if isinstance(described, inspect.VarTupleType):
        return described.item_type, Many.LIST, described.min_length or 0
    if isinstance(described, inspect.DictType):
        return described.value_type, Many.MAP, 0
    return described, Many.ONE, 0


def _kind(described: inspect.Type) -> tuple[Kind, type]:
    if isinstance(described, inspect.StructType):
        return Kind.STRUCT, described.cls
    if isinstance(described, inspect.EnumType):
        return Kind.ENUM, described.cls
    if isinstance(described, inspect.UnionType):
        return Kind.SCALAR, object
    return _SCALARS[type(described)]


def _default(field: inspect.Field) -> object:
    if field.required:
        return REQUIRED
    if field.default_factory is not msgspec.NODEFAULT:
        return field.default_factory()
    return field.default


def _bounds(described: inspect.Type, list_min_length: int) -> Bounds:
    found: Any = described
    if isinstance(described, inspect.StrType):
        return Bounds(min_length=found.min_length or 0, list_min_length=list_min_length)
    if isinstance(described, inspect.IntType):
        return Bounds(minimum=found.ge, maximum=found.le, list_min_length=list_min_length)
    return Bounds(list_min_length=list_min_length)
