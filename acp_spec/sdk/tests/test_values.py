"""Numbers for handlers are exact, and what JSON cannot say is not said."""

from decimal import Decimal

import jiter
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acp_spec.model.payload import ABSENT, is_absent
from acp_spec.sdk.values import Json, JsonText, read, write

KEYS = st.text(max_size=5)
NUMBERS = st.integers(-(10**40), 10**40) | st.decimals(
    allow_nan=False, allow_infinity=False, min_value=-(10**20), max_value=10**20
)
JSON = st.recursive(
    st.none() | st.booleans() | st.text(max_size=8) | NUMBERS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)


@given(value=JSON)
def test_what_is_written_reads_back_the_same(value: Json) -> None:
    assert read(write(value)) == value


def test_a_tenth_is_a_tenth_and_a_large_integer_is_whole() -> None:
    assert read(b'{"a":0.10,"n":9007199254740993}') == {
        "a": Decimal("0.10"),
        "n": 9007199254740993,
    }
    assert bytes(write({"a": Decimal("0.10")})) == b'{"a":0.10}'


def test_text_passes_untouched() -> None:
    text = b'{ "a" : 1E2 }'
    assert bytes(write(JsonText(text))) == text


def test_nothing_and_null_are_told_apart() -> None:
    assert read(ABSENT, absent="nothing") == "nothing"
    assert read(write(None), absent="nothing") is None
    assert not is_absent(write(None))


@pytest.mark.parametrize("value", [object(), Decimal("NaN"), Decimal("Infinity"), {1, object()}])
def test_what_json_cannot_say_is_an_error(value: object) -> None:
    with pytest.raises((TypeError, ValueError)):
        write(value)


def test_what_is_written_is_json() -> None:
    assert jiter.from_json(bytes(write({"a": [1, True, None, "é"]}))) == {"a": [1, True, None, "é"]}


@pytest.mark.parametrize("digits", [4_000, 4_301, 20_000])
def test_an_integer_of_thousands_of_digits_is_read_exactly(digits: int) -> None:
    """Python takes 4,300 digits from text; one more was a 500 of the component."""
    value = read(b'{"n":' + b"9" * digits + b',"x":0.10}')
    assert isinstance(value, dict)
    assert value["n"] == Decimal("9" * digits)
    assert value["x"] == Decimal("0.10")


def test_a_number_beyond_every_measure_is_told() -> None:
    with pytest.raises(ValueError, match="beyond every measure"):
        read(b"[1e99999999999999999999]")
