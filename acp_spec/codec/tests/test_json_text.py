"""Bytes in, the same bytes out: found, spliced and put together without re-encoding."""

import json
import math
from collections.abc import Iterator
from typing import Any, Final

import pytest
import rfc8785
from hypothesis import assume, given
from hypothesis import strategies as st

from acp_spec.codec.json_text import (
    CanonicalError,
    Plain,
    PointerError,
    array_of,
    canonical,
    find,
    object_of,
    parse_pointer,
    path_to_pointer,
    replaced,
    splice,
)
from acp_spec.codec.scan import check_payload

DOCUMENT: Final = b"""
 { "n" : 9007199254740993 , "price":0.10,"big":[ 123456789012345678.90 , 1e400,-0.0 ],
   "nothing":null, "a/b": {"m~n": "x\\u0041\\/"}, "" : { "":"empty" },"t\\u0061g":[[],{}],
   "5":{"0":1}}
"""

text = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
keys = st.sampled_from(["a", "b", "", "~", "/", "0", "1", "-", 'q"', "\\", "é", "{", "\x00"]) | text
numbers = st.sampled_from(
    ["9007199254740993", "0.10", "1E+2", "-0", "123456789012345678.90", "1e999"]
)
blanks = st.sampled_from(["", " ", "\n\t", "\r\n "])


@st.composite
def documents(draw: st.DrawFn, depth: int = 3) -> str:
    """JSON text in odd but legal spelling."""
    kind = draw(st.integers(0, 5 if depth else 3))
    if kind == 0:
        return draw(numbers)
    if kind == 1:
        return json.dumps(draw(text), ensure_ascii=draw(st.booleans()))
    if kind in (2, 3):
        return draw(st.sampled_from(["null", "true", "false", "0", '""', "[]", "{ }"]))
    values = draw(st.lists(documents(depth=depth - 1), max_size=4))
    if kind == 4:
        parts = [draw(blanks) + value + draw(blanks) for value in values]
        return "[" + ",".join(parts or [draw(blanks)]) + "]"
    names = draw(st.lists(keys, min_size=len(values), max_size=len(values), unique=True))
    parts = [
        f"{draw(blanks)}{json.dumps(name, ensure_ascii=draw(st.booleans()))}{draw(blanks)}:"
        f"{draw(blanks)}{value}{draw(blanks)}"
        for name, value in zip(names, values, strict=True)
    ]
    return "{" + ",".join(parts or [draw(blanks)]) + "}"


def parse(data: bytes) -> object:
    """A tree that keeps the spelling of numbers, so that equality means the same tokens."""
    return json.loads(data, parse_float=lambda s: ("number", s), parse_int=lambda s: ("number", s))


def places(
    value: object, path: tuple[str | int, ...] = ()
) -> Iterator[tuple[tuple[str | int, ...], object]]:
    yield path, value
    if isinstance(value, dict):
        for key, child in value.items():
            yield from places(child, (*path, key))
    elif isinstance(value, list):
        for index, child in enumerate(value):
            yield from places(child, (*path, index))


@pytest.mark.parametrize(
    ("pointer", "expected"),
    [
        ("", DOCUMENT.strip()),
        ("/n", b"9007199254740993"),
        ("/price", b"0.10"),
        ("/big", b"[ 123456789012345678.90 , 1e400,-0.0 ]"),
        ("/big/0", b"123456789012345678.90"),
        ("/big/2", b"-0.0"),
        ("/nothing", b"null"),
        ("/a~1b/m~0n", b'"x\\u0041\\/"'),
        ("//", b'"empty"'),
        ("/", b'{ "":"empty" }'),
        ("/tag/1", b"{}"),
        ("/5/0", b"1"),
        ("/missing", None),
        ("/nothing/x", None),
        ("/n/0", None),
        ("/big/3", None),
        ("/big/-", None),
        ("/big/00", None),
        ("/big/-1", None),
        ("/big/1e0", None),
        ("/big/99999999999999999999", None),
        ("/tag/0/0", None),
    ],
)
def test_find_returns_the_source_bytes_and_missing_differs_from_null(
    pointer: str, expected: bytes | None
) -> None:
    assert find(DOCUMENT, pointer) == expected


