"""Failure, verdicts and loops: how a session moves, and how it ends (SPEC section 8, "Ends")."""

import pytest

from acp_spec.model.enums import SessionStatus, SideEffect, StepStatus, Verdict
from acp_spec.model.errors import Reason
from gateway.engine.events import StepEnded
from gateway.engine.flow import ON_VERDICT
from gateway.engine.tests.casting import Cast, Said, Sent
from gateway.engine.tests.playing import Play
from gateway.engine.tests.stage import (
    ACCEPTED,
    CATALOG,
    FOUR_CALLS,
    JUDGED_ACTION,
    Line,
    by_loop,
    failed,
    gave,
    goal,
    judged,
    planned,
    troupe,
    workflow_of,
)

FINAL = failed(Reason.INVALID_REQUEST)


def play(text: str, **lines: Line) -> Play:
    return Play(workflow_of(text), CATALOG, Cast(component=troupe(**lines))).open().run()


def judged_action(action: str, judge: Line, **lines: Line) -> Play:
    return play(JUDGED_ACTION % action, judge=judge, **lines)


def steps(*lines: str, more: str = "") -> str:
    listed = "\n".join(f"  - {{{line}}}" for line in lines)
    return f"workflow: w\nversion: 1.0.0\nsteps:\n{listed}\noutput: input\n{more}"


def statuses(done: Play) -> dict[str, str]:
    return {name: entry.status.value for name, entry in done.state.steps.items()}


def actions(done: Play) -> list[str]:
    return [sent.created.action or sent.created.step for sent in done.sent]


def again(*positions: int) -> Line:
    """RETRY naming the calls at these places of the request, then ACCEPT."""

    def judge(sent: Sent) -> Said:
        import msgspec

        calls = msgspec.json.decode(sent.body)["calls"]
        return judged("RETRY", retry_call_ids=[calls[at]["call_id"] for at in positions])

    return by_loop(judge, ACCEPTED)


def test_every_verdict_has_its_way() -> None:
    assert set(ON_VERDICT) == set(Verdict)


# ---- ends ------------------------------------------------------------------------------


def test_accept_succeeds_with_the_output_of_the_workflow() -> None:
    done = judged_action("read", ACCEPTED)
    assert done.state.status is SessionStatus.SUCCEEDED
    assert bytes(done.state.output) == b'{"answer":"fine"}'


def test_abort_fails_with_the_critique_in_the_message() -> None:
    done = judged_action("read", judged("ABORT", critique="this is against the law"))
    assert done.state.status is SessionStatus.FAILED
    assert done.state.error is not None
    assert "this is against the law" in done.state.error.message


def test_fallback_gives_the_output_that_the_workflow_keeps_for_it() -> None:
    more = "fallback: {output: input.query}\n"
    done = play(
        steps("name: judge, role: reflect", more=more), judge=judged("FALLBACK", critique="no")
    )
    assert done.state.status is SessionStatus.SUCCEEDED
    assert done.state.fell_back
    assert bytes(done.state.output) == b'"hello"'


def test_fallback_without_one_fails_the_session() -> None:
    done = judged_action("read", judged("FALLBACK"))
    assert done.state.status is SessionStatus.FAILED
    assert not done.state.fell_back
    assert done.state.error is not None
    assert done.state.error.reason == "CONTRACT_VIOLATION"


def test_a_failed_step_fails_the_session_and_what_comes_later_never_runs() -> None:
    done = play(
        steps("name: a, role: execute, action: read", "name: b, role: execute, action: put"),
        read=FINAL,
    )
    assert done.state.status is SessionStatus.FAILED
    assert statuses(done) == {"a": "FAILED", "b": "SKIPPED"}
    assert done.state.error is not None
    assert done.state.error.reason == "INVALID_REQUEST", "the step's own error"


def test_on_error_continue_goes_on_to_the_next_step() -> None:
    done = play(
        steps(
            "name: a, role: execute, action: read, on_error: continue",
            "name: b, role: execute, action: put",
        ),
        read=FINAL,
    )
    assert done.state.status is SessionStatus.SUCCEEDED
    assert statuses(done) == {"a": "FAILED", "b": "SUCCEEDED"}


# ---- a later reflector decides ---------------------------------------------------------


def test_after_a_failure_observers_see_it_others_are_skipped_and_the_reflector_decides() -> None:
    done = play(
        steps(
            "name: a, role: execute, action: read",
            "name: b, role: execute, action: put",
            "name: remember, role: observe",
            "name: c, role: execute, action: book",
            "name: judge, role: reflect",
        ),
        read=FINAL,
    )
    assert actions(done) == ["read", "remember", "judge"]
    assert done.state.status is SessionStatus.SUCCEEDED, "the reflector said ACCEPT"
    assert statuses(done)["c"] == "SKIPPED"


