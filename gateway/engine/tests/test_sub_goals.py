"""A plan's sub-goals: graph, bindings byte for byte, `when`, what never runs (SPEC section 3)."""

import itertools

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acp_spec.codec.json_text import find
from acp_spec.model.enums import Operator, SideEffect, StepStatus
from acp_spec.model.errors import Reason
from acp_spec.model.payload import ABSENT, payload
from acp_spec.model.plan import When
from gateway.engine import sub_goals
from gateway.engine.tests.casting import Cast
from gateway.engine.tests.playing import Play
from gateway.engine.tests.stage import (
    CATALOG,
    FOUR_CALLS,
    Line,
    failed,
    gave,
    gave_text,
    goal,
    planned,
    troupe,
    workflow_of,
)


def ran(*goals: dict[str, object], **lines: Line) -> Play:
    component = troupe(plan=planned(*goals), **lines)
    return Play(workflow_of(FOUR_CALLS), CATALOG, Cast(component=component)).open().run()


def arguments(play: Play, name: str) -> bytes:
    (found,) = (s.created for s in play.sent if s.created.sub_goal == name)
    return bytes(found.arguments)


def entries(play: Play) -> dict[str, str]:
    return {name: e.status.value for name, e in play.state.steps["act"].sub_goals.items()}


def bound(to: str, pointer: str, *, name: str = "b", source: str = "a") -> dict[str, object]:
    binding = {"to": to, "from": source, "pointer": pointer}
    return goal(name, "put", depends_on=[source], bindings=[binding])


EXACT = b'{"big":9007199254740993,"money":0.10,"text":"\\u00e9","list":[1, 2.50],"null":null}'


@pytest.mark.parametrize(
    ("pointer", "expected"),
    [
        ("/big", b"9007199254740993"),
        ("/money", b"0.10"),
        ("/text", b'"\\u00e9"'),
        ("/list/1", b"2.50"),
        ("/list", b"[1, 2.50]"),
        ("/null", b"null"),
        ("", EXACT),
    ],
)
def test_a_binding_carries_the_bytes_as_they_came(pointer: str, expected: bytes) -> None:
    play = ran(goal("a", "read"), bound("/x", pointer), read=gave_text(EXACT))
    assert arguments(play, "b") == b'{"x":' + expected + b"}"


def test_strings_in_arguments_are_never_templates() -> None:
    text = {"x": "{{a.output}} ${input.query} /a/b"}
    play = ran(goal("a", "read", arguments=text))
    assert arguments(play, "a") == msgspec.json.encode(text)


@pytest.mark.parametrize("pointer", ["/missing", "/list/9", "/money/deep", "no-slash", "/list/-"])
def test_a_pointer_that_does_not_resolve_fails_that_sub_goal_and_sends_nothing(
    pointer: str,
) -> None:
    play = ran(goal("a", "read"), bound("/x", pointer), goal("c", "peek"), read=gave_text(EXACT))
    failure = play.state.steps["act"].sub_goals["b"].error
    assert failure is not None
    assert (failure.reason, failure.side_effect) == ("CONTRACT_VIOLATION", SideEffect.NONE)
    assert entries(play) == {"a": "SUCCEEDED", "b": "FAILED", "c": "SUCCEEDED"}
    assert [s.created.sub_goal for s in play.sent if s.created.sub_goal] == ["a", "c"]


def test_a_place_that_cannot_be_written_fails_that_sub_goal_too() -> None:
    play = ran(goal("a", "read"), bound("/no/such/parent", ""))
    assert entries(play)["b"] == "FAILED"


def test_a_binding_from_an_absent_output_does_not_resolve_but_null_does() -> None:
    play = ran(goal("a", "read"), bound("/x", ""), read=gave(None))
    assert arguments(play, "b") == b'{"x":null}'


