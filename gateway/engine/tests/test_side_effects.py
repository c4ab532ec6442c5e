"""An error says what was done before it: of a call, of a step, of a session."""

from typing import Final

import pytest

from acp_spec.bindings.errors import error
from acp_spec.model.enums import SideEffect
from acp_spec.model.errors import Reason
from gateway.engine import side_effects
from gateway.engine.events import StepEnded
from gateway.engine.tests.casting import Cast, Said, Terms
from gateway.engine.tests.laws import check_end, check_replay, watch
from gateway.engine.tests.playing import Play
from gateway.engine.tests.stage import (
    CATALOG,
    ONE_ACTION,
    failed,
    first,
    gave,
    goal,
    judged,
    planned,
    troupe,
    workflow_of,
)
from gateway.engine.views import session_view, step_result

NONE, UNKNOWN, PERFORMED = SideEffect.NONE, SideEffect.UNKNOWN, SideEffect.PERFORMED

STEPS: Final = "workflow: one\nversion: 1.0.0\nsteps:\n"
ACT: Final = "  - {name: act, role: execute, action: %s, input_mapping: {n: '1'}"

TWO: Final = STEPS + ACT % "pay" + "}\n"
THEN: Final = "  - {name: then, role: execute, action: read, %s}\n"
JUDGE: Final = "  - {name: judge, role: reflect}\n"
LIES: Final = {
    "the output": TWO + "output: act.output.gone + 1\n",
    "an output_mapping": STEPS + ACT % "pay" + ", output_mapping: {fee: output.gone + 1}}\n",
    "a later input_mapping": TWO + THEN % "input_mapping: {n: act.output.gone + 1}",
    "a later condition": TWO + THEN % "condition: act.output.gone > 1",
    "the contract of the output": TWO
    + "output: act.output\ncontract: {output_schema: {required: [gone]}}\n",
    "a fallback": TWO
    + "output: act.output\nfallback: {output: act.output.gone + 1}\n"
    + "contract: {output_schema: {required: [gone]}, on_output_breach: fallback}\n",
    "a later call that is never sent": TWO + THEN % "input_mapping: {n: '1'}",
    "a judge that ends it": TWO + JUDGE,
}


def play(text: str, **lines: Said) -> Play:
    cast = Cast(component=troupe(**lines))
    done = watch(Play(workflow_of(text), CATALOG, cast)).open().run()
    check_end(done)
    check_replay(done)
    return done


def told(done: Play) -> SideEffect | None:
    failure = session_view(done.state).error
    assert failure is not None, done.state.status
    return failure.side_effect


@pytest.mark.parametrize("fails", LIES)
def test_a_session_that_paid_and_failed_after_it_says_performed(fails: str) -> None:
    refused = failed(Reason.INVALID_REQUEST, NONE)
    done = play(LIES[fails], pay=gave({}), read=refused, judge=judged("ABORT", critique="no"))
    assert told(done) is PERFORMED


def test_a_session_that_only_read_says_none() -> None:
    text = STEPS + ACT % "read" + "}\noutput: act.output.gone + 1\n"
    assert told(play(text, read=gave({}))) is NONE


def test_a_session_that_called_nobody_says_none() -> None:
    text = STEPS + ACT.replace("'1'", "input.gone + 1") % "pay" + "}\n"
    assert told(play(text)) is NONE


def test_what_may_have_been_done_is_never_told_as_none() -> None:
    text = TWO.replace("'1'}", "'1'}, on_error: continue") + "output: act.output.gone + 1\n"
    assert told(play(text, pay=failed(Reason.UNAVAILABLE))) is UNKNOWN


def test_a_refusal_after_a_lost_answer_leaves_the_call_unknown() -> None:
    """The second attempt proves nothing of the first: the call's own error may not say NONE."""
    lost, refused = failed(Reason.UNAVAILABLE), failed(Reason.INVALID_REQUEST, NONE)
    cast = Cast(component=troupe(book=first(1, lost, refused)))
    done = watch(Play(workflow_of(ONE_ACTION % "book"), CATALOG, cast)).open().run()
    check_end(done)
    (call,) = done.state.calls.values()
    assert [attempt.side_effect for attempt in call.attempts] == [UNKNOWN, NONE]
    failure = step_result(done.state, call).error
    assert failure is not None
    assert (failure.reason, failure.side_effect) == ("INVALID_REQUEST", UNKNOWN)
    assert told(done) is UNKNOWN


def test_a_step_says_what_its_own_calls_did_and_the_session_what_all_did() -> None:
    text = TWO + THEN % "input_mapping: {n: '1'}, output_mapping: {fee: output.gone + 1}"
    done = play(text, pay=gave({}), read=gave({}))
    (step,) = [event for event in done.journal if isinstance(event, StepEnded) and event.error]
    assert step.error is not None
    assert (step.step, step.error.side_effect) == ("then", NONE)
    assert told(done) is PERFORMED


def test_a_plan_of_which_one_sub_goal_was_done_says_performed() -> None:
    text = STEPS + (
        "  - {name: plan, role: plan, input_mapping: {goal: input.query}}\n"
        "  - {name: act, role: execute, plan: plan, require: all}\n"
    )
    plan = planned(goal("a", "put"), goal("b", "read"))
    refused = failed(Reason.INVALID_REQUEST, NONE)
    assert told(play(text, plan=plan, put=gave(1), read=refused)) is PERFORMED


def test_a_session_cancelled_after_it_paid_says_performed() -> None:
    text = TWO + THEN % "input_mapping: {n: '1'}"
    cast = Cast(component=troupe(read=Said(response=b"{}", after_ms=3_000)))
    terms = Terms(cancel_grace_ms=700)
    done = watch(Play(workflow_of(text), CATALOG, cast, terms=terms)).open().run(until_ms=50)
    done.cancel()
    done.run()
    check_end(done)
    assert (done.status, told(done)) == ("CANCELLED", PERFORMED)


def test_effects_join_to_the_most_that_was_done() -> None:
    assert side_effects.joined(()) is NONE
    assert side_effects.joined((NONE, UNKNOWN)) is UNKNOWN
    assert side_effects.joined((PERFORMED, UNKNOWN, NONE)) is PERFORMED


def test_an_error_that_states_more_than_its_call_keeps_it() -> None:
    done = play(ONE_ACTION % "read")
    (call,) = done.state.calls.values()
    stated = error(Reason.UNKNOWN, "lost", side_effect=UNKNOWN)
    assert side_effects.of_call(stated, call) == stated
