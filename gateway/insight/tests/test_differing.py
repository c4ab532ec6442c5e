"""Differences of two runs: none with itself, the same from both sides, each planted one named."""

import json
from collections.abc import Callable

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acp_spec.bindings.errors import error
from acp_spec.model.enums import FeedbackKind, SessionStatus
from acp_spec.model.errors import Reason
from acp_spec.model.payload import payload
from acp_spec.model.plan import Plan, SubGoal
from acp_spec.model.recovery import Option, PolicyRef, Trigger
from acp_spec.model.reward_vector import PartReward, Quality, RewardVector, RulesRef, Validity
from acp_spec.model.session import Feedback, RolloutMark
from acp_spec.model.trajectory import (
    DecisionRow,
    FeedbackRow,
    Lineage,
    PlanVersion,
    QualityReward,
    Rewards,
    Trajectory,
)
from gateway.insight.differing import (
    FIELDS_MAX,
    OTHERS,
    TEXT_CHARACTERS_MAX,
    Difference,
    Parting,
    RunDiff,
    Subject,
    difference,
)
from gateway.insight.tests.records import attempt, json_of, record, rewarded

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-9, 10**20)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=8,
)
FAILED = st.sampled_from(["", "TIMEOUT", "RATE_LIMITED"])


@st.composite
def runs(draw: st.DrawFn, session_id: str = "s1") -> Trajectory:
    calls = [
        attempt(
            f"{session_id}c{number}",
            step=draw(st.sampled_from(["ask", "act"])),
            failed=draw(FAILED),
            output=draw(JSON),
            arguments=json_of(draw(JSON)),
            component_version=draw(st.sampled_from(["1.0.0", "1.1.0"])),
        )
        for number in range(draw(st.integers(0, 3)))
    ]
    one = record(
        session_id,
        *calls,
        status=draw(st.sampled_from([SessionStatus.SUCCEEDED, SessionStatus.FAILED])),
        input=json_of(draw(JSON)),
        output=json_of(draw(JSON)),
        labels=draw(st.dictionaries(st.text(max_size=2), st.text(max_size=2), max_size=2)),
    )
    return rewarded(one, *draw(st.lists(st.none() | st.floats(0, 1), max_size=2)))


def sides(found: RunDiff) -> set[tuple[object, ...]]:
    return {(one.subject, one.call, one.at, one.left, one.right) for one in found.differences}


def swapped(found: RunDiff) -> set[tuple[object, ...]]:
    return {(one.subject, one.call, one.at, one.right, one.left) for one in found.differences}


@settings(max_examples=60, deadline=None)
@given(runs())
def test_nothing_differs_from_itself(one: Trajectory) -> None:
    assert difference(one, one) == RunDiff()


@settings(max_examples=60, deadline=None)
@given(runs("s1"), runs("s2"))
def test_what_differs_is_the_same_from_both_sides(one: Trajectory, other: Trajectory) -> None:
    there, back = difference(one, other), difference(other, one)
    assert sides(there) == swapped(back)
    assert (there.parting is None) == (back.parting is None)
    if there.parting is not None and back.parting is not None:
        assert (there.parting.left, there.parting.right) == (back.parting.right, back.parting.left)
        assert there.parting.subjects == back.parting.subjects


@settings(max_examples=60, deadline=None)
@given(runs("s1"))
def test_the_same_run_under_other_ids_and_at_another_time_does_not_differ(one: Trajectory) -> None:
    text = msgspec.json.encode(one).replace(b'"s1', b'"t9').replace(b"2025-11-30", b"2025-12-01")
    assert difference(one, msgspec.json.decode(text, type=Trajectory)) == RunDiff()


