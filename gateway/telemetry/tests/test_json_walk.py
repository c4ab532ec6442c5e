"""The pieces of a JSON document, where they stand."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.telemetry.json_walk import Malformed, decoded, encoded, pieces


def walked(document: bytes, wanted: tuple[str, ...] = ("never",)) -> list[tuple[bytes, bool]]:
    return [
        (document[one.start : one.end], one.is_whole)
        for one in pieces(document, lambda keys: keys == wanted)
    ]


def test_keys_strings_numbers_and_words_come_in_order() -> None:
    assert walked(rb'{"a" : [1, "x\"]", null], "b": {}}') == [
        (b'"a"', False),
        (b"1", False),
        (rb'"x\"]"', False),
        (b"null", False),
        (b'"b"', False),
    ]


def test_a_value_that_is_wanted_comes_whole_wherever_arrays_are_around_it() -> None:
    document = b'{"a":[{"b":{"x":[1,"}"]},"c":2},{"b":"s"}],"b":3}'
    whole = [said for said, is_whole in walked(document, ("a", "b")) if is_whole]
    assert whole == [b'{"x":[1,"}"]}', b'"s"']


@pytest.mark.parametrize("document", [b"{", b"]", b'{"a":1]', b"{1:2}", rb'{"\x":1}', b'{"a":[1}'])
def test_brackets_and_keys_that_do_not_fit_are_no_json(document: bytes) -> None:
    with pytest.raises(Malformed):
        walked(document, ("a",))


@given(st.text(alphabet=st.characters()))
def test_a_text_is_the_same_after_it_was_written_and_read(text: str) -> None:
    assert decoded(encoded(text)) == text == json.loads(encoded(text))


def test_half_of_a_pair_is_written_as_an_escape() -> None:
    assert encoded("ü\ud800") == rb'"\u00fc\ud800"'
    assert encoded("ü") == '"ü"'.encode()
