"""What an expression means: paths copy, everything else is CEL, written canonically."""

import json
import subprocess
import sys
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acp_spec.codec.scan import check_payload
from acp_spec.model.errors import Reason
from gateway.expressions.expression import (
    MAX_PATH_PARTS,
    ExpressionError,
    bare_path,
    compile_expression,
    constant,
)

SCOPE: Final[dict[str, bytes]] = {
    "input": b"""{"query":"hi","n":9007199254740993,"price":0.10,"channel":"branch",
        "m":{"z":1,"a":2},"pi":3.14159265358979323846,"huge":123456789012345678901,
        "big":123456789012345678.90,"tiny":5e-324,"flag":true,"none":null,"text":"\\u00e9\\ud83d\\ude00"}""",
    "act": json.dumps(
        {
            "status": "SUCCEEDED",
            "results": [
                {"id": f"g{i}", "status": status, "output": {"amount": i * 1.5}}
                for i, status in enumerate(["SUCCEEDED", "FAILED", "SUCCEEDED"])
            ],
        }
    ).encode(),
    "fee": b"null",
    "vars": b'{"fee_cents": 250, "if": 1}',
}

VALUES = [
    ("input.query", b'"hi"'),
    (" input.price ", b"0.10"),
    ("input.n", b"9007199254740993"),
    ("input.big", b"123456789012345678.90"),
    ("input.huge", b"123456789012345678901"),
    ("input.none", b"null"),
    ("input['query']", b'"hi"'),
    ('input["m"].z', b"1"),
    ("input.m", b'{"z":1,"a":2}'),
    ("act.results[2].output.amount", b"3.0"),
    ("vars.if", b"1"),
    ("fee", b"null"),
    ("'text'", b'"text"'),
    ('"a\\u0041"', b'"aA"'),
    ("12", b"12"),
    ("-5", b"-5"),
    ("1.50", b"1.5"),
    ("true", b"true"),
    ("null", b"null"),
    ("1 + 2 * 3 - 4", b"3"),
    ("(1 + 2) * 3", b"9"),
    ("7 / 2", b"3"),
    ("input.n + 1", b"9007199254740994"),
    ("[input.n]", b"[9007199254740993]"),
    ("{'b': input.m, 'a': 1}", b'{"a":1,"b":{"a":2,"z":1}}'),
    ("size(act.results) > 0 && input.channel == 'branch'", b"true"),
    ("act.results[0].output.amount + 1.0", b"1"),
    ("input.pi > 3.0", b"true"),
    ("input.huge > 1.0e20", b"true"),
    ("input.pi > 3.0 ? 'more' : 'less'", b'"more"'),
    ("int(input.pi * 100.0)", b"314"),
    ("{'copied': 1e300}", b'{"copied":1e+300}'),
    ("size(input.text)", b"2"),
    ("input.text.size()", b"2"),
    ("input.query + '!'", b'"hi!"'),
    ("input.query.matches('^h.$')", b"true"),
    ("input.query.startsWith('h') || input.query.endsWith('x')", b"true"),
    ("input.flag ? 'x' : 'y'", b'"x"'),
    ("!input.flag", b"false"),
    ("'a' in input.m", b"true"),
    ("'q' in ['a', 'q']", b"true"),
    ("input.m[input.query == 'hi' ? 'z' : 'a']", b"1"),
    ("act.results.filter(r, r.status == 'FAILED').map(r, r.id)", b'["g1"]'),
    ("act.results.map(r, r.status == 'FAILED', r.id)", b'["g1"]'),
    ("act.results.map(r, {'id': r.id})", b'[{"id":"g0"},{"id":"g1"},{"id":"g2"}]'),
    ("act.results.exists(r, r.output.amount > 2.0)", b"true"),
    ("act.results.all(r, has(r.output.amount))", b"true"),
    ("act.results.exists_one(r, r.id == 'g1')", b"true"),
    ("input.m.map(k, k)", b'["a","z"]'),
    ("[3, 4].map(input, input + 1)", b"[4,5]"),
    ("act.results.map(r, size(r.id))", b"[2,2,2]"),
    ("has(input.query)", b"true"),
    ("has(input.none)", b"true"),
    ("has(input.missing)", b"false"),
    ("has(act.results[9].id)", b"false"),
    ("has(fee.output)", b"false"),
    ("has(fee.output.cents) && fee.output.cents > 1", b"false"),
    ("has(nobody.x)", b"false"),
    ("fee == null", b"true"),
    ("fee != null && fee.output.cents > 1", b"false"),
    ("true || input.missing == 1", b"true"),
    ("string(12) + string(1.5)", b'"121.5"'),
    ("int('12') + int(1.9)", b"13"),
    ("double(vars.fee_cents) / 100.0", b"2.5"),
    ("timestamp('2024-01-02T00:00:00Z') > timestamp('2024-01-01T00:00:00Z')", b"true"),
    ("string(duration('90m'))", b'"1h30m0s"'),
    ("1 == 1 // a comment", b"true"),
    ('input.query == "hi"\n  && true', b"true"),
]

