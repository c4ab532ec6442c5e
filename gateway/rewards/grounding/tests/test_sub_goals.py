"""What was planned and not done: told, and excused where it was not the plan's doing."""

from msgspec.structs import replace

from acp_spec.bindings.errors import error
from acp_spec.model.enums import Operator, SessionStatus
from acp_spec.model.errors import Reason
from acp_spec.model.payload import payload
from acp_spec.model.plan import SubGoal, When
from gateway.engine.rejections import PLAN_GUARD
from gateway.rewards.grounding.sub_goals import sub_goals_without_calls
from gateway.rewards.grounding.tests.records import attempt, planned, review, session

FAILED = error(Reason.BREAKER_OPEN, "open")
LOOK = SubGoal(id="look", action="get.balance")
PAY = SubGoal(id="pay", action="set.payment", depends_on=("look",))


def _told(*args: object, **kwargs: object) -> list[tuple[str, bool]]:
    found = sub_goals_without_calls(session(*args, **kwargs))  # type: ignore[arg-type]
    return [(one.sub_goal, one.excused) for one in found]


def test_sub_goals_whose_calls_were_executed_are_not_told_even_if_they_failed() -> None:
    calls = (attempt("get.balance", "{}", sub_goal="look"),
             attempt("set.payment", sub_goal="pay", error=FAILED))  # fmt: skip
    assert _told(*calls, plan=(planned(LOOK, PAY),)) == []


def test_a_sub_goal_that_nobody_ran_is_told_and_charged() -> None:
    look = attempt("get.balance", "{}", sub_goal="look")
    (found,) = sub_goals_without_calls(session(look, plan=(planned(LOOK, PAY),)))
    assert (found.sub_goal, found.action, found.excused) == ("pay", "set.payment", False)
    assert found.reason == "no call of set.payment was executed for it"


def test_a_call_of_another_action_does_not_stand_for_a_sub_goal() -> None:
    other = attempt("get.rates", "{}", sub_goal="look")
    assert _told(other, plan=(planned(LOOK),)) == [("look", False)]


def test_a_result_that_was_taken_over_counts() -> None:
    reused = replace(attempt("get.balance", "{}", sub_goal="look", sent=False), reused=True)
    assert _told(reused, plan=(planned(LOOK),)) == []


def test_what_depends_on_a_failure_is_excused_because_that_is_charged_already() -> None:
    failed = attempt("get.balance", sub_goal="look", error=FAILED)
    assert _told(failed, plan=(planned(LOOK, PAY),)) == [("pay", True)]


def test_a_call_that_was_refused_before_it_was_sent_is_excused() -> None:
    refused = attempt("get.balance", sub_goal="look", error=FAILED, sent=False)
    (found,) = sub_goals_without_calls(session(refused, plan=(planned(LOOK),)))
    assert found.excused
    assert "BREAKER_OPEN" in found.reason


def test_a_condition_that_did_not_hold_excuses_and_one_that_held_does_not() -> None:
    look = attempt("get.balance", '{"low":true}', sub_goal="look")

    def pay(wanted: bytes) -> SubGoal:
        low = When(from_="look", pointer="/low", op=Operator.EQ, value=payload(wanted))
        return replace(PAY, depends_on=(), when=(low,))

    assert _told(look, plan=(planned(LOOK, pay(b"false")),)) == [("pay", True)]
    assert _told(look, plan=(planned(LOOK, pay(b"true")),)) == [("pay", False)]


def test_only_the_last_plan_of_a_step_counts() -> None:
    look = attempt("get.balance", "{}", sub_goal="look")
    plans = (planned(LOOK, PAY), planned(LOOK, generation=1))
    assert _told(look, plan=plans) == []


def test_two_plan_steps_each_have_their_plan() -> None:
    look = attempt("get.balance", "{}", sub_goal="look")
    plans = (planned(LOOK), planned(replace(PAY, depends_on=()), step="second"))
    assert _told(look, plan=plans) == [("pay", False)]


def test_in_a_session_by_hand_calls_are_matched_by_their_action_one_each() -> None:
    twice = (planned(LOOK, replace(LOOK, id="again")),)
    one = attempt("get.balance", "{}")
    assert _told(one, plan=twice) == [("again", False)]
    assert _told(one, replace(one, call_id="other"), plan=twice) == []


def test_a_rejected_plan_and_a_session_that_did_not_succeed_are_excused() -> None:
    rejected = (review(0.0, author=PLAN_GUARD, call_id="plan0"),)
    assert _told(plan=(planned(LOOK),), feedback=rejected) == [("look", True)]
    ended = replace(session(plan=(planned(LOOK),)), status=SessionStatus.CANCELLED)
    assert [one.excused for one in sub_goals_without_calls(ended)] == [True]


def test_a_running_session_is_not_judged() -> None:
    assert sub_goals_without_calls(replace(session(plan=(planned(LOOK),)), ended_at="")) == ()


def test_of_two_attempts_that_raced_the_one_that_won_is_the_call() -> None:
    won = attempt("get.balance", '{"low":true}', sub_goal="look")
    lost = replace(won, attempt=2, output=payload(b""), error=FAILED)
    assert _told(won, lost, plan=(planned(LOOK, PAY),)) == [("pay", False)], "not excused by `lost`"
