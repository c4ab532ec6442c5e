"""A plan that may not run: nothing of it runs, it becomes feedback, and perhaps another plan."""

import json
from typing import Final

import pytest

from acp_spec.model.enums import Mode, SessionStatus, StepRole, StepStatus, StepType
from acp_spec.model.payload import payload
from acp_spec.model.plan import Plan, SubGoal
from acp_spec.model.session import ManualStep
from gateway.engine import replay
from gateway.engine.events import CallCreated, FeedbackGiven
from gateway.engine.manual import manual_call
from gateway.engine.rejections import PLAN_GUARD, reasons_against
from gateway.engine.tests.casting import Cast, Terms
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


def test_in_a_manual_session_the_client_is_told_once_and_decides_itself() -> None:
    workflow = workflow_of(NO_JUDGE + GUARD % "")
    cast = Cast(component=troupe(plan=by_loop(TWICE)))
    play = Play(workflow, CATALOG, cast, terms=Terms(mode=Mode.MANUAL)).open()
    for until_ms, key in ((1_000, "plan"), (2_000, "act")):
        kind, asked = (StepType.PLAN, b"{}") if key == "plan" else (StepType.TOOL, READ_IT)
        wanted = ManualStep(step_type=kind, payload=payload(asked), step_key=key)
        made = manual_call(play.state, wanted, world=play.world())
        assert isinstance(made, CallCreated)
        play.feed(made)
        play.run(until_ms=until_ms)
    (given,) = told(play)
    assert "the contract allows 1" in given.feedback.comment
    assert play.status == "RUNNING"
    assert [call.status for call in play.state.calls.values()] == [StepStatus.SUCCEEDED] * 2
