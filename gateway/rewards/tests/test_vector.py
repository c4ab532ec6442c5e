"""The reward vector: what was prevented is null, an event is charged once, shaping sums to 0."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acp_spec.bindings.errors import ERRORS
from acp_spec.model.calls import Reward
from acp_spec.model.enums import TERMINAL_SESSION, Boundary, FeedbackKind, SessionStatus
from acp_spec.model.errors import AcpError, Code, Reason
from acp_spec.model.plan import Plan, SubGoal
from acp_spec.model.reward_vector import Quality, RewardVector, Validity
from acp_spec.model.session import FeedbackTarget
from acp_spec.model.trajectory import Attempt, PlanVersion, Trajectory
from gateway.rewards.rules import HOUR_MS, RewardRules
from gateway.rewards.tests.records import (
    AS_OF_MS,
    ENDED_MS,
    attempt,
    failure,
    rules_of,
    said,
    trajectory,
)
from gateway.rewards.vector import vector

STARS = "- {name: stars, kind: outcome, each: feedback, value: feedback.score}\n"
GREEDY = """
- {name: end, kind: outcome, value: "end.status == 'SUCCEEDED' ? 1.0 : 0.0"}
- {name: calls, kind: outcome, each: call, part: step, value: "call.succeeded ? 1.0 : 0.0"}
- {name: tries, kind: outcome, each: attempt, part: session, value: 0}
- {name: long, kind: outcome, each: call, part: long_term, value: 0}
"""
"""Rules that give a 0 to whatever did not go well: they may only do so where something judged."""
FAILED = """
- name: failed
  kind: cost
  each: attempt
  part: step
  when: "!attempt.succeeded"
  cost: 0.25
"""
DONE = "double(progress.done) / double(progress.planned)"
POTENTIAL = f"progress.ended || progress.planned == 0 ? 0.0 : {DONE}"
SHAPED = f'- {{name: progress, kind: shaping, potential: "{POTENTIAL}"}}\n'


def scored(found: Trajectory, rules: RewardRules, as_of_ms: int = AS_OF_MS) -> RewardVector:
    return vector(found, rules, as_of_ms=as_of_ms)


# ---- two channels ------------------------------------------------------------------------------


@given(
    boundary=st.sampled_from(Boundary),
    reason=st.sampled_from(Reason),
    where=st.sampled_from(["call", "session", "both"]),
)
def test_a_failure_of_something_else_never_scores_a_zero(
    boundary: Boundary, reason: Reason, where: str
) -> None:
    """Over all failure boundaries: the components' own answers are judged, all else is null."""
    broken = AcpError(code=ERRORS[reason].code, reason=reason.value, message="x", boundary=boundary)
    is_answer = (
        boundary is Boundary.COMPONENT
        and reason
        in (
            Reason.INVALID_REQUEST,
            Reason.SEMANTIC_MISMATCH,
            Reason.CONTRACT_VIOLATION,
            Reason.IDEMPOTENCY_CONFLICT,
            Reason.NOT_FOUND,
            Reason.ALREADY_EXISTS,
        )
    ) or reason in (Reason.PLAN_REJECTED, Reason.LOOP_LIMIT)
    found = trajectory(
        status=SessionStatus.SUCCEEDED if where == "call" else SessionStatus.FAILED,
        error=None if where == "call" else broken,
        calls=(attempt("c", error=None if where == "session" else broken),),
    )
    rewards = scored(found, rules_of(GREEDY + FAILED))
    (step,) = rewards.step
    if where != "session":
        assert (step.quality.value == 0.0) is is_answer, step.quality
        assert step.quality.validity is (Validity.VALID if is_answer else Validity.NOT_JUDGED)
        assert step.operational == -0.25, "how it went is charged all the same"
    if where != "call" and not is_answer:
        assert rewards.session.quality.value is None
        assert rewards.session.quality.reason == f"{boundary.value}: {reason.value}"
        assert rewards.long_term.quality.value is None


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"status": SessionStatus.CANCELLED}, "CLIENT: CANCELLED"),
        ({"fell_back": True}, "GATEWAY: a fallback answered"),
        ({"status": SessionStatus.RUNNING, "ended_at": ""}, "the session has not ended"),
        ({"status": SessionStatus.FAILED}, "UNKNOWN: the session failed without an error"),
    ],
)
def test_an_end_that_says_nothing_of_the_work_is_null_with_its_reason(
    changes: dict[str, object], reason: str
) -> None:
    quality = scored(trajectory(**changes), rules_of(GREEDY)).session.quality
    assert (quality.value, quality.reason) == (None, reason)


