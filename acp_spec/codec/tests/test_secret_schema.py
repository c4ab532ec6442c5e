"""What a schema calls secret, and how records say where."""

import json

import pytest

from acp_spec.codec.json_text import path_to_pointer
from acp_spec.codec.secret_schema import PATHS_MAX, declared_secrets, path_of


@pytest.mark.parametrize(
    ("schema", "declared"),
    [
        ({"writeOnly": True}, {()}),
        ({"properties": {"a": {"format": "password"}}}, {("a",)}),
        ({"properties": {"a": {"writeOnly": "yes"}, "b": {"format": "email"}}}, set()),
        ({"items": {"properties": {"a": {"x-acp-secret": True}}}}, {("a",)}),
        ({"patternProperties": {"^x": {"writeOnly": True}}}, {("*",)}),
        ({"$ref": "#/$defs/a~1b", "$defs": {"a/b": {"writeOnly": True}}}, {()}),
        ({"$ref": "#/$defs/none"}, set()),
        ({"$ref": "https://elsewhere/schema"}, set()),
        ({"allOf": [{"then": {"properties": {"a": {"writeOnly": True}}}}]}, {("a",)}),
        ([], set()),
        (True, set()),
    ],
)
def test_what_a_schema_declares(schema: object, declared: set[tuple[str, ...]]) -> None:
    assert declared_secrets(json.dumps(schema).encode()) == declared


def test_what_is_no_schema_declares_nothing_and_one_that_names_itself_ends() -> None:
    assert declared_secrets(b"{") == frozenset()
    assert declared_secrets(b"") == frozenset()
    within = {"properties": {"a": {"writeOnly": True}, "self": {"$ref": "#"}}}
    assert ("self", "self", "a") in declared_secrets(json.dumps(within).encode())


def test_a_schema_that_names_itself_everywhere_has_a_bounded_number_of_paths() -> None:
    itself = {f"k{n}": {"$ref": "#"} for n in range(40)}
    schema = {"properties": {"a": {"writeOnly": True}, **itself}}
    assert len(declared_secrets(json.dumps(schema).encode())) == PATHS_MAX


@pytest.mark.parametrize("path", [(), ("a",), ("a/b", "c~d", "*", ""), ("",)])
def test_a_pointer_leads_back_to_its_path(path: tuple[str, ...]) -> None:
    assert path_of(path_to_pointer(("output", *path))) == ("output", path)
