"""What an answer means: a plan is taken or rejected, memory is read, an output is kept."""

import pytest

from acp_spec.model.enums import SessionStatus, StepRole, StepStatus
from gateway.engine.outcomes import RESPONSE_OF
from gateway.engine.tests.casting import Cast, Said
from gateway.engine.tests.playing import Play
from gateway.engine.tests.stage import (
    CATALOG,
    FOUR_CALLS,
    Line,
    by_loop,
    goal,
    judged,
    planned,
    troupe,
    workflow_of,
)


def four(**lines: Line) -> Play:
    return Play(workflow_of(FOUR_CALLS), CATALOG, Cast(component=troupe(**lines))).open().run()


def test_every_role_has_the_type_of_its_answer() -> None:
    assert set(RESPONSE_OF) == set(StepRole)


@pytest.mark.parametrize(
    "plan",
    [
        planned(goal("a", "read"), goal("a", "put")),
        planned(goal("a", "read", depends_on=["b"])),
        planned(goal("a", "read", depends_on=["b"]), goal("b", "read", depends_on=["a"])),
        planned(*(goal(f"g{n}", "read") for n in range(11))),
        planned(goal("a", "read", bindings=[{"to": "/x", "from": "b"}]), goal("b", "read")),
    ],
)
def test_a_plan_that_cannot_run_is_the_planners_failure_and_none_of_it_runs(plan: Said) -> None:
    play = four(plan=plan, judge=judged("ABORT"))
    assert play.state.steps["plan"].status is StepStatus.FAILED
    failure = play.state.steps["plan"].error
    assert failure is not None
    assert failure.reason == "PLAN_REJECTED"
    assert not [s for s in play.sent if s.created.role is StepRole.EXECUTE]
    assert play.state.plans == ()


@pytest.mark.parametrize(
    ("step", "text"),
    [
        ("plan", b'{"plan":{"sub_goals":[{"id":""}]}}'),
        ("plan", b"not json"),
        ("judge", b'{"verdict":"PERHAPS"}'),
        ("judge", b"{}"),
        ("remember", b'{"stored":"many"}'),
    ],
)
def test_an_answer_that_cannot_be_read_is_a_broken_contract(step: str, text: bytes) -> None:
    play = four(**{step: Said(response=text)})
    failure = play.state.steps[step].error
    assert failure is not None
    assert failure.reason == "CONTRACT_VIOLATION"
    assert play.state.terminal


def test_memory_stays_what_was_recalled_last_and_an_empty_recall_forgets_nothing() -> None:
    memory = b'{"stored":1,"memory":[{"id":"m","data":{"n":0.10}}]}'
    remember = by_loop(Said(response=memory), Said(response=b'{"stored":1}'))
    play = four(remember=remember, judge=by_loop(judged("REPLAN"), judged("ACCEPT")))
    assert [bytes(item.data) for item in play.state.memory] == [b'{"n":0.10}']
    asked = [s for s in play.sent if s.created.step == "plan"][1]
    assert b'"data":{"n":0.10}' in asked.body


def test_an_unknown_field_of_an_answer_is_ignored() -> None:
    play = four(judge=Said(response=b'{"verdict":"ACCEPT","output":1,"mood":"fine"}'))
    assert play.state.status is SessionStatus.SUCCEEDED