@pytest.mark.parametrize("each", ["call", "attempt"])
@pytest.mark.parametrize("part", ["session", "long_term"])
def test_calls_that_went_well_do_not_judge_a_session_that_something_else_ended(
    each: str, part: str
) -> None:
    rules = rules_of(f"- {{name: a, kind: outcome, each: {each}, part: {part}, value: 0}}\n")
    broken = trajectory(
        status=SessionStatus.FAILED, error=failure(Boundary.DOWNSTREAM), calls=(attempt("c"),)
    )
    found = scored(broken, rules)
    quality = found.session.quality if part == "session" else found.long_term.quality
    assert (quality.value, quality.reason) == (None, "DOWNSTREAM: UNAVAILABLE")
    whole = scored(trajectory(calls=(attempt("c"),)), rules)
    assert 0.0 in (whole.session.quality.value, whole.long_term.quality.value)


def test_what_a_person_says_of_a_session_that_broke_down_is_a_judgement_all_the_same() -> None:
    found = trajectory(
        status=SessionStatus.FAILED, error=failure(Boundary.DOWNSTREAM), feedback=(said(0.25),)
    )
    assert scored(found, rules_of(STARS)).session.quality.value == 0.25


def test_a_judge_that_failed_leaves_the_session_unjudged_and_says_so() -> None:
    judge = attempt("r", role="REFLECT", step="judge", error=failure(reason="TIMEOUT"))
    quality = scored(trajectory(calls=(judge,)), rules_of(STARS)).session.quality
    assert quality.validity is Validity.NOT_JUDGED
    assert quality.reason == "judge: TIMEOUT: it failed"


def test_a_rule_that_breaks_gives_a_null_and_a_problem_and_no_zero() -> None:
    rules = rules_of("- {name: odd, kind: outcome, value: output.missing}\n")
    found = scored(trajectory(), rules)
    assert (found.session.quality.value, found.session.quality.reason) == (None, "rule odd broke")
    assert found.problems == ("rule odd: output.missing does not exist",)


@pytest.mark.parametrize(
    "wrong",
    [
        {"value": 0.5, "validity": Validity.NOT_JUDGED, "reason": "x"},
        {"value": None, "validity": Validity.VALID},
        {"value": None, "validity": Validity.NOT_JUDGED},
    ],
)
def test_a_quality_that_is_both_null_and_valid_cannot_be_built(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="quality"):
        Quality(**wrong)  # type: ignore[arg-type]


# ---- one event is charged once -----------------------------------------------------------------

ATTEMPTS = st.lists(
    st.builds(
        lambda call, error: (f"c{call}", error), st.integers(0, 3), st.none() | st.just(failure())
    ),
    max_size=8,
)


def _numbered(rows: list[tuple[str, AcpError | None]]) -> tuple[Attempt, ...]:
    numbers: dict[str, int] = {}
    found = []
    for at_ms, (call_id, error) in enumerate(rows):
        numbers[call_id] = numbers.get(call_id, 0) + 1
        found.append(attempt(call_id, numbers[call_id], at_ms=at_ms, error=error))
    return tuple(found)


COSTS = st.lists(
    st.tuples(
        st.sampled_from(["cost", "outcome"]),
        st.sampled_from(["call", "attempt"]),
        st.sampled_from(["step", "session", "long_term"]),
        st.sampled_from(["", "'!%s.succeeded'"]),
    ),
    min_size=1,
    max_size=5,
)


@given(rows=ATTEMPTS, drawn=COSTS)
def test_no_event_is_charged_twice_in_whatever_part_and_by_whatever_rules(
    rows: list[tuple[str, AcpError | None]], drawn: list[tuple[str, str, str, str]]
) -> None:
    text = ""
    for number, (kind, each, part, when) in enumerate(drawn):
        condition = f"when: {when % each}, " if when else ""
        worth = "cost" if kind == "cost" else "value"
        text += f"- {{name: r{number}, kind: {kind}, each: {each}, part: {part}, {condition}"
        text += f"{worth}: 1}}\n"
    found = scored(trajectory(calls=_numbered(rows)), rules_of(text))
    for kind in ("COST", "OUTCOME"):
        keys = [entry.event for entry in found.entries if entry.kind == kind]
        assert len(keys) == len(set(keys))
    charged = [entry.value for entry in found.entries if entry.kind == "COST"]
    parts = [found.session.operational, found.long_term.operational]
    total = sum(parts) + sum(step.operational for step in found.step)
    assert total == sum(charged) >= -len(rows), "all parts together hold each charge once"


