"""Outputs are compared by what they mean, and differences counted by field."""

import json

from hypothesis import given
from hypothesis import strategies as st

from gateway.governance.comparison import FIELDS_MAX, OTHER, canonical, compare, counted

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=12,
)


def test_order_and_spelling_say_nothing() -> None:
    assert compare(b'{"a": 1.0, "b": [1e2]}', b'{"b":[100],"a":1}').equal


def test_true_is_not_one_and_null_is_not_absent() -> None:
    assert not compare(b"true", b"1").equal
    assert not compare(b"null", b"").equal
    assert compare(b"", b"").equal


def test_numbers_are_exact() -> None:
    assert not compare(b"9007199254740993", b"9007199254740992").equal
    assert not compare(
        b"123456789012345678901234567890.1", b"123456789012345678901234567890.2"
    ).equal


def test_each_differing_field_is_named_once() -> None:
    found = compare(
        b'{"a": {"x": 1, "y": 2}, "list": [1, 2, 3], "s/l": 1}',
        b'{"a": {"x": 1, "y": 3}, "list": [9, 9, 3], "new": 0}',
    )
    assert found.fields == ("/a/y", "/list/*", "/s~1l", "/new")


def test_ignored_fields_may_differ() -> None:
    left, right = b'{"at": {"h": 1}, "v": 1}', b'{"at": {"h": 2}, "v": 1}'
    assert compare(left, right, ignore=("/at",)).equal
    assert not compare(left, right, ignore=("/a",)).equal


def test_the_table_of_fields_stays_short() -> None:
    table: dict[str, int] = {}
    for number in range(FIELDS_MAX + 50):
        table = counted(table, (f"/f{number}",))
    assert len(table) == FIELDS_MAX + 1
    assert table[OTHER] == 50


@given(VALUES, VALUES)
def test_canonical_texts_are_equal_exactly_when_values_are(left: object, right: object) -> None:
    one, other = json.dumps(left).encode(), json.dumps(right).encode()
    assert compare(one, other).equal is (canonical(one) == canonical(other))
    assert compare(one, json.dumps(left, indent=1, sort_keys=True).encode()).equal
