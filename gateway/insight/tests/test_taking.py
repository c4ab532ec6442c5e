"""Samples hold what a session has in common with others, and nothing of its own."""

import json

import msgspec
import pytest

from acp_spec.model.errors import AcpFailure
from acp_spec.model.payload import payload
from acp_spec.model.plan import Plan, SubGoal
from acp_spec.model.reward_vector import PartReward, Quality, RewardVector, RulesRef, Validity
from acp_spec.model.trajectory import PlanVersion, Rewards, Trajectory
from gateway.engine.tests.casting import Cast, Terms
from gateway.engine.tests.playing import Play
from gateway.engine.tests.stage import (
    CATALOG,
    FOUR_CALLS,
    goal,
    judged,
    planned,
    troupe,
    workflow_of,
)
from gateway.engine.trajectories import trajectory
from gateway.insight.samples import SessionSample
from gateway.insight.taking import (
    Compared,
    call_samples,
    check_reward,
    reward_of,
    session_sample,
    settled_calls,
)
from gateway.insight.tests.records import attempt, json_of, record, rewarded

VECTOR = RewardVector(
    rules=RulesRef(name="r", version="1", digest="d"),
    as_of="2025-11-30T00:00:00Z",
    session=PartReward(quality=Quality(value=0.25)),
    long_term=PartReward(quality=Quality(validity=Validity.NOT_JUDGED, reason="nobody")),
)


def taken(one: Trajectory, **compared: object) -> SessionSample:
    return session_sample(one, reward="succeeded", compared=Compared(**compared))  # type: ignore[arg-type]


def played(seed: int, *, order: str = "ab") -> Trajectory:
    lines = troupe(
        plan=planned(*(goal(name, "read") for name in order)),
        judge=judged("ACCEPT", output={"x": 1}, claims=[]),
    )
    play = Play(workflow_of(FOUR_CALLS), CATALOG, Cast(component=lines), terms=Terms(seed=seed))
    return trajectory(play.open().run(until_ms=20_000).state)


def test_two_sessions_that_went_alike_are_equal_samples() -> None:
    """Although their ids, which the reflector is told, differ."""
    one, other = played(1), played(2)
    assert one.session_id != other.session_id
    assert bytes(one.calls[-1].arguments) != bytes(other.calls[-1].arguments)
    assert taken(one) == taken(other)
    assert [step.slot for step in taken(one).steps] == [
        "plan",
        "act/a",
        "act/b",
        "remember",
        "judge",
    ]
    assert [step.link for step in taken(one).steps][:2] == ["four.plan", "read"]


def test_who_answered_at_what_cost_is_no_part_of_an_answer() -> None:
    def judged_by(version: str, verdict: str) -> Trajectory:
        said = {"verdict": verdict, "component": {"version": version}, "usage": {"tokens": 7}}
        return record("s1", attempt(role="REFLECT", action="", output=said))

    assert taken(judged_by("1", "ACCEPT")).steps == taken(judged_by("2", "ACCEPT")).steps
    assert taken(judged_by("1", "ACCEPT")).steps != taken(judged_by("1", "ABORT")).steps


def test_numbers_that_mean_the_same_are_the_same_and_others_are_not() -> None:
    def given(text: bytes) -> str:
        return taken(record(input=payload(text))).given

    assert given(b'{"a": 1.0, "b": 2}') == given(b'{"b":2,"a":1}')
    assert given(b'{"a": 1}') != given(b'{"a": "1"}')
    assert given(b'{"a": ' + b"9" * 5_000 + b"}")


def test_what_is_ignored_does_not_count_wherever_it_stands() -> None:
    def dated(day: str, item: int) -> Trajectory:
        rows = [{"day": day, "item": item}]
        return record("s1", attempt(arguments=json_of({"rows": rows}), output={"rows": rows}))

    ignore = ("/rows/*/day",)
    assert taken(dated("mon", 1)) != taken(dated("tue", 1))
    assert taken(dated("mon", 1), ignore=ignore) == taken(dated("tue", 1), ignore=ignore)
    assert taken(dated("mon", 1), ignore=ignore) != taken(dated("mon", 2), ignore=ignore)


