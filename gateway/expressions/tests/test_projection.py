"""Handing over only the needed fields changes the cost of an evaluation, never its result."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.expressions.expression import ExpressionError, compile_expression
from gateway.expressions.parsing import parse
from gateway.expressions.projection import element_fields

NEEDS = [
    ("a.b.map(x, x.id)", {"a.b": {"id"}}),
    ("a.exists(x, x.s == 'F' && size(x.o.deep) > q)", {"a": {"s", "o"}}),
    ("a.all(x, has(x.s) || has(x.o.deep))", {"a": {"s", "o"}}),
    ("a.exists(x, x['s'] == 1)", {}),
    ("a.exists(x, x == 1)", {}),
    ("a.exists(x, x.s == 1 || x in b)", {}),
    ("a.filter(x, x.s == 1)", {}),
    ("a.filter(x, x.s == 1).map(y, y.id)", {"a": {"s", "id"}}),
    ("a.filter(x, x.s == 1).exists(y, y == 2)", {}),
    ("a.filter(x, x.s == 1).filter(y, y.t == 1).all(z, z.u)", {"a": {"s", "t", "u"}}),
    ("a.map(x, x.s).filter(y, y.t == 1)", {"a": {"s"}}),
    ("a.map(x, x.s == 1, x.id)", {"a": {"s", "id"}}),
    ("a.map(x, 1)", {"a": set()}),
    ("a.map(x, x.s) == a.map(x, x.t)", {"a": {"s", "t"}}),
    ("a.map(x, x.s) == a.map(x, x)", {}),
    ("[1, 2].map(x, x)", {}),
    ("[a.map(x, x.s), b]", {"a": {"s"}}),
]


@pytest.mark.parametrize(("text", "expected"), NEEDS)
def test_a_macro_needs_the_fields_that_it_names(text: str, expected: dict[str, set[str]]) -> None:
    found = element_fields(parse(text))
    assert {str(ref.path): set(fields) for ref, fields in found.items()} == expected


values = st.none() | st.integers(0, 2) | st.sampled_from(["a", "b"])
elements = st.dictionaries(st.sampled_from(["s", "t", "id"]), values) | values
bodies = st.sampled_from(
    [
        "x.s",
        "x.t == 1",
        "has(x.s)",
        "has(x.s) && x.s == 1",
        "x.id == 'a'",
        "size(x.id) > 0",
        "x == 1",
    ]
)
macros = st.lists(
    st.tuples(st.sampled_from(["map", "filter", "exists", "all"]), bodies), min_size=1
)


@given(st.lists(elements, max_size=5), macros)
def test_the_result_is_the_same_as_with_whole_elements(
    items: list[object], steps: list[tuple[str, str]]
) -> None:
    text = "a"
    for name, body in steps:
        text += f".{name}(x, {body})"
        if name in ("exists", "all"):
            break
    computed = compile_expression(text).computed
    assert computed is not None
    scope = {"a": json.dumps(items).encode()}
    outcomes = []
    for variant in (computed, replace(computed, element_fields={})):
        try:
            outcomes.append(variant.evaluate(scope).decode())
        except ExpressionError as error:
            outcomes.append(error.message)
    assert outcomes[0] == outcomes[1]
