"""Schemas that documents show: each kind of field once, and values checked against what it says."""

import enum
from typing import Annotated, Literal

import msgspec
import pytest

from acp_spec.codec.schema_check import compile_schema
from acp_spec.model.payload import ABSENT, Payload, payload
from gateway.transports.schemas_of import Schemas


class Colour(enum.StrEnum):
    RED = "RED"


class Leaf(msgspec.Struct, frozen=True):
    n: int = 0


class Tree(msgspec.Struct, frozen=True, kw_only=True):
    """A tree."""

    name: Annotated[str, msgspec.Meta(min_length=1)]
    ratio: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0
    colour: Colour = Colour.RED
    kind: Literal["a", "b"] = "a"
    raw: Payload = ABSENT
    many: tuple[Leaf, ...] = ()
    pair: tuple[int, str] = (0, "")
    by_name: dict[str, float] = {}
    maybe: Leaf | None = None
    inner: "Tree | None" = None
    names: frozenset[str] = frozenset()
    yes: bool = False


def test_a_definition_says_every_field_and_which_are_needed() -> None:
    schemas = Schemas()
    assert schemas.ref(Tree) == {"$ref": "#/components/schemas/Tree"}
    tree = schemas.definitions["Tree"]
    assert set(tree["properties"]) == set(Tree.__struct_fields__)
    assert (tree["required"], tree["description"]) == (["name"], "A tree.")
    assert set(schemas.definitions) == {"Tree", "Leaf"}


@pytest.mark.parametrize(
    ("text", "fits"),
    [
        ('{"name": "x", "inner": {"name": "y"}, "pair": [1, "a"], "raw": [1]}', True),
        ('{"name": ""}', False),
        ("{}", False),
        ('{"name": "x", "ratio": 2}', False),
        ('{"name": "x", "colour": "BLUE"}', False),
        ('{"name": "x", "by_name": {"a": "b"}}', False),
        ('{"name": "x", "many": [{"n": "1"}]}', False),
    ],
)
def test_what_a_definition_allows_is_what_is_read(text: str, fits: bool) -> None:
    schemas = Schemas()
    whole = {**schemas.ref(Tree), "components": {"schemas": schemas.definitions}}
    schema = compile_schema(payload(msgspec.json.encode(whole)))
    assert not isinstance(schema, str), schema
    assert schema.is_valid(msgspec.json.decode(text)) is fits
    try:
        msgspec.json.decode(text, type=Tree)
        read = True
    except msgspec.ValidationError:
        read = False
    assert read is fits