def test_dependents_of_a_failed_sub_goal_are_skipped_with_the_reason_all_the_way_down() -> None:
    play = ran(
        goal("a", "read"),
        goal("b", "put", depends_on=["a"]),
        goal("c", "put", depends_on=["b"]),
        goal("free", "peek"),
        read=failed(Reason.INVALID_REQUEST),
    )
    assert entries(play) == {"a": "FAILED", "free": "SUCCEEDED", "b": "SKIPPED", "c": "SKIPPED"}
    skipped = play.state.steps["act"].sub_goals["c"].error
    assert skipped is not None
    assert "'b', which it depends on, is SKIPPED" in skipped.message
    assert skipped.side_effect is SideEffect.NONE


def test_the_step_fails_only_when_all_its_sub_goals_failed() -> None:
    some = ran(goal("a", "read"), goal("b", "put"), read=failed(Reason.INVALID_REQUEST))
    assert some.state.steps["act"].status is StepStatus.SUCCEEDED
    every = ran(
        goal("a", "read"), goal("b", "put", depends_on=["a"]), read=failed(Reason.INVALID_REQUEST)
    )
    assert every.state.steps["act"].status is StepStatus.FAILED


def test_with_require_all_the_step_fails_when_any_did() -> None:
    text = FOUR_CALLS.replace("plan: plan}", "plan: plan, require: all}")
    plan = planned(goal("a", "read"), goal("b", "put"))
    component = troupe(plan=plan, read=failed(Reason.INVALID_REQUEST))
    play = Play(workflow_of(text), CATALOG, Cast(component=component)).open().run()
    assert play.state.steps["act"].status is StepStatus.FAILED


def test_an_empty_plan_with_an_output_answers_without_any_execute() -> None:
    text = FOUR_CALLS.replace("output: judge.output", "output: plan.output")
    component = troupe(plan=planned(output={"hello": "you"}))
    play = Play(workflow_of(text), CATALOG, Cast(component=component)).open().run()
    assert bytes(play.state.output) == b'{"hello":"you"}'
    assert [s.created.step for s in play.sent] == ["plan", "remember", "judge"]


# ---- when ------------------------------------------------------------------------------


def test_every_operator_has_its_comparison() -> None:
    assert set(sub_goals.COMPARE) == set(Operator) - {Operator.EXISTS}


TABLE: list[tuple[str, str, str, bool]] = [
    ("1", "EQ", "1", True),
    ("1", "EQ", "1.0", True),
    ("1", "EQ", "true", False),
    ("true", "EQ", "true", True),
    ("[1]", "EQ", "[true]", False),
    ('{"a":{"b":0}}', "EQ", '{"a":{"b":false}}', False),
    ('{"a":1,"b":2}', "EQ", '{"b":2,"a":1.0}', True),
    ("[1,2]", "EQ", "[1]", False),
    ('"a"', "NE", '"b"', True),
    ("1", "NE", "true", True),
    ("null", "EQ", "null", True),
    ("9007199254740993", "EQ", "9007199254740992", False),
    ("9007199254740993", "GT", "9007199254740992", True),
    ("2", "LT", "10", True),
    ('"2"', "LT", '"10"', False),
    ('"2"', "LT", "10", False),
    ("true", "LT", "2", False),
    ("null", "LE", "0", False),
    ("2", "LE", "2.0", True),
    ("2.5", "GE", "2.5", True),
    ("2", "IN", "[1,2]", True),
    ("2", "IN", "[true,3]", False),
    ("true", "IN", "[1]", False),
    ("2", "IN", "2", False),
    ("[1]", "LT", "[2]", False),
]


@pytest.mark.parametrize(("left", "op", "right", "expected"), TABLE)
def test_comparisons_are_those_of_json_values(
    left: str, op: str, right: str, expected: bool
) -> None:
    when = When(from_="a", pointer="/v", op=Operator(op), value=payload(right.encode()))
    assert sub_goals.holds(when, b'{"v":' + left.encode() + b"}") is expected


