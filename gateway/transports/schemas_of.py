"""JSON Schema of our message types, for documents that people read.

msgspec's own generator cannot say a default that is raw JSON, which payloads have. A type that this
module does not know is a fault of ours and is refused by name.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec
from msgspec import inspect

Schema = dict[str, Any]
PREFIX: Final = "#/components/schemas/"


class Schemas:
    """Collects the definitions of every struct that a document refers to, by their names."""

    def __init__(self) -> None:
        self.definitions: dict[str, Schema] = {}

    def ref(self, type_: type[msgspec.Struct]) -> Schema:
        """A reference to the definition of a struct."""
        return self._of(inspect.type_info(type_))

    def _of(self, found: inspect.Type) -> Schema:
        if isinstance(found, inspect.StructType):
            return self._struct(found)
        make = _MAKE.get(type(found))
        assert make is not None, f"no JSON Schema for {type(found).__name__}"
        return make(self, found)

    def _struct(self, found: inspect.StructType) -> Schema:
        name = found.cls.__name__
        if name not in self.definitions:
            self.definitions[name] = {}  # a struct may contain itself
            schema: Schema = {
                "type": "object",
                "properties": {one.encode_name: self._of(one.type) for one in found.fields},
            }
            required = [one.encode_name for one in found.fields if one.required]
            if required:
                schema["required"] = required
            if found.cls.__doc__:
                schema["description"] = " ".join(found.cls.__doc__.split())
            self.definitions[name] = schema
        return {"$ref": f"{PREFIX}{name}"}

    def items(self, found: Any) -> Schema:
        return {"type": "array", "items": self._of(found.item_type)}

    def tuple_of(self, found: inspect.TupleType) -> Schema:
        items = [self._of(one) for one in found.item_types]
        return {"type": "array", "prefixItems": items, "items": False}

    def map_of(self, found: inspect.DictType) -> Schema:
        return {"type": "object", "additionalProperties": self._of(found.value_type)}

    def union_of(self, found: inspect.UnionType) -> Schema:
        return {"anyOf": [self._of(one) for one in found.types]}


def _text(schemas: Schemas, found: inspect.StrType) -> Schema:
    limits = {"minLength": found.min_length, "maxLength": found.max_length}
    return {"type": "string"} | _said(limits | {"pattern": found.pattern})


def _number(schemas: Schemas, found: inspect.IntType | inspect.FloatType) -> Schema:
    kind = "integer" if isinstance(found, inspect.IntType) else "number"
    limits = {
        "minimum": found.ge,
        "maximum": found.le,
        "exclusiveMinimum": found.gt,
        "exclusiveMaximum": found.lt,
    }
    return {"type": kind} | _said(limits)


def _words(schemas: Schemas, found: inspect.EnumType) -> Schema:
    return {"enum": [member.value for member in found.cls]}


def _said(limits: Mapping[str, object]) -> Schema:
    return {name: value for name, value in limits.items() if value is not None}


def _fixed(schema: Schema) -> "_Make":
    return lambda schemas, found: dict(schema)


_Make = Callable[[Schemas, Any], Schema]
_MAKE: Final[Mapping[type, _Make]] = {
    inspect.StrType: _text,
    inspect.IntType: _number,
    inspect.FloatType: _number,
    inspect.EnumType: _words,
    inspect.LiteralType: lambda schemas, found: {"enum": list(found.values)},
    inspect.BoolType: _fixed({"type": "boolean"}),
    inspect.NoneType: _fixed({"type": "null"}),
    inspect.RawType: _fixed({}),
    inspect.AnyType: _fixed({}),
    inspect.BytesType: _fixed({"type": "string", "contentEncoding": "base64"}),
    inspect.ListType: Schemas.items,
    inspect.VarTupleType: Schemas.items,
    inspect.SetType: Schemas.items,
    inspect.FrozenSetType: Schemas.items,
    inspect.TupleType: Schemas.tuple_of,
    inspect.DictType: Schemas.map_of,
    inspect.UnionType: Schemas.union_of,
}
