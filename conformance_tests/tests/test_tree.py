"""One tree, two bindings: what a case states is what the peer gets, byte for byte."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance_tests.messages.tree import (
    Inexpressible,
    Text,
    Tree,
    at,
    from_proto,
    plain,
    read_json,
    to_proto,
    write_value,
)

REQUEST: Tree = {
    "context": {"call_id": "c", "attempt": 2, "labels": {"a": "b"}},
    "action": "x.y",
    "arguments": Text(b'{"n":0.10,"a":[1,{}]}'),
}
PAYLOADS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def test_both_bindings_give_the_same_tree_back() -> None:
    over_json = read_json(write_value(REQUEST), "ExecuteRequest")
    over_proto = from_proto(to_proto(REQUEST, "ExecuteRequest"), "ExecuteRequest")
    assert over_json == over_proto == REQUEST


@given(PAYLOADS)
def test_payload_text_passes_both_bindings_untouched(value: object) -> None:
    text = Text(write_value(value))  # type: ignore[arg-type]
    tree: Tree = {"action": "a", "arguments": text}
    assert read_json(write_value(tree), "ExecuteRequest") == tree
    assert from_proto(to_proto(tree, "ExecuteRequest"), "ExecuteRequest") == tree


def test_an_unknown_enum_and_an_unknown_field_can_be_said_in_protobuf() -> None:
    data = to_proto({"status": "PERHAPS", "of_the_future": 1}, "Health")
    assert from_proto(data, "Health") == {"status": "#99"}
    assert b"1" in data


def test_what_protobuf_cannot_say_is_told() -> None:
    with pytest.raises(Inexpressible):
        to_proto({"action": 5}, "ExecuteRequest")


def test_paths_step_into_payloads() -> None:
    assert at(REQUEST, "arguments/a/0") == 1
    assert plain(REQUEST["arguments"]) == {"n": __import__("decimal").Decimal("0.10"), "a": [1, {}]}


def test_a_body_that_is_no_object_is_no_tree() -> None:
    assert read_json(b"<html>", "Card") is None
    assert read_json(b"[1]", "Card") is None
