"""Any message of any wire type, drawn from its shape; payloads are any JSON text, oddly written."""

import enum
from typing import Any

import msgspec
from hypothesis import strategies as st

from acp_spec.codec.shapes import Field, Kind, Many, shape_of
from acp_spec.model.bounds import INT64_MAX
from acp_spec.model.payload import ABSENT, Payload, payload

NUMBERS = ("9007199254740993", "0.10", "123456789012345678.90", "-0", "1E400", "0", "-1.5e-7")

_text = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
_space = st.sampled_from(["", " ", "\n", "\t "])
_leaf = st.one_of(
    st.sampled_from(["null", "true", "false", '"\\u00e9\\n"', '"é"', *NUMBERS]),
    st.integers().map(str),
    _text.map(lambda t: msgspec.json.encode(t).decode()),
)


def _array(items: list[str], space: str) -> str:
    return f"[{space}{(space + ',' + space).join(items)}{space}]"


def _object(members: dict[str, str], space: str) -> str:
    pairs = (msgspec.json.encode(k).decode() + space + ":" + v for k, v in members.items())
    return "{" + space + ("," + space).join(pairs) + "}"


json_text = st.recursive(
    _leaf,
    lambda inner: st.one_of(
        st.builds(_array, st.lists(inner, max_size=3), _space),
        st.builds(_object, st.dictionaries(_text, inner, max_size=3), _space),
    ),
    max_leaves=6,
)
payloads: st.SearchStrategy[Payload] = json_text.map(lambda text: payload(text.encode()))


def messages(struct: type[msgspec.Struct]) -> st.SearchStrategy[Any]:
    """Messages of this type that keep their bounds; optional fields are there or not."""
    fields = shape_of(struct).fields
    required = {f.attribute: _field(f) for f in fields if f.required}
    optional = {f.attribute: _field(f) for f in fields if not f.required}
    drawn = st.fixed_dictionaries(required, optional=optional)
    return drawn.map(lambda values: struct(**values))


def _field(field: Field) -> st.SearchStrategy[Any]:
    one = _one(field)
    match field.many:
        case Many.ONE:
            return (
                one if field.required or field.kind is not Kind.PAYLOAD else st.just(ABSENT) | one
            )
        case Many.OPTIONAL:
            return st.none() | one
        case Many.LIST:
            return st.lists(one, min_size=field.bounds.list_min_length, max_size=2).map(tuple)
        case Many.MAP:
            return st.dictionaries(_text, one, max_size=2)


def _one(field: Field) -> st.SearchStrategy[Any]:
    bounds = field.bounds
    match field.kind:
        case Kind.TEXT:
            return st.text(
                st.characters(exclude_categories=["Cs"]), min_size=bounds.min_length, max_size=12
            )
        case Kind.INTEGER:
            assert bounds.minimum is not None, f"{field.attribute} has no bounds"
            return st.integers(bounds.minimum, bounds.maximum or INT64_MAX)
        case Kind.NUMBER:
            return st.floats(allow_nan=False, allow_infinity=False)
        case Kind.FLAG:
            return st.booleans()
        case Kind.ENUM:
            assert issubclass(field.type, enum.Enum)
            return st.sampled_from(list(field.type))
        case Kind.PAYLOAD:
            return payloads
        case Kind.STRUCT:
            return messages(field.type)
        case Kind.SCALAR:
            raise AssertionError(f"{field.attribute} has no form in protobuf")
