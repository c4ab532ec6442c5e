"""Which names are secret."""

import json

import pytest

from gateway.telemetry.secret_names import FieldNames

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