@pytest.mark.parametrize("pointer", ["a", "a/b", "/~", "/a~2", "/~a/b", "#/a"])
def test_a_malformed_pointer_is_an_error_that_says_why(pointer: str) -> None:
    with pytest.raises(PointerError, match=r"JSON Pointer"):
        find(b"{}", pointer)
    with pytest.raises(PointerError, match=r"JSON Pointer"):
        splice(b"{}", pointer, value=b"1")


@given(st.lists(keys | st.integers(0, 99), max_size=5))
def test_a_path_survives_being_written_as_a_pointer(path: list[str | int]) -> None:
    assert parse_pointer(path_to_pointer(path)) == tuple(str(part) for part in path)


@given(documents(), blanks)
def test_find_agrees_with_a_parser_at_every_place_and_copies_verbatim(
    source: str, pad: str
) -> None:
    data = (pad + source + pad).encode()
    check_payload(data, max_bytes=1 << 20)
    for path, value in places(parse(data)):
        found = find(data, path_to_pointer(path))
        assert found is not None
        assert found in data
        assert parse(found) == value
        assert find(data, path_to_pointer((*path, "no such key"))) is None


@given(documents(), documents(), st.data())
def test_splice_replaces_one_value_and_no_other_byte(
    source: str, new: str, data: st.DataObject
) -> None:
    before, value = source.encode(), new.encode()
    path, _ = data.draw(st.sampled_from(list(places(parse(before)))))
    pointer = path_to_pointer(path)
    after = splice(before, pointer, value=value)
    old = find(before, pointer)
    assert old is not None
    assert find(after, pointer) == value.strip()
    # Putting the old bytes back gives the old document: nothing else was touched.
    assert splice(after, pointer, value=old) == before


@given(documents(), documents(), keys, st.data())
def test_splice_adds_a_member_or_an_element_at_the_end(
    source: str, new: str, key: str, data: st.DataObject
) -> None:
    before, value = source.encode(), new.encode()
    containers = [(p, v) for p, v in places(parse(before)) if isinstance(v, (dict, list))]
    assume(containers)
    path, container = data.draw(st.sampled_from(containers))
    if isinstance(container, dict):
        assume(key not in container)
        after = splice(before, path_to_pointer((*path, key)), value=value)
        container[key] = parse(value)
    else:
        assert isinstance(container, list)
        last = data.draw(st.sampled_from(["-", str(len(container))]))
        after = splice(before, path_to_pointer((*path, last)), value=value)
        key = str(len(container))
        container.append(parse(value))
    check_payload(after, max_bytes=1 << 20)
    assert find(after, path_to_pointer((*path, key))) == value.strip()
    assert len(after) >= len(before) + len(value)
    expected = dict(places(parse(before)))
    for place, leaf in places(parse(after)):
        if not isinstance(leaf, (dict, list)) and place in expected:
            assert leaf == expected[place]


@pytest.mark.parametrize(
    ("source", "pointer", "problem"),
    [
        (b"{}", "/a/b", "'/a' does not exist"),
        (b'{"a":{}}', "/a/b/c", "'/a/b' does not exist"),
        (b'{"a":1}', "/a/b", "'/a' is neither"),
        (b"null", "/a", "the document is neither"),
        (b"[1]", "/2", "has 1 elements, '2' is not a place"),
        (b"[1]", "/x", "has 1 elements, 'x' is not a place"),
        (b"[1]", "/01", "not a place"),
        (b"[[]]", "/1/0", "'/1' does not exist"),
        (b"[[]]", "/-/0", "'/-' does not exist"),
    ],
)
def test_splice_names_the_parent_that_is_missing_or_scalar(
    source: bytes, pointer: str, problem: str
) -> None:
    with pytest.raises(PointerError, match=problem):
        splice(source, pointer, value=b"0")


