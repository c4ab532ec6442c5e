"""YAML and JSON as a tree with places: what is read, what is refused, and where."""

import json
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acp_spec.codec.yaml_tree import (
    MAX_BYTES,
    MAX_VALUES,
    Mapping,
    Place,
    Scalar,
    ScalarKind,
    Sequence,
    Tree,
    json_text,
    read_tree,
)

TEXT, NUMBER, BOOLEAN, NULL = ScalarKind


def value(source: str) -> Tree:
    """The value of the key `v` in a one-line file."""
    reading = read_tree(f"v: {source}\n".encode())
    assert reading.faults == ()
    assert isinstance(reading.tree, Mapping)
    found = reading.tree.get("v")
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("source", "kind", "text"),
    [
        ("on", TEXT, "on"),
        ("yes", TEXT, "yes"),
        ("no", TEXT, "no"),
        ("Off", TEXT, "Off"),
        ("true", BOOLEAN, "true"),
        ("False", BOOLEAN, "false"),
        ("null", NULL, "null"),
        ("~", NULL, "null"),
        ("", NULL, "null"),
        ("1.0", NUMBER, "1.0"),
        ("0.10", NUMBER, "0.10"),
        ("9007199254740993", NUMBER, "9007199254740993"),
        ("-1e5", NUMBER, "-1e5"),
        ("1.0.0", TEXT, "1.0.0"),
        ("010", TEXT, "010"),
        ("0x1F", TEXT, "0x1F"),
        ("1_000", TEXT, "1_000"),
        ("12:30:00", TEXT, "12:30:00"),
        ("2020-01-01", TEXT, "2020-01-01"),
        (".nan", TEXT, ".nan"),
        ("'true'", TEXT, "true"),
        ('"1.0"', TEXT, "1.0"),
        ("<<", TEXT, "<<"),
    ],
)
def test_scalars_are_read_by_the_core_rules_of_yaml_1_2(
    source: str, kind: ScalarKind, text: str
) -> None:
    found = value(source)
    assert isinstance(found, Scalar)
    assert (found.kind, found.text) == (kind, text)


def test_on_and_yes_are_keys_like_any_other() -> None:
    reading = read_tree(b"on: {yes: 1}\nno: 2\n")
    assert reading.tree is not None
    assert json_text(reading.tree) == b'{"on":{"yes":1},"no":2}'


FAULTS = [
    (b"", (1, 1), "", "the file is empty"),
    (b"# nothing\n", (1, 1), "", "the file is empty"),
    (b"a: [1, 2", (1, 9), "", "this is not YAML"),
    (b"a: b: c", (1, 5), "", "mapping values are not allowed"),
    (b"a: 1\n\tb: 2", (2, 1), "", "this is not YAML"),
    (b"a: 1\n---\nb: 2\n", (2, 1), "", "a second document"),
    (b"a: \xff", (1, 4), "", "not valid UTF-8"),
    (b"ab: 1\nc: \xe2\x82", (2, 4), "", "not valid UTF-8"),
    (b"a: 1\nb: x\x00", (2, 5), "", "not allowed in YAML"),
    (b"a: &x 1\nb: *x", (2, 4), "b", "aliases (*name) are not allowed"),
    (b"a: &a [*a]", (1, 8), "a[0]", "aliases"),
    (b"a: *nobody", (1, 4), "a", "aliases"),
    (b"a: !!python/object:os.system {}", (1, 4), "a", "tags"),
    (b"a: !mine 1", (1, 4), "a", "tags (!mine)"),
    (b"a: 1\nb: {c: 1,\n  c: 2}", (3, 3), "b.c", "the key is already set in line 2"),
    (b'{"a": 1, "a": 2}', (1, 10), "a", "already set"),
    (b"a: [{b: 1, b: 2}]", (1, 12), "a[0].b", "already set"),
    (b"{[1]: 2}", (1, 2), "", "a key must be plain text"),
    (b"a: " + b"[" * 40 + b"]" * 40, (1, 35), "a" + "[0]" * 31, "nested more than 32 deep"),
    (b"[" * 100_000, None, None, ""),
    (b"a: " + b"x" * MAX_BYTES, (1, 1), "", "at most 262144"),
]