def test_a_step_skipped_for_a_failure_stays_skipped_behind_an_observer() -> None:
    """The session stood at the skipped step once the observer had ended, and ran it."""
    done = play(
        steps(
            "name: a, role: execute, action: read",
            "name: remember, role: observe",
            "name: pay, role: execute, action: pay",
            "name: judge, role: reflect",
        ),
        read=FINAL,
    )
    assert "pay" not in actions(done)
    assert statuses(done)["pay"] == "SKIPPED"


def test_a_reflector_whose_condition_is_false_decides_nothing() -> None:
    """The failed step was forgiven though nobody had judged it."""
    text = steps(
        "name: a, role: execute, action: read",
        'name: judge, role: reflect, condition: "session.loop > 0"',
    )
    done = play(text, read=FINAL)
    assert done.state.status is SessionStatus.FAILED
    assert done.state.error is not None
    assert done.state.error.reason == "INVALID_REQUEST"


def test_a_second_reflector_decides_when_the_first_could_not() -> None:
    text = steps(
        "name: a, role: execute, action: read",
        "name: first, role: reflect, on_error: continue",
        "name: b, role: execute, action: put",
        "name: second, role: reflect",
    )
    done = play(text, read=FINAL, first=FINAL)
    assert actions(done) == ["read", "first", "second"]
    assert done.state.status is SessionStatus.SUCCEEDED
    assert statuses(done) == {
        "a": "FAILED",
        "first": "FAILED",
        "b": "SKIPPED",
        "second": "SUCCEEDED",
    }


def test_an_accepted_failure_is_decided_for_good() -> None:
    text = steps(
        "name: a, role: execute, action: read",
        "name: first, role: reflect",
        "name: second, role: reflect, on_error: continue",
    )
    done = play(text, read=FINAL, second=FINAL)
    assert done.state.status is SessionStatus.SUCCEEDED


# ---- REPLAN and loops ------------------------------------------------------------------


def test_replan_goes_back_with_critique_previous_plan_and_what_was_done() -> None:
    import msgspec

    plans = by_loop(planned(goal("a", "read")), planned(goal("b", "put")))
    judge = by_loop(judged("REPLAN", critique="think of b"), ACCEPTED)
    done = play(FOUR_CALLS, plan=plans, judge=judge)
    second = next(s for s in done.sent if s.created.step == "plan" and s.created.loop == 1)
    asked = msgspec.json.decode(second.body)
    assert asked["critique"] == "think of b"
    assert asked["previous_plan"]["sub_goals"][0]["id"] == "a"
    assert [call["action"] for call in asked["calls"]] == ["read"]
    assert done.state.status is SessionStatus.SUCCEEDED
    assert [taken.generation for taken in done.state.plans] == [0, 1]


def test_replanning_for_ever_ends_at_the_loop_limit() -> None:
    done = play(FOUR_CALLS, judge=judged("REPLAN"))
    assert done.state.status is SessionStatus.FAILED
    assert done.state.error is not None
    assert done.state.error.reason == "LOOP_LIMIT"
    assert actions(done).count("plan") == 4, "the first pass, and three times back"


def test_replan_without_a_target_is_the_loop_limit() -> None:
    done = play(steps("name: judge, role: reflect"), judge=judged("REPLAN"))
    assert done.state.error is not None
    assert done.state.error.reason == "LOOP_LIMIT"


def test_a_plan_step_that_fails_in_a_later_loop_leaves_no_old_plan_to_run() -> None:
    """The plan of the first loop was executed once more, as if it were the new one."""
    text = steps(
        "name: plan, role: plan, on_error: continue",
        "name: act, role: execute, plan: plan, on_error: continue",
        "name: judge, role: reflect, on: {REPLAN: plan}",
    )
    done = play(
        text,
        plan=by_loop(planned(goal("a", "read")), FINAL),
        judge=by_loop(judged("REPLAN"), ACCEPTED),
    )
    assert actions(done).count("read") == 1
    assert statuses(done)["act"] == "FAILED"


# ---- RETRY (SPEC 9.1) ------------------------------------------------------------------


def test_retry_redoes_the_named_call_under_a_new_id() -> None:
    done = judged_action("read", again(0))
    first, second = (s.created for s in done.sent if s.created.action == "read")
    assert first.call_id != second.call_id
    assert (second.retry_of, second.redo, second.loop) == (first.call_id, 1, 1)
    assert second.body == first.body
    assert done.state.status is SessionStatus.SUCCEEDED