def test_only_what_is_named_counts_of_an_input_and_all_of_an_output() -> None:
    def asked(kind: str, text: str, answer: int) -> Trajectory:
        arguments = json_of({"kind": kind, "text": text, "rows": [{"n": 1, "m": text}]})
        return record("s1", attempt(arguments=arguments, output=answer))

    only = {"ask": ("/kind", "/rows/*/n")}
    assert taken(asked("a", "x", 1), only=only) == taken(asked("a", "y", 1), only=only)
    assert taken(asked("a", "x", 1), only=only) != taken(asked("b", "x", 1), only=only)
    assert taken(asked("a", "x", 1), only=only) != taken(asked("a", "x", 2), only=only)
    assert taken(record(), only={"input": ()}).given.startswith("four ")


def test_the_attempt_that_stood_is_the_outcome_and_a_failure_its_reason() -> None:
    first = attempt(failed="UNAVAILABLE")
    second = attempt(output={"n": 1}, attempt=2)
    hedge = attempt(failed="CANCELLED", attempt=3)
    good = taken(record("s1", attempt(output={"n": 1}))).steps
    assert taken(record("s1", first, second, hedge)).steps == good
    (failed,) = taken(record("s1", first)).steps
    assert failed.came == "error:UNAVAILABLE"


def test_drift_looks_at_the_first_attempt_of_the_first_call_of_a_kind() -> None:
    rows = (
        attempt("c1", failed="UNAVAILABLE"),
        attempt("c1", output=1, attempt=2),
        attempt("c2", output=2),
        attempt("c3", output=3, component_version="2.0.0"),
        attempt("c4", action="desk.other", sent_at="", failed="BREAKER_OPEN"),
    )
    found = [
        (one.version, one.link, one.outcome, one.came) for one in call_samples(record("s", *rows))
    ]
    assert found == [
        ("1.0.0", "desk.ask", "UNAVAILABLE", None),
        ("2.0.0", "desk.ask", "OK", 3),
    ]


def test_a_result_that_was_taken_over_is_no_call() -> None:
    again = attempt("c2", output=1, reused=True, reused_from="c1", loop=1)
    assert list(settled_calls(record("s", attempt(output=1), again))) == ["ask"]


def test_sub_goals_stand_in_the_plans_order_whoever_was_faster() -> None:
    goals = (
        SubGoal(id="late", action="x", depends_on=("early",)),
        SubGoal(id="early", action="x"),
        SubGoal(id="other", action="x"),
    )
    plan = PlanVersion(generation=0, step="plan", call_id="p", plan=Plan(sub_goals=goals))

    def run(*names: str) -> list[str]:
        rows = [attempt(name, step="act", sub_goal=name) for name in names]
        return list(settled_calls(record("s", *rows, plan=(plan,))))

    assert run("early", "other", "late") == ["act/early", "act/late", "act/other"]
    assert run("other", "early", "late") == run("early", "late", "other")


def test_calls_of_one_place_in_later_loops_and_again_have_slots_of_their_own() -> None:
    rows = (attempt("c1"), attempt("c2", loop=1), attempt("c3", loop=1, retry_of="c2"))
    assert list(settled_calls(record("s", *rows))) == ["ask", "ask#1", "ask#1~2"]


def test_a_reward_is_none_where_nobody_judged() -> None:
    judged_twice = rewarded(record(), 0.5, None, 1.0)
    assert reward_of(judged_twice, "quality") == 0.75
    assert reward_of(judged_twice, "quality:helpful") == 0.75
    assert reward_of(judged_twice, "quality:other") is None
    assert reward_of(rewarded(record(), None), "quality") is None
    assert reward_of(judged_twice, "succeeded") == 1.0
    assert reward_of(judged_twice, "session") is None
    ruled = msgspec.structs.replace(judged_twice, rewards=Rewards(vector=VECTOR))
    assert (reward_of(ruled, "session"), reward_of(ruled, "long_term")) == (0.25, None)
    with pytest.raises(AcpFailure, match="none of succeeded"):
        check_reward("speed")


def test_a_mean_of_rewards_that_no_sum_holds_is_there_all_the_same() -> None:
    assert reward_of(rewarded(record(), 1.5e308, 1.5e308), "quality") == 1.5e308


def test_ids_are_replaced_within_texts_that_stay_json() -> None:
    """A sub-goal may be called anything."""
    row = attempt("c1", sub_goal='od"d', arguments=json_of({"of": "c1", "in": "s1.000000000000"}))
    (call,) = call_samples(record("s1", row))
    assert call.given == {"of": "(call 0)", "in": "(lineage)"}
    assert json.dumps(call.given)