def test_a_call_and_the_attempt_that_settled_it_are_one_event() -> None:
    rows = (attempt("c", 1, error=failure()), attempt("c", 2, at_ms=5, error=failure()))
    both = FAILED + "- {name: lost, kind: cost, each: call, when: '!call.succeeded', cost: 1}\n"
    found = scored(trajectory(calls=rows), rules_of(both))
    assert (found.step[0].operational, found.session.operational) == (-0.5, 0.0)


def test_a_hedge_that_was_cancelled_beside_a_good_answer_does_not_settle_the_call() -> None:
    cancelled = failure(Boundary.GATEWAY, Code.CANCELLED, "CANCELLED")
    rows = (attempt("c", 1, at_ms=9), attempt("c", 2, hedge=True, error=cancelled))
    found = scored(trajectory(calls=rows), rules_of(GREEDY))
    assert found.step[0].quality.value == 1.0


def test_costs_weigh_by_action_and_the_star_is_for_all_others() -> None:
    rows = (
        attempt("a", action="transfer", error=failure()),
        attempt("b", action="read", error=failure()),
        attempt("c", action="quote"),
    )
    rules = rules_of(FAILED, head="penalties: {transfer: 4, '*': 2}\n")
    assert [step.operational for step in scored(trajectory(calls=rows), rules).step] == [
        -1,
        -0.5,
        0,
    ]


# ---- shaping -----------------------------------------------------------------------------------


@given(
    rows=ATTEMPTS,
    goals=st.integers(0, 4),
    status=st.sampled_from(sorted(TERMINAL_SESSION, key=str)),
    scale=st.floats(-1000, 1000),
)
def test_shaping_leaves_the_sum_over_an_ended_session_as_it_was(
    rows: list[tuple[str, AcpError | None]], goals: int, status: SessionStatus, scale: float
) -> None:
    plan = Plan(sub_goals=tuple(SubGoal(id=f"g{n}", action="read") for n in range(goals)))
    calls = (
        attempt("p", role="PLAN", step="plan"),
        *(_with_goal(row) for row in _numbered(rows)),
    )
    found = trajectory(
        status=status,
        plan=(PlanVersion(generation=1, step="plan", call_id="p", plan=plan),),
        calls=calls,
    )
    more = f"progress.ended ? 0.0 : {scale!r} * double(progress.calls)"
    text = FAILED + SHAPED + f"- {{name: more, kind: shaping, potential: '{more}'}}\n"
    rewards = scored(found, rules_of(text))
    raw = math.fsum(step.operational for step in rewards.step)
    shaped = math.fsum(step.shaped for step in rewards.step)
    assert shaped == pytest.approx(raw, abs=1e-9 * max(1.0, abs(scale)) * len(calls))
    if goals and any(row.call_id == "c0" and row.error is None for row in calls):
        assert any(step.shaped != step.operational for step in rewards.step)


def _with_goal(row: Attempt) -> Attempt:
    return attempt(
        row.call_id,
        row.attempt,
        ended_at=row.ended_at,
        error=row.error,
        sub_goal=f"g-{row.call_id}",
    )


def test_each_call_gains_what_it_brought_nearer_and_the_last_gives_it_back() -> None:
    plan = Plan(sub_goals=tuple(SubGoal(id=name, action="read") for name in "abcd"))
    found = trajectory(
        plan=(PlanVersion(generation=1, step="plan", call_id="p", plan=plan),),
        calls=(
            attempt("p", role="PLAN", step="plan"),
            attempt("a", at_ms=1, sub_goal="a"),
            attempt("b", at_ms=2, sub_goal="b"),
            attempt("r", at_ms=3, role="REFLECT", step="judge"),
        ),
    )
    assert [one.shaped for one in scored(found, rules_of(SHAPED)).step] == [0, 0.25, 0.25, -0.5]


def test_a_potential_that_turns_out_not_to_be_zero_at_an_end_shapes_nothing() -> None:
    """It passed the check with the ends that were tried, and is held at the real one again."""
    odd = "progress.calls == 2 ? 7.0 : 0.0"
    rules = rules_of(f'- {{name: odd, kind: shaping, potential: "{odd}"}}\n')
    found = scored(trajectory(calls=(attempt("a"), attempt("b", at_ms=1))), rules)
    assert [one.shaped for one in found.step] == [0, 0]
    assert found.problems == ("rule odd: the potential is 7 at this end, not 0",)


# ---- decay, time, order ------------------------------------------------------------------------