def test_a_call_named_twice_is_redone_once() -> None:
    done = judged_action("read", again(0, 0))
    assert actions(done).count("read") == 2
    assert done.sent[-2].created.redo == 1


@pytest.mark.parametrize("action", ["pay", "book"])
def test_retry_of_what_may_have_been_done_is_refused_and_recorded(action: str) -> None:
    done = judged_action(action, again(0))
    assert actions(done).count(action) == 1
    assert done.state.error is not None
    assert done.state.error.reason == "RETRY_UNSAFE"
    (call,) = (c for c in done.state.calls.values() if c.created.action == action)
    assert done.state.reflections[0].refused_retries == (call.created.call_id,)


def test_retry_of_a_failure_that_did_nothing_is_safe_even_for_pay() -> None:
    refusal = failed(Reason.INVALID_REQUEST, SideEffect.NONE)
    done = judged_action("pay", again(0), pay=by_loop(refusal, gave(1)))
    assert actions(done).count("pay") == 2
    assert done.state.status is SessionStatus.SUCCEEDED


def test_of_several_named_calls_the_safe_ones_are_redone_and_the_others_recorded() -> None:
    plan = planned(goal("a", "pay"), goal("b", "read"))
    done = play(FOUR_CALLS, plan=plan, judge=again(0, 1))
    assert actions(done).count("read") == 2
    assert actions(done).count("pay") == 1
    assert len(done.state.reflections[0].refused_retries) == 1
    assert done.state.status is SessionStatus.SUCCEEDED


def test_what_was_skipped_because_of_a_redone_call_runs_now() -> None:
    plan = planned(
        goal("a", "read"),
        goal("b", "put", depends_on=["a"]),
        goal("c", "peek", depends_on=["a"], bindings=[{"to": "/x", "from": "a", "pointer": "/x"}]),
    )
    text = steps(
        "name: plan, role: plan",
        "name: act, role: execute, plan: plan",
        "name: judge, role: reflect",
    )
    done = play(text, plan=plan, read=by_loop(FINAL, gave({"x": 1})), judge=again(0))
    assert actions(done) == ["plan", "read", "judge", "read", "put", "peek", "judge"]
    assert statuses(done)["act"] == "SUCCEEDED"


def test_retry_that_names_nothing_goes_back_to_its_target() -> None:
    done = judged_action("read", by_loop(judged("RETRY"), ACCEPTED))
    assert actions(done) == ["read", "judge", "read", "judge"]


def test_retry_that_names_nothing_and_has_no_target_is_the_loop_limit() -> None:
    text = steps("name: a, role: execute, action: read", "name: judge, role: reflect")
    done = play(text, judge=judged("RETRY"))
    assert done.state.error is not None
    assert done.state.error.reason == "LOOP_LIMIT"


def test_retry_for_ever_ends_at_the_loop_limit() -> None:
    def judge(sent: Sent) -> Said:
        import msgspec

        last = msgspec.json.decode(sent.body)["calls"][-1]
        return judged("RETRY", retry_call_ids=[last["call_id"]])

    done = judged_action("read", judge)
    assert actions(done).count("read") == 4, "the first pass, and three times back"
    assert done.state.error is not None
    assert done.state.error.reason == "LOOP_LIMIT"


def test_a_retry_whose_target_is_the_plan_makes_a_new_plan_and_a_new_pass_over_it() -> None:
    """The old pass was kept over the new plan: goals of two plans lay mixed in one step."""
    text = steps(
        "name: plan, role: plan",
        "name: act, role: execute, plan: plan",
        "name: judge, role: reflect, on: {RETRY: plan}",
    )
    plans = by_loop(planned(goal("a", "read")), planned(goal("z", "put"), goal("a", "read")))
    done = play(text, plan=plans, judge=again(0))
    assert actions(done) == ["plan", "read", "judge", "plan", "put", "read", "judge"]
    redone = next(
        s.created for s in done.sent if s.created.loop == 1 and s.created.action == "read"
    )
    assert redone.retry_of == done.sent[1].created.call_id
    assert set(done.state.steps["act"].sub_goals) == {"a", "z"}


def test_each_pass_of_a_step_ends_once_in_the_journal() -> None:
    done = play(FOUR_CALLS, judge=by_loop(judged("REPLAN"), ACCEPTED))
    ended = [event.step for event in done.journal if isinstance(event, StepEnded)]
    assert ended == ["plan", "act", "remember", "judge"] * 2
    assert all(entry.status is StepStatus.SUCCEEDED for entry in done.state.steps.values())
