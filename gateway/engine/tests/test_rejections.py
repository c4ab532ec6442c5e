"""A plan that may not run: nothing of it runs, it becomes feedback, and perhaps another plan."""

import json
from typing import Final

import msgspec
import pytest

from acp_spec.model.enums import (
    FeedbackKind,
    Mode,
    SessionStatus,
    StepRole,
    StepStatus,
    StepType,
)
from acp_spec.model.ids import call_id
from acp_spec.model.payload import is_absent, payload
from acp_spec.model.plan import Plan, SubGoal
from acp_spec.model.session import Feedback, ManualStep, StepResult
from gateway.engine import replay
from gateway.engine.events import CallCreated, FeedbackGiven
from gateway.engine.manual import manual_call
from gateway.engine.rejections import PLAN_GUARD, reasons_against
from gateway.engine.states import SessionState
from gateway.engine.tests.casting import Cast, Said, Terms
from gateway.engine.tests.laws import check_end, watch
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
from gateway.engine.trajectories import trajectory
from gateway.engine.views import session_view, step_result

NO_JUDGE: Final = """
workflow: guarded
version: 1.0.0
steps:
  - {name: plan, role: plan}
  - {name: act, role: execute, plan: plan}
output: act.output
limits: {max_loops: 2}
"""
TWICE: Final = planned(goal("a", "read"), goal("b", "read"))
ONCE: Final = planned(goal("a", "read"))
GUARD: Final = "contract: {plan: {max_calls: 1%s}}\n"
READ_IT: Final = b'{"action":"read"}'
REPLAN: Final = GUARD % ", on_reject: replan"


def session(text: str, **lines: Line) -> Play:
    play = watch(Play(workflow_of(text), CATALOG, Cast(component=troupe(**lines)))).open().run()
    check_end(play)
    return play


def executed(play: Play) -> list[str]:
    return [s.created.sub_goal for s in play.sent if s.created.role is StepRole.EXECUTE]


def told(play: Play) -> list[FeedbackGiven]:
    return [event for event in play.journal if isinstance(event, FeedbackGiven)]


def test_a_rejected_plan_fails_the_session_and_nothing_of_it_runs() -> None:
    play = session(NO_JUDGE + GUARD % "", plan=TWICE)
    failure = play.state.error
    assert failure is not None
    assert (play.status, failure.reason) == ("FAILED", "PLAN_REJECTED")
    assert "calls 'read' 2 times; the contract allows 1" in failure.message
    assert executed(play) == []


def test_the_rejection_is_feedback_in_the_trajectory_beside_the_plan_it_rejects() -> None:
    play = session(NO_JUDGE + GUARD % "", plan=TWICE)
    record = trajectory(play.state)
    (row,) = record.feedback
    assert row.feedback.author == PLAN_GUARD
    assert row.feedback.score == 0
    assert "the contract allows 1" in row.feedback.comment
    assert row.feedback.target.call_id == record.plan[0].call_id
    assert len(record.plan[0].plan.sub_goals) == 2


def test_without_a_contract_what_is_no_plan_at_all_becomes_feedback_too() -> None:
    play = session(NO_JUDGE, plan=planned(goal("a", "read", depends_on=["gone"])))
    (given,) = told(play)
    assert "depends on 'gone'" in given.feedback.comment


def test_where_the_contract_says_so_the_planner_is_asked_again_with_the_reason() -> None:
    play = session(NO_JUDGE + REPLAN, plan=by_loop(TWICE, ONCE))
    assert play.status == "SUCCEEDED"
    assert executed(play) == ["a"]
    first, second = (s.created for s in play.sent if s.created.role is StepRole.PLAN)
    assert first.call_id != second.call_id
    asked = json.loads(bytes(second.body))
    assert "the contract allows 1" in asked["critique"]
    assert len(asked["previous_plan"]["sub_goals"]) == 2
    assert len(told(play)) == 1