DECISION = DecisionRow(
    decision_id="d1",
    index=0,
    call_id="c1",
    after_attempt=1,
    trigger=Trigger.FAILED,
    at="",
    features={},
    feature_schema="",
    options=(),
    chosen=Option.RETRY,
    draw=0.5,
    policy=PolicyRef(name="backoff", version="1", digest="d"),
    guardrails_digest="g",
)
NO_JUDGE = Quality(validity=Validity.NOT_JUDGED, reason="nobody judged")
VECTOR = RewardVector(
    rules=RulesRef(name="bank", version="1", digest="d"),
    as_of="",
    session=PartReward(quality=Quality(value=0.5)),
    long_term=PartReward(quality=NO_JUDGE),
)
GOAL = SubGoal(id="fee", action="fees.get", arguments=payload(b'{"product":"gold"}'))
PLAN = PlanVersion(generation=1, step="plan", call_id="p", plan=Plan(sub_goals=(GOAL,)))
SAID = Feedback(kind=FeedbackKind.RATING, score=0.5, author="ann", feedback_id="f")
BASE = record(
    "s1",
    attempt("c1", output={"fee": 12}, arguments=json_of({"of": "gold"}), parameter_version=3),
    attempt("c2", step="act", output={"sent": True}),
    lineage=Lineage(
        intended={"planner": "planner@1.0.0"},
        workflow_sha256="w",
        policies={"recovery": "backoff@1#d"},
    ),
    input=json_of({"query": "fee", "rows": [1, {"a": "b"}]}),
    output=json_of({"text": "12 euros"}),
    plan=(PLAN,),
    decisions=(DECISION,),
    labels={"channel": "phone"},
    rollouts=(RolloutMark(rollout="r1", stage="CANARY", arm="BASELINE"),),
    feedback=(FeedbackRow(feedback=SAID, received_at=""),),
    rewards=Rewards(quality=(QualityReward(name="helpful", value=0.5),), vector=VECTOR),
)


def with_call(**fields: object) -> Trajectory:
    first = msgspec.structs.replace(BASE.calls[0], **fields)
    return msgspec.structs.replace(BASE, calls=(first, *BASE.calls[1:]))


def with_(**fields: object) -> Trajectory:
    return msgspec.structs.replace(BASE, **fields)


def of_lineage(**fields: object) -> Trajectory:
    return with_(lineage=msgspec.structs.replace(BASE.lineage, **fields))


PLANTED: dict[tuple[Subject, str, str], Callable[[], Trajectory]] = {
    (Subject.WORKFLOW, "", "version"): lambda: with_(workflow="four@2.0.0"),
    (Subject.WORKFLOW, "", "sha256"): lambda: of_lineage(workflow_sha256="x"),
    (Subject.INPUT, "", "/rows/1/a"): lambda: with_(
        input=json_of({"query": "fee", "rows": [1, {"a": "c"}]})
    ),
    (Subject.LABEL, "", "channel"): lambda: with_(labels={"channel": "mail"}),
    (Subject.ROLLOUT, "", "r1"): lambda: with_(
        rollouts=(RolloutMark(rollout="r1", stage="CANARY", arm="CANDIDATE"),)
    ),
    (Subject.INTENDED, "", "planner"): lambda: of_lineage(intended={"planner": "planner@1.1.0"}),
    (Subject.POLICY, "", "recovery"): lambda: of_lineage(policies={"recovery": "backoff@1#e"}),
    (Subject.POLICY, "ask", "after 1"): lambda: with_(
        decisions=(
            msgspec.structs.replace(
                DECISION, policy=PolicyRef(name="learned", version="7", digest="d")
            ),
        )
    ),
    (Subject.PLAN, "", "plan 1 fee /arguments/product"): lambda: with_(
        plan=(
            msgspec.structs.replace(
                PLAN,
                plan=Plan(
                    sub_goals=(
                        msgspec.structs.replace(GOAL, arguments=payload(b'{"product":"blue"}')),
                    )
                ),
            ),
        )
    ),
    (Subject.SERVED, "ask", "desk.ask"): lambda: with_call(component_version="1.0.1"),
    (Subject.PARAMETERS, "ask", "version"): lambda: with_call(parameter_version=4),
    (Subject.ARGUMENTS, "ask", "/of"): lambda: with_call(arguments=json_of({"of": "blue"})),
    (Subject.RESULT, "ask", "/fee"): lambda: with_call(output=json_of({"fee": 13})),
    (Subject.DECISION, "ask", "after 1"): lambda: with_(
        decisions=(msgspec.structs.replace(DECISION, chosen=Option.GIVE_UP),)
    ),
    (Subject.OUTCOME, "", "status"): lambda: with_(status=SessionStatus.FAILED),
    (Subject.OUTCOME, "", "error"): lambda: with_(error=error(Reason.TIMEOUT, "late")),
    (Subject.OUTCOME, "", "fell_back"): lambda: with_(fell_back=True),
    (Subject.OUTPUT, "", "/text"): lambda: with_(output=json_of({"text": "13 euros"})),
    (Subject.REWARD, "", "helpful"): lambda: with_(
        rewards=msgspec.structs.replace(
            BASE.rewards, quality=(QualityReward(name="helpful", value=0.75),)
        )
    ),
    (Subject.REWARD, "", "session"): lambda: with_(
        rewards=msgspec.structs.replace(
            BASE.rewards,
            vector=msgspec.structs.replace(VECTOR, session=PartReward(quality=NO_JUDGE)),
        )
    ),
    (Subject.FEEDBACK, "", "session RATING ann"): lambda: with_(
        feedback=(
            FeedbackRow(feedback=msgspec.structs.replace(SAID, comment="rude"), received_at=""),
        )
    ),
}