@pytest.mark.parametrize(("data", "place", "path", "message"), FAULTS, ids=range(len(FAULTS)))
def test_a_fault_has_a_place_a_path_and_a_message(
    data: bytes, place: tuple[int, int] | None, path: str | None, message: str
) -> None:
    faults = read_tree(data).faults
    assert len(faults) == 1
    assert message in faults[0].message
    if place is not None:
        at = faults[0].place
        assert ((at.line, at.column), faults[0].path) == (place, path)


def test_faults_do_not_hide_each_other() -> None:
    reading = read_tree(b"a: *x\nb: !t 1\na: 2\n")
    assert [(f.place.line, f.path) for f in reading.faults] == [(1, "a"), (2, "b"), (3, "a")]
    assert reading.tree is not None


SPOTS: Final = [
    ("v: input.query", 5, Place(1, 8)),
    ("v: 'it''s x'", 4, Place(1, 9)),
    ('v: "a\\u0041b"', 3, Place(1, 12)),
    ('v: "\\"q\\" x"', 5, Place(1, 11)),
    ("v:   |\n  one\n  two", 5, Place(1, 6)),
    ("v: one\n   two", 5, Place(1, 4)),
    ("v: abc", 4, Place(1, 7)),
    ("v: abc", 99, Place(1, 4)),
]


@pytest.mark.parametrize(("source", "column", "place"), SPOTS)
def test_a_character_of_a_one_line_text_has_a_place(source: str, column: int, place: Place) -> None:
    tree = read_tree(source.encode()).tree
    assert isinstance(tree, Mapping)
    found = tree.get("v")
    assert isinstance(found, Scalar)
    assert found.at(column) == place


def test_places_count_characters_not_bytes() -> None:
    tree = read_tree("é: 'é' # é\nüü: x".encode()).tree
    assert isinstance(tree, Mapping)
    assert [entry.value.place for entry in tree.entries] == [Place(1, 4), Place(2, 5)]


def test_json_surrogate_pairs_are_one_character() -> None:
    tree = read_tree(b'{"a": "\\ud83d\\ude00", "b": "\\/"}').tree
    assert tree is not None
    assert json.loads(json_text(tree)) == {"a": "\U0001f600", "b": "/"}
    assert read_tree(b'{"a": "\\ud83d"}').faults


characters = st.characters(exclude_categories=["Cs", "Cc"])
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(characters, max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(characters, max_size=8), inner, max_size=4)
    ),
    max_leaves=20,
)


@given(json_values, st.sampled_from([None, 1, 4]), st.booleans())
def test_json_is_yaml_and_comes_out_as_it_went_in(
    document: object, indent: int | None, ascii_only: bool
) -> None:
    source = json.dumps({"v": document}, indent=indent, ensure_ascii=ascii_only)
    reading = read_tree(source.encode())
    assert reading.faults == ()
    assert reading.tree is not None
    assert json.loads(json_text(reading.tree)) == {"v": document}


@given(st.text(st.sampled_from("ab:-[]{}'\"\n \t&*!|>#,?%@`\\0.~\ufeff\x85"), max_size=40))
def test_any_text_is_a_tree_or_faults_inside_the_file(text: str) -> None:
    reading = read_tree(text.encode())
    assert (reading.tree is not None) or reading.faults
    for fault in reading.faults:
        assert fault.place.line >= 1
        assert fault.place.column >= 1
        assert fault.message


def test_numbers_keep_their_spelling_in_json() -> None:
    found = value("{a: 0.10, b: [9007199254740993, 1e5], c: 1_0}")
    assert json_text(found) == b'{"a":0.10,"b":[9007199254740993,1e5],"c":"1_0"}'
    assert isinstance(value("[1]"), Sequence)


def test_a_file_with_more_values_than_any_workflow_is_not_read_to_its_end() -> None:
    """A list of a hundred thousand numbers fits the size, and held the reader for 0.6 s."""
    assert read_tree(b"[" + b"1," * (MAX_VALUES - 2) + b"1]").tree is not None
    reading = read_tree(b"[" + b"1," * (MAX_VALUES - 1) + b"1]")
    assert reading.tree is None
    assert f"more than {MAX_VALUES}" in reading.faults[-1].message