def test_replanning_is_bounded_by_the_loops_and_ends_as_a_rejected_plan() -> None:
    play = session(NO_JUDGE + REPLAN, plan=TWICE)
    assert sum(s.created.role is StepRole.PLAN for s in play.sent) == 3
    assert play.state.loop == 2
    assert play.state.error is not None
    assert play.state.error.reason == "PLAN_REJECTED"
    assert len(told(play)) == 3


def test_a_replan_leaves_the_verdicts_fewer_loops() -> None:
    text = FOUR_CALLS + "limits: {max_loops: 1}\n" + REPLAN
    play = session(text, plan=by_loop(TWICE, ONCE), judge=judged("REPLAN"))
    assert play.state.error is not None
    assert play.state.error.reason == "LOOP_LIMIT"
    assert executed(play) == ["a"]


def test_a_reflector_behind_a_rejected_plan_decides_as_after_any_failed_step() -> None:
    play = session(FOUR_CALLS + GUARD % "", plan=TWICE)
    assert play.status == "SUCCEEDED"
    assert play.state.steps["plan"].status is StepStatus.FAILED
    assert executed(play) == []


@pytest.mark.parametrize(
    ("allowed", "status"), [("[read]", "SUCCEEDED"), ("['re*']", "SUCCEEDED"), ("[put]", "FAILED")]
)
def test_an_action_off_the_list_rejects_the_plan(allowed: str, status: str) -> None:
    play = session(f"{NO_JUDGE}contract: {{allowed_actions: {allowed}}}\n", plan=ONCE)
    assert play.status == status
    if status == "FAILED":
        assert play.state.error is not None
        assert play.state.error.message == "the contract does not allow the action 'read'"


def test_a_planner_is_offered_only_what_the_contract_allows() -> None:
    play = session(NO_JUDGE + "contract: {allowed_actions: [read]}\n", plan=ONCE)
    asked = json.loads(bytes(play.sent[0].created.body))
    assert [action["name"] for action in asked["actions"]] == ["read"]


@pytest.mark.parametrize("contract", [GUARD % "", REPLAN])
def test_a_replay_comes_to_the_same_without_judging_again(contract: str) -> None:
    play = session(NO_JUDGE + contract, plan=by_loop(TWICE, ONCE))
    unguarded = workflow_of(NO_JUDGE)  # whoever judged again would come to another end
    state, played = replay.play(play.journal, unguarded)
    assert state.status is SessionStatus(play.status)
    assert state.commanded == play.state.commanded
    assert len(played) == len(play.journal)
    assert replay.check(play.journal, unguarded).same


def test_a_crash_anywhere_judges_no_plan_twice() -> None:
    cast = Cast(component=troupe(plan=by_loop(TWICE, ONCE)))
    play = Play(workflow_of(NO_JUDGE + REPLAN), CATALOG, cast).open().run(until_ms=1_000)
    for kept in range(1, len(play.journal)):
        again = play.crashed(kept).run()
        assert again.status == "SUCCEEDED", kept
        assert len(told(again)) == 1, kept


def test_of_a_plan_with_a_thousand_faults_ten_are_told() -> None:
    goals = tuple(SubGoal(id=str(n), action=f"a{n}") for n in range(1_000))
    contract = workflow_of(NO_JUDGE + "contract: {allowed_actions: []}\n").contract
    told = reasons_against(Plan(sub_goals=goals), contract)
    assert told.count("does not allow") == 10
    assert told.endswith("; and 990 more")


def by_hand(text: str, *plans: Said) -> Play:
    """A MANUAL session whose client asks for these plans, one step after the other."""
    answers = list(plans)
    cast = Cast(component=lambda sent: answers.pop(0))
    play = Play(workflow_of(text), CATALOG, cast, terms=Terms(mode=Mode.MANUAL)).open()
    for number in range(1, len(plans) + 1):
        step_by_hand(play, f"plan{number}", kind=StepType.PLAN)
    return play


def step_by_hand(play: Play, key: str, *, kind: StepType, asked: bytes = b"{}") -> None:
    wanted = ManualStep(step_type=kind, payload=payload(asked), step_key=key)
    made = manual_call(play.state, wanted, world=play.world())
    assert isinstance(made, CallCreated)
    play.feed(made)
    play.run(until_ms=1_000 * len(play.state.manual))