@pytest.mark.parametrize("place", PLANTED, ids=lambda one: f"{one[0].value}-{one[2]}")
def test_each_planted_difference_is_named_and_no_other(place: tuple[Subject, str, str]) -> None:
    (found,) = difference(BASE, PLANTED[place]()).differences
    assert (found.subject, found.call, found.at) == place
    assert found.left != found.right


def test_every_subject_but_attempts_has_a_planted_difference() -> None:
    assert {place[0] for place in PLANTED} == set(Subject) - {Subject.ATTEMPTS}


def test_a_retry_is_told_as_another_number_of_attempts() -> None:
    lost = attempt("c1", attempt=1, failed="TIMEOUT")
    again = msgspec.structs.replace(BASE.calls[0], attempt=2)
    found = difference(BASE, with_(calls=(lost, again, *BASE.calls[1:])))
    assert found == RunDiff(
        differences=(
            Difference(subject=Subject.ATTEMPTS, call="ask", at="number", left="1", right="2"),
        )
    )


def test_runs_part_at_the_first_call_that_is_not_the_same() -> None:
    other = with_call(output=json_of({"fee": 13}), component_version="1.0.1")
    assert difference(BASE, other).parting == Parting(
        left="ask", right="ask", subjects=(Subject.SERVED, Subject.RESULT)
    )
    shorter = with_(calls=BASE.calls[:1], decisions=())
    assert difference(BASE, shorter).parting == Parting(left="act", right="")


def test_numbers_are_compared_exactly_and_by_what_they_mean() -> None:
    one = with_(input=payload(b'{"n":1.0,"big":9007199254740993,"tiny":1e-400}'))
    same = with_(input=payload(b'{"big":9007199254740993,"n":1,"tiny":10e-401}'))
    assert difference(one, same) == RunDiff()
    (found,) = difference(
        one, with_(input=payload(b'{"n":1,"big":9007199254740992,"tiny":1e-400}'))
    ).differences
    assert (found.at, found.left, found.right) == ("/big", "9007199254740993", "9007199254740992")


def test_beyond_so_many_fields_or_letters_a_difference_is_still_told() -> None:
    many = {f"f{number:06d}": number for number in range(FIELDS_MAX + 50)}
    last = dict(many, **{f"f{FIELDS_MAX + 9:06d}": "other"})
    (found,) = difference(with_(input=json_of(many)), with_(input=json_of(last))).differences
    assert (found.subject, found.at) == (Subject.INPUT, OTHERS)
    long = "x" * (TEXT_CHARACTERS_MAX + 10)
    one, other = (with_(input=payload(json.dumps(text).encode())) for text in (long, f"{long}y"))
    (told,) = difference(one, other).differences
    assert told.left is not None
    assert len(told.left) < TEXT_CHARACTERS_MAX + 100
