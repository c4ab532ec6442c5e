"""What may enter and what may not, with inputs that have broken parsers before."""

import json
from collections.abc import Callable
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acp_spec.codec.scan import MAX_NESTING, PayloadProblem, PayloadRefused, check_payload

LIMIT: Final = 4 * 1024 * 1024
P = PayloadProblem

REFUSED = [
    (b"", P.NOT_JSON, 0),
    (b" ", P.NOT_JSON, 0),
    (b"nul", P.NOT_JSON, 2),
    (b"NaN", P.NOT_JSON, 0),
    (b"Infinity", P.NOT_JSON, 0),
    (b"[-Infinity]", P.NOT_JSON, 2),
    (b"01", P.NOT_JSON, 1),
    (b"-", P.NOT_JSON, 0),
    (b"+1", P.NOT_JSON, 0),
    (b".5", P.NOT_JSON, 0),
    (b"1.", P.NOT_JSON, 1),
    (b"1e", P.NOT_JSON, 1),
    (b"[1,]", P.NOT_JSON, 3),
    (b'{"a":1,}', P.NOT_JSON, 7),
    (b"{'a':1}", P.NOT_JSON, 1),
    (b"{1:2}", P.NOT_JSON, 1),
    (b'"a\x01"', P.NOT_JSON, 2),
    (b'"a\nb"', P.NOT_JSON, None),
    (b'"\\x"', P.NOT_JSON, 2),
    (b'"\\u12G4"', P.NOT_JSON, None),
    (b'"abc', P.NOT_JSON, 3),
    (b"// no\n1", P.NOT_JSON, 0),
    (b"\xef\xbb\xbf1", P.NOT_JSON, 0),
    (b"\x0c1", P.NOT_JSON, 0),
    (b"1 2", P.TRAILING_TEXT, 2),
    (b'{"a":1}]', P.TRAILING_TEXT, 7),
    (b"1\x00", P.TRAILING_TEXT, 1),
    (b'"\xff"', P.NOT_UTF8, 1),
    (b'{"\xc0\x80":1}', P.NOT_UTF8, 2),
    (b'["\xed\xa0\x80"]', P.NOT_UTF8, 2),
    (b'"\xf4\x90\x80\x80"', P.NOT_UTF8, 1),
    (b'"\xe2\x82"', P.NOT_UTF8, 1),
    (b'{"a":1,"a":2}', P.DUPLICATE_KEY, None),
    (b'{"a":1,\n"\\u0061":2}', P.DUPLICATE_KEY, None),
    (b'[{"x":{"":1,"":1}}]', P.DUPLICATE_KEY, None),
    (b'"\\ud800"', P.LONE_SURROGATE, None),
    (b'"\\uD800x"', P.LONE_SURROGATE, None),
    (b'"\\ud800\\n"', P.LONE_SURROGATE, None),
    (b'"\\ud800\\ud800"', P.LONE_SURROGATE, None),
    (b'"\\ud800\\u0041"', P.LONE_SURROGATE, None),
    (b'"\\udc00"', P.LONE_SURROGATE, None),
    (b'"\\udc00\\ud800"', P.LONE_SURROGATE, None),
    (b'{"\\udfff":1}', P.LONE_SURROGATE, None),
    (b'{"a\\uDBFF":1}', P.LONE_SURROGATE, None),
]

ADMITTED = [
    b"null",
    b" \t\r\n1 ",
    b"-0",
    b"-0.0e-0",
    b"9007199254740993",
    b"0.10",
    b"123456789012345678.90",
    b"1e999999",
    b"-1E+05",
    b"9" * 100_000,
    b"[" + b"9" * 4301 + b",-" + b"8" * 5000 + b",1." + b"7" * 9000 + b"]",
    b'{"' + b"9" * 5000 + b'1":1,"' + b"9" * 5000 + b'2":' + b"9" * 5000 + b"}",
    b'"\\ud83d\\ude00 \xf0\x9f\x98\x80 \\u0000 \\ufffe \x7f \\/"',
    b'"\\\\ud800"',
    b'"\\"[\\"]{{{{"',
    b"[" * MAX_NESTING + b"]" * MAX_NESTING,
    b'{"a":' * MAX_NESTING + b"1" + b"}" * MAX_NESTING,
    b"[" + b",".join([b"[{}]"] * 500) + b"]",
    b'["' + b"[{" * 5000 + b'","\\"[","' + b"]" * 9 + b'\\\\",[' + b"{}," * 60 + b"0]]",
]


def _admits(data: bytes) -> bool:
    try:
        check_payload(data, max_bytes=LIMIT)
    except PayloadRefused:
        return False
    return True


@pytest.mark.parametrize(("data", "problem", "offset"), REFUSED)
def test_bad_text_is_refused_with_its_problem_and_place(
    data: bytes, problem: PayloadProblem, offset: int | None
) -> None:
    with pytest.raises(PayloadRefused) as caught:
        check_payload(data, max_bytes=LIMIT)
    assert caught.value.problem is problem
    assert 0 <= caught.value.offset <= len(data)
    if offset is not None:
        assert caught.value.offset == offset


@pytest.mark.parametrize("data", ADMITTED, ids=range(len(ADMITTED)))
def test_good_text_enters_whatever_its_numbers_and_escapes(data: bytes) -> None:
    check_payload(data, max_bytes=LIMIT)


def test_the_size_limit_is_inclusive() -> None:
    check_payload(b"[12]", max_bytes=4)
    with pytest.raises(PayloadRefused, match="5 bytes, at most 4") as caught:
        check_payload(b"[123]", max_bytes=4)
    assert caught.value.problem is PayloadProblem.TOO_LARGE