def answered(state: SessionState, key: str) -> StepResult:
    return step_result(state, state.calls[state.manual[key]])


def test_in_a_manual_session_the_step_that_asked_for_the_plan_is_refused_as_a_workflow_is() -> None:
    play = by_hand(NO_JUDGE + GUARD % "", TWICE, ONCE)
    (given,) = told(play)
    refused, taken = answered(play.state, "plan1"), answered(play.state, "plan2")
    assert refused.status is StepStatus.FAILED
    assert refused.error == session(NO_JUDGE + GUARD % "", plan=TWICE).state.error
    assert refused.error is not None
    assert refused.error.message == given.feedback.comment
    assert is_absent(refused.response), "nobody runs what was not given out"
    assert (taken.status, taken.error) == (StepStatus.SUCCEEDED, None)
    assert not is_absent(taken.response)
    assert play.status == "RUNNING"


def test_a_plan_refused_by_hand_stays_in_the_record_and_is_refused_when_it_is_read_back() -> None:
    play = by_hand(NO_JUDGE + GUARD % "", TWICE)
    assert len(trajectory(play.state).plan[0].plan.sub_goals) == 2
    statuses = {step.name: step.status for step in session_view(play.state).steps}
    assert statuses["plan1"] is StepStatus.FAILED
    again, _ = replay.play(play.journal, workflow_of(NO_JUDGE))
    assert answered(again, "plan1").error == answered(play.state, "plan1").error


def test_what_is_no_plan_at_all_becomes_feedback_in_a_manual_session_too_and_once() -> None:
    play = by_hand(NO_JUDGE, planned(goal("a", "read", depends_on=["gone"])), ONCE)
    (given,) = told(play)
    refused = answered(play.state, "plan1")
    assert given.feedback.author == PLAN_GUARD
    assert refused.error is not None
    assert refused.error.reason == "PLAN_REJECTED"
    assert given.feedback.comment == refused.error.message
    assert is_absent(refused.response)


def test_a_plan_that_comes_while_the_session_is_cancelled_is_judged_all_the_same() -> None:
    cast = Cast(component=lambda sent: msgspec.structs.replace(TWICE, after_ms=500))
    text = NO_JUDGE + GUARD % ""
    play = Play(workflow_of(text), CATALOG, cast, terms=Terms(mode=Mode.MANUAL)).open()
    play.at(100, play.cancel)
    step_by_hand(play, "plan", kind=StepType.PLAN)
    play.run()
    assert play.status == "CANCELLED"
    assert len(told(play)) == 1
    assert answered(play.state, "plan").status is StepStatus.FAILED


def test_feedback_that_takes_the_guards_id_keeps_no_plan_from_being_refused() -> None:
    play = by_hand(NO_JUDGE + GUARD % "", ONCE)
    key = call_id(play.state.session_id, "plan2", sub_goal="", generation=0, redo=0)
    forged = Feedback(
        kind=FeedbackKind.VALIDATION,
        score=1.0,
        author="somebody",
        time="2026-01-01T00:00:00Z",
        feedback_id=f"{PLAN_GUARD}/{key}",
    )
    play.feed(FeedbackGiven(at_ms=play.now_ms, feedback=forged, feedback_id=forged.feedback_id))
    play.cast = Cast(component=lambda sent: TWICE)
    step_by_hand(play, "plan2", kind=StepType.PLAN)
    assert answered(play.state, "plan2").status is StepStatus.FAILED


def test_behind_a_refused_plan_the_client_still_takes_steps_of_its_own() -> None:
    play = by_hand(NO_JUDGE + GUARD % "", TWICE)
    play.cast = Cast(component=troupe())
    step_by_hand(play, "act", kind=StepType.TOOL, asked=READ_IT)
    assert answered(play.state, "act").status is StepStatus.SUCCEEDED
    assert len(told(play)) == 1
