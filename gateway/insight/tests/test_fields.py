"""Values as shares of bins that a reference fixed."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acp_spec.model.card import Action, Card
from acp_spec.model.payload import payload
from gateway.insight.declared import declared
from gateway.insight.fields import CLUSTERS, Field, FieldKind, Leaf, cluster_of, fields_of, leaves
from gateway.insight.samples import Json

leaf = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8))
value: st.SearchStrategy[Json] = st.recursive(
    leaf,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)


def only(values: Sequence[Leaf]) -> list[Field]:
    return fields_of([{"/x": [one]} for one in values])


def kinds(values: Sequence[Leaf]) -> list[FieldKind]:
    return [field.kind for field in only(values)]


def test_places_in_lists_are_one_field_and_their_number_another() -> None:
    assert leaves({"a": [{"b": 1}, {"b": 2}], "c~/": None}) == {
        "/a/#": [2],
        "/a/*/b": [1, 2],
        "/c~0~1": [None],
    }
    assert leaves("plain") == {"/": ["plain"]}


def test_what_a_field_is_shows_in_its_values() -> None:
    assert kinds(["OPEN", "CLOSED"] * 10) == [FieldKind.CODE]
    assert kinds([True, False, None] * 5) == [FieldKind.CODE]
    assert kinds([1, 2.5, None, 4]) == [FieldKind.NUMBER]
    assert kinds(["two words", "three words here"]) == [FieldKind.LENGTH, FieldKind.WORDS]
    assert kinds([f"id-{n}" for n in range(100)]) == [FieldKind.LENGTH, FieldKind.WORDS]


def test_numbers_fall_into_tenths_of_the_reference() -> None:
    (field,) = only([float(number) for number in range(100)])
    places = [next(iter(field.shares({"/x": [float(number)]}))) for number in range(100)]
    assert [places.count(place) for place in range(2, 12)] == [10] * 10
    assert field.shares({"/x": [-1e9]}) == {2: 1.0}
    assert field.shares({"/x": [1e9]}) == {11: 1.0}
    assert field.shares({"/x": ["text"]}) == {1: 1.0}
    assert field.shares({}) == {0: 1.0}


def test_a_number_that_is_nearly_always_the_same_has_a_bin_of_its_own() -> None:
    (field,) = only([7] * 99 + [100])
    assert len({tuple(field.shares({"/x": [one]})) for one in (6.9, 7, 7.1)}) == 3


def test_a_code_that_the_reference_never_had_has_a_bin() -> None:
    (field,) = only(["A", "B"] * 5)
    assert len({tuple(field.shares({"/x": [one]})) for one in ("A", "B", "C")}) == 3


def test_several_items_share_a_record() -> None:
    (field,) = only(["A", "B"] * 5)
    assert sorted(field.shares({"/x": ["A", "A", "A", "B"]}).values()) == [0.25, 0.75]


def test_clusters_are_the_same_in_every_process() -> None:
    assert [cluster_of(piece) for piece in (" th", "the", "äß\ud800")] == [42, 38, 19]
    assert all(0 <= cluster_of(chr(n)) < CLUSTERS for n in range(500))


@given(st.lists(value, min_size=1, max_size=8), value)
def test_every_record_is_one_in_all(reference: list[Json], other: Json) -> None:
    for field in fields_of([leaves(one) for one in reference]):
        for record in [*reference, other]:
            shares = field.shares(leaves(record))
            assert sum(shares.values()) == pytest.approx(1.0)
            assert all(0 <= place < field.bins for place in shares)


def test_a_card_says_which_codes_an_output_has() -> None:
    schema = b"""{"properties": {"state": {"enum": ["OPEN", "SHUT"]}, "n": {"type": "integer"},
        "rows": {"items": {"properties": {"kind": {"const": "row"}}}}, "odd": true}}"""
    actions = (Action(name="desk.ask", output_schema=payload(schema)), Action(name="desk.do"))
    assert declared(Card(name="desk", version="1.0.0", actions=actions)) == {
        ("desk", "desk.ask"): {"/state": ("OPEN", "SHUT"), "/rows/*/kind": ("row",)}
    }


def test_declared_codes_have_bins_although_the_reference_lacks_them() -> None:
    (field,) = fields_of([{"/x": ["OPEN"]}], declared={"/x": ("OPEN", "SHUT")})
    assert field.kind is FieldKind.CODE
    assert field.shares({"/x": ["SHUT"]}) not in ({0: 1.0}, {1: 1.0})