REFUSED = [
    ("", "expected a value, found the end", 1),
    ("1 +", "expected a value, found the end", 4),
    ("a ? b", "expected ':', found the end", 6),
    ("a b", "unexpected 'b'", 3),
    ("(a", "expected ')', found the end", 3),
    ("a.b c", "unexpected 'c'", 5),
    ("a = 1", "'=' must be doubled: '=='", 3),
    ("a & b", "'&' must be doubled: '&&'", 3),
    ("x == 'abc", "this string does not end", 6),
    ("a # b", "unexpected character '#'", 3),
    ("a.`b`", "no backquotes", 3),
    ("b'ab'", "only plain strings", 1),
    ("1 + '''a'''", "only plain strings", 5),
    ("now()", "there is no function 'now' here; there are:", 1),
    ("a.trim()", "there is no function 'trim' here", 3),
    ("size(1, 2)", "'size' takes one argument", 1),
    ("a.contains()", "'contains' takes 1 arguments, not 0", 3),
    ("has(a)", "'has' takes a field", 1),
    ("has(a[0])", "'has' takes a field", 1),
    ("a.map(x)", "write map(x, expression)", 3),
    ("a.map(x, y, z, q)", "write map(x, expression)", 3),
    ("a.map(1, 2)", "expected a name, found '1'", 7),
    ("a.map(true, 2)", "'true' cannot be a variable", 7),
    ("a.map(x, b.map(y, 1))", "macros do not nest", 12),
    ("a.filter(x, [1].exists(y, y == x))", "macros do not nest", 17),
    ("(a + b).map(x, x)", "runs over a path, a list or the result", 9),
    ("'abc'.map(x, x)", "runs over a path", 7),
    ("{'a': 1}.map(x, x)", "runs over a path", 10),
    ("[" + "1," * 101 + "].map(x, x)", "at most 100 elements", 206),
    ("{1: 2}", "a key must be a string literal", 2),
    ("{a: 2}", "a key must be a string literal", 2),
    ("a.matches(b)", "must be a string literal", 3),
    ("a.matches('h(')", "not a valid pattern: error: unclosed group", 11),
    ("a.matches('(\\\\w{50}){20}')", "too costly", 11),
    ("a.matches('" + "a" * 300 + "')", "at most 256 characters", 11),
    ("9223372036854775808", "invalid int literal", 1),
    ("1e400", "1e400 does not fit a double exactly", 1),
    ("1 + 9007199254740993.0", "does not fit a double exactly", 5),
    ("'\\q'", "not an expression", 1),
    ("x" * 2049, "at most 2048 bytes, this has 2049", 1),
    ("'" + "é" * 1024 + "'", "at most 2048 bytes, this has 2050", 1),
    ("(" * 30 + "1" + ")" * 30, "nested more than 24 deep", 25),
    ("a?1:" * 30 + "1", "nested more than 24 deep", None),
    ("!" * 9 + "a", "more than 8 '!' in a row", 1),
    ("(a).b" + ".b" * 30, "more than 24 parts", None),
    ("a" + ".b" * (MAX_PATH_PARTS + 1), "a path has at most 24 parts", 1),
    ("'\ud800'", "half of a surrogate pair", 2),
]  # fmt: skip