@pytest.mark.parametrize(
    ("opening", "closing", "levels"),
    [(b"[", b"]", 1), (b'{"a":', b"}", 1), (b'[{"]":', b"}]", 2), (b'[{"\\"]":', b"}]", 2)],
)
def test_one_level_too_many_is_refused_at_its_opener(
    opening: bytes, closing: bytes, levels: int
) -> None:
    rounds = MAX_NESTING // levels
    at_limit = opening * rounds + b"0" + closing * rounds
    check_payload(at_limit, max_bytes=LIMIT)
    with pytest.raises(PayloadRefused) as caught:
        check_payload(b"[1," + at_limit + b"]", max_bytes=LIMIT)
    assert caught.value.problem is PayloadProblem.TOO_DEEP
    assert caught.value.offset == len(b"[1,") + (rounds - 1) * len(opening) + levels - 1


def test_brackets_in_strings_neither_hide_nor_fake_nesting() -> None:
    deep = b'["]",' * 49 + b"0" + b',"["]' * 49
    with pytest.raises(PayloadRefused) as caught:
        check_payload(deep, max_bytes=LIMIT)
    assert caught.value.problem is PayloadProblem.TOO_DEEP
    check_payload(b"[" + b'"[[[[",' * 100 + b"0]", max_bytes=LIMIT)


@pytest.mark.parametrize("bracket", [b"[", b"{", b"]", b'{"a":', b'[{"', b'"\\"', b"[["])
def test_a_hundred_thousand_brackets_neither_crash_nor_take_long(
    bracket: bytes, in_cpu_s: Callable[..., object]
) -> None:
    assert in_cpu_s(0.5, _admits, bracket * 100_000) is False


@pytest.mark.parametrize(
    "data",
    [
        b"[" + b",".join([b"[" * 47 + b"]" * 47] * 10_000) + b"]",
        b'["' + b"\\\\" * 500_000 + b'"]',
        b"[" + b'"",' * 300_000 + b"{}]",
        b"9" * 1_000_000,
        b"9" * 5000 + b'"\\"' * 200_000,
        b"9" * 5000 + b'"' + b'\\"' * 400_000 + b"\\",
        b"\n" * 1_000_000 + b"x",
    ],
    ids=range(7),
)
def test_a_megabyte_of_malice_stays_linear(data: bytes, in_cpu_s: Callable[..., object]) -> None:
    in_cpu_s(1.5, _admits, data)


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner) | st.dictionaries(st.text(st.sampled_from('ab"\\[{]}é\0')), inner)
    ),
    max_leaves=60,
)


@given(json_values, st.booleans())
def test_every_document_that_a_plain_writer_makes_enters(value: object, ascii_only: bool) -> None:
    check_payload(json.dumps(value, ensure_ascii=ascii_only).encode(), max_bytes=LIMIT)


def _pairs(pairs: list[tuple[str, object]]) -> dict[str, object]:
    if len({key for key, _ in pairs}) < len(pairs):
        raise ValueError("duplicate")
    return dict(pairs)


def _constant(text: str) -> object:
    raise ValueError(text)


def _depth(value: object) -> int:
    if isinstance(value, dict):
        return 1 + max(map(_depth, value.values()), default=0)
    if isinstance(value, list):
        return 1 + max(map(_depth, value), default=0)
    return 0


def _reference_admits(data: bytes) -> bool:
    """The same rule, slow and obvious: the standard parser with hooks."""
    try:
        text = data.decode("utf-8")
        value = json.loads(text, object_pairs_hook=_pairs, parse_constant=_constant)
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except ValueError:
        return False
    return _depth(value) <= MAX_NESTING


pieces = st.sampled_from(
    [b"[", b"]", b"{", b"}", b'"', b":", b",", b"\\", b"\\u", b"d83d", b"de00", b"d800", b"0041",
     b'"a"', b'"a":', b"1", b"-", b"0", b".", b"e5", b"null", b"true", b" ", b"\n", b"\xc3\xa9",
     b"\xff", b"[" * 20, b"]" * 20, b"NaN"]
)  # fmt: skip


@given(st.lists(pieces, max_size=12).map(b"".join))
def test_any_text_is_judged_as_the_slow_reference_judges_it(data: bytes) -> None:
    assert _admits(data) == _reference_admits(data)


@given(json_values, st.data())
def test_a_damaged_document_is_judged_as_the_slow_reference_judges_it(
    value: object, data: st.DataObject
) -> None:
    text = bytearray(json.dumps(value, indent=1, ensure_ascii=False).encode())
    position = data.draw(st.integers(0, len(text) - 1))
    text[position : position + 1] = data.draw(pieces)
    damaged = bytes(text)
    assert _admits(damaged) == _reference_admits(damaged)


nested_soup = st.recursive(
    st.sampled_from([b"1", b'"["', b'"]\\\\"', b'"\\"{"', b'"}"', b'""']),
    lambda inner: (
        st.lists(inner, min_size=1, max_size=4).map(lambda items: b"[" + b",".join(items) + b"]")
        | st.tuples(inner, st.integers(1, 30)).map(lambda t: b'{"{":' * t[1] + t[0] + b"}" * t[1])
    ),
    max_leaves=40,
)


@given(st.lists(nested_soup, min_size=1, max_size=8))
def test_nesting_is_measured_as_by_recursion(parts: list[bytes]) -> None:
    data = b"[" + b"[]," * MAX_NESTING + b",".join(parts) + b"]"
    assert _admits(data) == (_depth(json.loads(data)) <= MAX_NESTING)