@pytest.mark.parametrize("op", [op for op in Operator if op is not Operator.EXISTS])
def test_what_is_missing_does_not_hold_whatever_is_asked(op: Operator) -> None:
    missing = When(from_="a", pointer="/gone", op=op, value=payload(b"1"))
    assert not sub_goals.holds(missing, b'{"v":1}')
    without = When(from_="a", pointer="/v", op=op, value=ABSENT)
    assert not sub_goals.holds(without, b'{"v":1}')


@pytest.mark.parametrize(
    ("pointer", "value", "expected"),
    [("/v", b"", True), ("/v", b"true", True), ("/v", b"false", False), ("/w", b"false", True)],
)
def test_exists_asks_for_the_place_and_false_for_its_absence(
    pointer: str, value: bytes, expected: bool
) -> None:
    when = When(from_="a", pointer=pointer, op=Operator.EXISTS, value=payload(value))
    assert sub_goals.holds(when, b'{"v":null}') is expected


def test_a_sub_goal_whose_comparison_does_not_hold_is_skipped_and_so_are_its_dependents() -> None:
    when = [{"from": "a", "pointer": "/n", "op": "GT", "value": 5}]
    play = ran(
        goal("a", "read"),
        goal("b", "pay", depends_on=["a"], when=when),
        goal("c", "put", depends_on=["b"]),
        read=gave({"n": 5}),
    )
    assert entries(play) == {"a": "SUCCEEDED", "b": "SKIPPED", "c": "SKIPPED"}
    assert play.state.steps["act"].status is StepStatus.SUCCEEDED


def test_all_comparisons_of_a_sub_goal_must_hold() -> None:
    def when(*values: int) -> list[dict[str, object]]:
        return [{"from": "a", "pointer": "/n", "op": "NE", "value": value} for value in values]

    play = ran(
        goal("a", "read"),
        goal("b", "put", depends_on=["a"], when=when(1, 2)),
        goal("c", "peek", depends_on=["a"], when=when(1, 5)),
        read=gave({"n": 5}),
    )
    assert entries(play) == {"a": "SUCCEEDED", "b": "SUCCEEDED", "c": "SKIPPED"}


SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-9, 9)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=4)
)
JSON_VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(JSON_VALUES, JSON_VALUES)
def test_comparing_never_raises_and_ne_is_the_opposite_of_eq(left: object, right: object) -> None:
    source = msgspec.json.encode({"v": left})
    answers = {
        op: sub_goals.holds(
            When(from_="a", pointer="/v", op=op, value=payload(msgspec.json.encode(right))), source
        )
        for op in Operator
    }
    assert answers[Operator.EQ] is not answers[Operator.NE]
    assert not (answers[Operator.LT] and answers[Operator.GT])


@given(JSON_VALUES)
def test_a_whole_output_of_any_shape_passes_as_it_is(value: object) -> None:
    text = msgspec.json.encode(value)
    play = ran(goal("a", "read"), bound("/x", ""), read=gave_text(text))
    assert find(arguments(play, "b"), "/x") == text


def test_sub_goals_begin_in_the_plans_order() -> None:
    for order in itertools.permutations(("a", "b", "c")):
        play = ran(*(goal(name, "put") for name in order))
        sent = [s.created.sub_goal for s in play.sent if s.created.sub_goal]
        assert sent == list(order)


@pytest.mark.parametrize("number", ["1e400", "-1e999999999", "9" * 5_000])
@pytest.mark.parametrize("op", [Operator.EQ, Operator.NE, Operator.LT, Operator.GE])
def test_a_number_beyond_all_measure_is_not_comparable(number: str, op: Operator) -> None:
    """It raised inside the engine: the session hung, and so did its replay."""
    huge, small = payload(number.encode()), b'{"n":5}'
    assert not sub_goals.holds(When(from_="a", pointer="/n", op=op, value=huge), small)
    source = b'{"n":' + number.encode() + b"}"
    assert not sub_goals.holds(When(from_="a", pointer="/n", op=op, value=payload(b"5")), source)