def test_splice_keeps_the_white_space_of_the_container_it_adds_to() -> None:
    assert splice(b' { "a" : 1 } ', "/b", value=b"0.10") == b' { "a" : 1,"b":0.10 } '
    assert splice(b"{ }", "/b", value=b"2") == b'{"b":2 }'
    assert splice(b"[ 1 ]", "/-", value=b"2") == b"[ 1,2 ]"
    assert splice(b"[]", "/0", value=b"2") == b"[2]"


@given(st.lists(st.tuples(keys, documents()), unique_by=lambda field: field[0]))
def test_object_of_keeps_members_in_order_and_verbatim(fields: list[tuple[str, str]]) -> None:
    raw = [(name, value.encode()) for name, value in fields]
    data = object_of(raw)
    assert parse(data) == {name: parse(value) for name, value in raw}
    for name, value in raw:
        assert find(data, path_to_pointer([name])) == value.strip()


@given(st.lists(documents()))
def test_array_of_keeps_elements_verbatim(items: list[str]) -> None:
    data = array_of([item.encode() for item in items])
    assert [find(data, f"/{i}") for i in range(len(items))] == [i.strip().encode() for i in items]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | text
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(text, inner, max_size=5),
    max_leaves=25,
)  # fmt: skip


@given(json_values)
def test_canonical_text_is_that_of_the_reference_writer(value: Plain) -> None:
    assert canonical(value) == rfc8785.dumps(value)


@given(st.integers(-(2**63), 2**64 - 1))
def test_an_integer_of_64_bits_is_written_digit_for_digit(value: int) -> None:
    assert canonical([value]) == f"[{value}]".encode()


@pytest.mark.parametrize(
    "value",
    [2**64 + 1, -(2**63) - 1, 10**400, math.nan, math.inf, -math.inf, "\ud800", {"\udfff": 1},
     {1: 2}, b"bytes", {"a": {1, 2}}],
    ids=repr,
)  # fmt: skip
def test_what_has_no_exact_json_form_is_refused(value: object) -> None:
    with pytest.raises(CanonicalError):
        canonical([value])  # type: ignore[list-item]  # what the types forbid


def test_canonical_text_nests_no_deeper_than_a_payload_may() -> None:
    value: Plain = 0
    for _ in range(48):
        value = [value]
    check_payload(canonical(value), max_bytes=1000)
    with pytest.raises(CanonicalError, match="48"):
        canonical([value])


def test_integers_over_64_bits_are_written_only_where_a_double_holds_them_exactly() -> None:
    assert canonical(10**20) == b"100000000000000000000"
    with pytest.raises(CanonicalError, match="precision"):
        canonical(2**64)  # as a double RFC 8785 prints it as 18446744073709552000


def test_replacing_children_reads_the_text_once_and_keeps_every_other_byte() -> None:
    text = b'{ "a" : 0.10 ,"b\\"c":[1, 2],\n"d" :"x"}'
    assert replaced(text, {"a": b"9", 'b"c': b'"new"', "d": b"[ ]"}) == (
        b'{ "a" : 9 ,"b\\"c":"new",\n"d" :[ ]}'
    )
    assert replaced(b"[ 1,2 , 3]", {"1": b"{}"}) == b"[ 1,{} , 3]"
    assert replaced(text, {}) == text


@given(st.dictionaries(st.text(max_size=4), st.integers(), min_size=1, max_size=6), st.data())
def test_replacing_is_what_splicing_each_by_itself_is(members: dict[str, int], data: Any) -> None:
    text = json.dumps(members, indent=data.draw(st.sampled_from([None, 1]))).encode()
    chosen = data.draw(st.lists(st.sampled_from(sorted(members)), unique=True))
    values = {name: b'"%d"' % place for place, name in enumerate(chosen)}
    expected = text
    for name, value in values.items():
        expected = splice(expected, path_to_pointer([name]), value=value)
    assert replaced(text, values) == expected