VIOLATIONS = [
    ("input.missing", "input.missing does not exist"),
    ("fee.output.cents", "fee.output.cents does not exist"),
    ("act.results[3]", "act.results[3] does not exist"),
    ("input[0]", "input[0] does not exist"),
    ("nobody", "nobody does not exist"),
    ("input.missing + 1", "input.missing does not exist; guard it with has()"),
    ("fee.output.cents > 1", "fee.output.cents does not exist; guard it with has()"),
    ("input.missing.map(x, x)", "input.missing does not exist"),
    ("1 / 0", "division by zero"),
    ("9223372036854775807 + 1", "does not fit 64 bits"),
    ("input.query + 1", "convert with int()"),
    ("input.query > 1", "convert with int()"),
    ("input.m[input.query]", "there is no field 'hi'"),
    ("[1][input.n]", "index out of bounds"),
    ("int('x')", "'int' cannot be applied"),
    ("size(input.n)", "'size' takes a string, a list or an object"),
    ("input.n.contains('x')", "'contains' cannot be applied"),
    ("timestamp('2024-01-01T00:00:00Z')", "has no JSON form"),
    ("double('inf')", "has no JSON form"),
    ("0.0 / 0.0", "has no JSON form"),
    ("[input.pi]", "3.141592653589793 lost precision"),
    ("{'x': [input.big]}", "lost precision"),
    ("input.flag ? input.huge : 0.0", "lost precision"),
    ("input.pi * 2.0", "input.pi lost precision"),
    ("{'half': [input.huge / 2.0]}", "input.huge lost precision"),
    ("string(input.pi) + '!'", "input.pi lost precision"),
    ("double(input.n)", "a computed double of 2^53 or more (9007199254740992.0) lost precision"),
    ("9007199254740992.0 + 1.0", "a computed double of 2^53 or more"),
]


@pytest.mark.parametrize(("text", "expected"), VALUES, ids=range(len(VALUES)))
def test_an_expression_has_a_value(text: str, expected: bytes) -> None:
    value = compile_expression(text).evaluate(SCOPE)
    assert value == expected
    check_payload(value, max_bytes=1000)


@pytest.mark.parametrize(("text", "message", "column"), REFUSED, ids=range(len(REFUSED)))
def test_what_may_not_run_is_refused_when_it_is_compiled(
    text: str, message: str, column: int | None
) -> None:
    with pytest.raises(ExpressionError) as caught:
        compile_expression(text)
    assert message in caught.value.message
    assert caught.value.reason is Reason.INVALID_REQUEST
    assert column in (None, caught.value.column)


@pytest.mark.parametrize(("text", "message"), VIOLATIONS, ids=range(len(VIOLATIONS)))
def test_an_evaluation_that_fails_is_a_contract_violation_with_its_reason(
    text: str, message: str
) -> None:
    with pytest.raises(ExpressionError) as caught:
        compile_expression(text).evaluate(SCOPE)
    assert message in caught.value.message
    assert caught.value.reason is Reason.CONTRACT_VIOLATION


def test_an_expression_tells_what_it_reads() -> None:
    expression = compile_expression(
        "act.results[0].id == input.m['z'] && has(fee.output) && vars.l.exists(act2, act2.x == q)"
    )
    assert not expression.is_path
    assert expression.names == {"act", "input", "fee", "vars", "q"}
    paths = {str(path) for path in expression.paths}
    assert paths == {"act.results[0].id", "input.m.z", "fee.output", "vars.l", "q"}
    bare = compile_expression("act.results[0]['a b']")
    assert bare.is_path
    assert [str(path) for path in bare.paths] == ['act.results[0]["a b"]']
    assert compile_expression("'a' + 'b'").names == frozenset()


class Recording(dict[str, bytes]):
    """A scope that notes what was asked."""

    asked: set[str]

    def get(self, name: str, default: object = None, /) -> bytes | None:  # type: ignore[override]
        self.asked.add(name)
        return super().get(name)


def test_only_roots_that_are_named_are_asked_for() -> None:
    scope = Recording(SCOPE)
    scope.asked = set()
    compile_expression("input.channel == 'branch'").evaluate(scope)
    compile_expression("input.query").evaluate(scope)
    assert scope.asked == {"input"}