def test_a_late_signal_of_a_program_weighs_less_and_a_late_rating_as_much_as_ever() -> None:
    head = "half_life_hours: {VALIDATION: 2}\n"
    rows = (
        said(0.0, FeedbackKind.VALIDATION, delay_ms=4 * HOUR_MS, author="linter"),
        said(1.0, delay_ms=90 * 24 * HOUR_MS),
    )
    found = scored(trajectory(feedback=rows), rules_of(STARS, head))
    assert [entry.weight for entry in found.entries] == [0.25, 1.0]
    assert found.session.quality == Quality(value=0.8, weight=1.25)


def test_a_validation_that_comes_ages_later_is_no_judgement_any_more() -> None:
    row = said(1.0, FeedbackKind.VALIDATION, delay_ms=1_000_000 * HOUR_MS)
    quality = scored(trajectory(feedback=(row,)), rules_of(STARS)).session.quality
    assert (quality.value, quality.reason) == (None, "all that was said of it has faded")


def test_the_delay_is_counted_from_the_end_of_what_is_judged() -> None:
    target = FeedbackTarget(step="act")
    early = attempt("a", at_ms=0)
    row = said(1.0, FeedbackKind.VALIDATION, target=target)
    text = "- {name: s, kind: outcome, each: feedback, part: step, value: feedback.score}\n"
    rules = rules_of(text, head="half_life_hours: {VALIDATION: 0.001}\n")
    (entry,) = scored(trajectory(calls=(early,), feedback=(row,)), rules).entries
    assert entry.weight == pytest.approx(0.5 ** (10_000 / 3_600))


@given(order=st.permutations(range(4)))
def test_the_order_in_which_feedback_came_changes_no_reward(order: list[int]) -> None:
    rows = [said(0.1 * n, delay_ms=n, author=f"a{n}") for n in range(4)]
    there = scored(trajectory(feedback=tuple(rows[n] for n in order)), rules_of(STARS))
    assert there.session == scored(trajectory(feedback=tuple(rows)), rules_of(STARS)).session


def test_what_was_said_after_as_of_is_not_in_it() -> None:
    found = trajectory(feedback=(said(1.0), said(0.0, delay_ms=5_000, author="bo")))
    early = scored(found, rules_of(STARS), as_of_ms=ENDED_MS + 4_999)
    assert (early.session.quality.value, early.as_of) == (1.0, "1970-01-01T00:16:54.999Z")
    assert scored(found, rules_of(STARS)).session.quality.value == 0.5


def test_judgements_of_the_reflector_and_of_people_reach_the_part_that_a_rule_names() -> None:
    text = """
- name: correct
  kind: outcome
  each: judgement
  part: step
  when: judgement.name == 'correct'
  value: judgement.value
- name: later
  kind: outcome
  each: feedback
  part: long_term
  when: "feedback.kind == 'OUTCOME'"
  value: feedback.score
- {name: other, kind: outcome, each: feedback, value: feedback.score, workflows: [another]}
"""
    found = trajectory(
        calls=(attempt("c"), attempt("d")),
        reflector_rewards=(
            Reward(name="correct", value=0.5, call_id="c"),
            Reward(name="style", value=9.0, call_id="c"),
        ),
        feedback=(said(1.0, FeedbackKind.OUTCOME), said(0.1)),
    )
    rewards = scored(found, rules_of(text))
    assert [one.quality.value for one in rewards.step] == [0.5, None]
    assert rewards.step[1].quality.reason == "nobody judged it"
    assert rewards.long_term.quality.value == 1.0
    assert rewards.session.quality.value is None, "the rule is for another workflow"


def test_a_call_under_way_is_not_reached_and_nothing_is_known_of_it() -> None:
    running = attempt("c", ended_at="")
    found = trajectory(status=SessionStatus.RUNNING, ended_at="", calls=(running,))
    (step,) = scored(found, rules_of(GREEDY + FAILED)).step
    assert step.quality.validity is Validity.NOT_REACHED
    assert step.operational == 0, "nothing of it has failed yet"


@given(
    kinds=st.lists(st.sampled_from(FeedbackKind), max_size=4), status=st.sampled_from(SessionStatus)
)
def test_the_operational_channel_is_never_null(
    kinds: list[FeedbackKind], status: SessionStatus
) -> None:
    rows = tuple(said(0.0, kind, author=f"a{n}") for n, kind in enumerate(kinds))
    found = scored(trajectory(status=status, feedback=rows), rules_of(GREEDY + FAILED + STARS))
    figures = [found.session.operational, found.long_term.operational]
    figures += [step.operational for step in found.step]
    assert all(isinstance(figure, float) for figure in figures)
