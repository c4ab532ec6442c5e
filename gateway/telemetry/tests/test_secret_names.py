"""Which names are secret, and what a schema declares."""

import json

import pytest

from gateway.telemetry.secret_names import FieldNames, declared_secrets

FIELDS = FieldNames(("password", "api_key", "pin", "card.number", "vault.*"))


@pytest.mark.parametrize(
    "key",
    ["password", "PASSWORD", "userPassword", "db-password", "password_2", "pass_word", "apiKey",
     "X-Api-Key", "pin", "userPin", "card_pin", "PIN"],
)  # fmt: skip
def test_a_name_holds_at_the_end_of_a_key(key: str) -> None:
    assert FIELDS.holds((key,))
    assert FIELDS.may_be_in(json.dumps({key: 1}).encode())


@pytest.mark.parametrize(
    "key", ["passwords_seen", "spin", "shipping", "pinned", "key", "number", ""]
)
def test_and_not_elsewhere(key: str) -> None:
    assert not FIELDS.holds((key,))


def test_a_path_holds_at_the_end_of_the_keys() -> None:
    assert FIELDS.holds(("card", "number"))
    assert FIELDS.holds(("payment", "Card", "number"))
    assert FIELDS.holds(("vault", "anything"))
    assert not FIELDS.holds(("number",))
    assert not FIELDS.holds(("card", "x", "number"))


def test_so_many_keys_that_they_are_forgotten_again_hold_all_the_same() -> None:
    assert not any(FIELDS.holds((f"k{n}x",)) for n in range(10_001))
    assert FIELDS.holds(("password",))


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