@pytest.mark.parametrize("text", ["input.flag", "true", "1 < 2", "has(input.query)"])
def test_a_condition_is_true_or_false(text: str) -> None:
    assert compile_expression(text).evaluate_bool(SCOPE) is True
    assert constant(b"false").evaluate_bool(SCOPE) is False


@pytest.mark.parametrize("text", ["input.query", "1", "null", "input.none", "'true'", "[true]"])
def test_a_condition_that_is_neither_is_a_violation(text: str) -> None:
    with pytest.raises(ExpressionError, match="a condition must be true or false, not"):
        compile_expression(text).evaluate_bool(SCOPE)


def test_a_constant_is_its_own_text() -> None:
    expression = constant(b'{"amount":0.10}')
    assert expression.evaluate({}) == b'{"amount":0.10}'
    assert expression.names == frozenset()
    assert not expression.is_path


keys = st.sampled_from(["a", "b", "in", "true", "x y", "0", "é", "_"])
plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=20,
)


def reached(value: object, parts: list[str | int]) -> tuple[object, ...]:
    """The value below these parts in a tuple, or nothing."""
    for part in parts:
        match value, part:
            case list(), int() if part < len(value):
                value = value[part]
            case dict(), str() if part in value:
                value = value[part]
            case _:
                return ()
    return (value,)


@given(plain, st.lists(keys | st.integers(0, 4), max_size=5), st.integers(0, 3))
def test_a_bare_path_finds_what_python_finds_and_copies_it(
    value: object, parts: list[str | int], indent: int
) -> None:
    source = f"root{''.join(f'[{json.dumps(part, ensure_ascii=False)}]' for part in parts)}"
    scope = {"root": json.dumps(value, indent=indent or None).encode()}
    assert bare_path(source) is not None
    expected = reached(value, parts)
    if not expected:
        with pytest.raises(ExpressionError, match="does not exist"):
            compile_expression(source).evaluate(scope)
        return
    found = compile_expression(source).evaluate(scope)
    assert found in scope["root"]
    assert (json.loads(found),) == expected


@given(plain)
def test_a_computed_copy_equals_its_source(value: object) -> None:
    scope = {"root": json.dumps({"v": value}).encode()}
    try:
        copied = json.loads(compile_expression("[root.v]").evaluate(scope))
    except ExpressionError as refused:
        assert "lost precision" in refused.message or "too large" in refused.message  # noqa: PT017
        return
    assert copied == [value]


@given(st.text(max_size=30))
def test_any_text_compiles_or_is_refused_with_a_column_inside_it(text: str) -> None:
    try:
        compile_expression(text)
    except ExpressionError as error:
        assert 1 <= error.column <= len(text) + 1  # noqa: PT017


words = st.sampled_from(
    ["input", ".query", ".m", "[0]", "(", ")", "[", "]", "{", "}", "'a'", ":", "?", "+", "-", "*",
     "==", "&&", "||", "!", "in", "1", "0.5", "true", ".map(", ".exists(", "x,", "x", "has(",
     "size(", ",", " ", "null", "-1", "r'\\'", ".matches(", ".size()"]
)  # fmt: skip


@given(st.lists(words, max_size=14).map("".join))
def test_any_sentence_of_our_words_is_refused_or_runs_to_json_or_a_violation(text: str) -> None:
    try:
        expression = compile_expression(text)
    except ExpressionError as refused:
        assert refused.reason is Reason.INVALID_REQUEST  # noqa: PT017
        return
    try:
        check_payload(expression.evaluate(SCOPE), max_bytes=100_000)
    except ExpressionError as violated:
        assert violated.reason is Reason.CONTRACT_VIOLATION  # noqa: PT017


def test_the_order_of_a_map_is_the_same_in_every_process() -> None:
    program = (
        "from gateway.expressions.expression import compile_expression as c;"
        "s={'m': b'{' + b','.join(b'\"k%d\":%d' % (i, i) for i in range(40)) + b'}'};"
        "print(c('m.map(k, k)').evaluate(s), c('{\"q\": m}').evaluate(s))"
    )
    runs = [
        subprocess.run([sys.executable, "-c", program], capture_output=True, check=True).stdout
        for _ in range(2)
    ]
    assert runs[0] == runs[1]
    assert b'["k0","k1","k10"' in runs[0]
