"""Creating calls: identity, target, semantics, exact bytes; what is not done again (9.1, 9.2)."""

import msgspec
import pytest

from acp_spec.model.enums import (
    Effect,
    Idempotency,
    Kind,
    SessionStatus,
    SideEffect,
    StepRole,
    StepStatus,
    StepType,
)
from acp_spec.model.errors import Reason
from acp_spec.model.ids import body_digest, call_id
from gateway.engine import calls
from gateway.engine.tests.casting import Cast, Sent, Terms
from gateway.engine.tests.playing import Play
from gateway.engine.tests.stage import (
    ACCEPTED,
    CATALOG,
    FOUR_CALLS,
    NATURAL,
    NONE,
    OBSERVER,
    ONE_ACTION,
    PLANNER,
    READ,
    REFLECTOR,
    TOOLS,
    WRITE,
    Line,
    action,
    by_loop,
    card,
    catalog_of,
    failed,
    gave,
    goal,
    judged,
    planned,
    troupe,
    workflow_of,
)

REPLAN_ONCE = by_loop(judged("REPLAN"), ACCEPTED)


def looped(*plans: Line, **lines: Line) -> Play:
    """Two passes over plans, then ACCEPT."""
    component = troupe(plan=by_loop(*plans), judge=REPLAN_ONCE, **lines)
    return Play(workflow_of(FOUR_CALLS), CATALOG, Cast(component=component)).open().run()


def sent_of(play: Play, name: str) -> list[Sent]:
    return [sent for sent in play.sent if sent.created.action == name]


def test_every_role_but_execute_has_its_semantics_from_the_protocol() -> None:
    assert set(calls.OF_ROLE) == set(StepRole) - {StepRole.EXECUTE}
    assert calls.OF_ROLE[StepRole.PLAN].idempotency is Idempotency.NATURAL
    assert calls.OF_ROLE[StepRole.REFLECT].effect is Effect.READ
    assert calls.OF_ROLE[StepRole.OBSERVE].idempotency is Idempotency.BY_KEY
    assert calls.OF_ROLE[StepRole.OBSERVE].effect is Effect.WRITE


def test_a_call_is_named_by_session_step_sub_goal_generation_and_redo() -> None:
    play = looped(planned(goal("a", "read")))
    first, second = sent_of(play, "read")
    session = play.state.session_id
    for generation, sent in ((0, first), (1, second)):
        expected = call_id(session, "act", sub_goal="a", generation=generation, redo=0)
        assert sent.created.call_id == expected


def test_all_attempts_of_a_call_send_the_same_bytes_and_digest() -> None:
    play = Play(
        workflow_of(ONE_ACTION % "read"), CATALOG, Cast(component=troupe(read=failed()))
    ).open()
    play.run()
    assert [sent.attempt for sent in play.sent] == [1, 2, 3]
    assert len({(sent.body, sent.created.body_digest) for sent in play.sent}) == 1
    assert play.sent[0].body == b'{"action":"read","arguments":{"n":1}}'
    assert play.sent[0].created.body_digest == body_digest("read", b'{"n":1}')


# ---- what was done is not done again (SPEC 9.1) ----------------------------------------


@pytest.mark.parametrize("name", ["pay", "book", "put"])
def test_in_a_later_loop_an_equal_write_takes_over_its_result_and_sends_nothing(name: str) -> None:
    play = looped(planned(goal("a", name, arguments={"n": 1})), **{name: gave({"id": 7})})
    assert len(sent_of(play, name)) == 1
    taken = [c for c in play.state.calls.values() if c.created.reused_from]
    assert [bytes(c.output) for c in taken] == [b'{"id":7}']
    assert taken[0].created.reused_from == sent_of(play, name)[0].created.call_id


def test_an_equal_read_is_read_again() -> None:
    play = looped(planned(goal("a", "read")))
    assert len(sent_of(play, "read")) == 2


def test_a_sub_goal_that_says_repeat_is_done_again() -> None:
    play = looped(planned(goal("a", "put", repeat=True)))
    assert len(sent_of(play, "put")) == 2


def test_other_argument_bytes_are_another_call_even_if_the_value_is_equal() -> None:
    plans = (
        planned(goal("a", "put", arguments={"n": 1})),
        planned(goal("a", "put", arguments={"n": 1.0})),
    )
    assert len(sent_of(looped(*plans), "put")) == 2


def test_the_sub_goal_id_does_not_matter_for_what_was_done() -> None:
    plans = (planned(goal("a", "pay")), planned(goal("other", "pay")))
    assert len(sent_of(looped(*plans), "pay")) == 1


def test_a_failure_that_may_have_done_something_is_taken_over_as_that_failure() -> None:
    plan = planned(goal("a", "pay"), goal("ok", "read"))
    play = looped(plan, pay=failed(Reason.INTERNAL, SideEffect.UNKNOWN))
    assert len(sent_of(play, "pay")) == 1
    (taken,) = (c for c in play.state.calls.values() if c.created.reused_from)
    assert taken.status is StepStatus.FAILED
    assert taken.side_effect is SideEffect.UNKNOWN


def test_a_failure_that_did_nothing_is_tried_again() -> None:
    plan = planned(goal("a", "pay"), goal("ok", "read"))
    play = looped(plan, pay=failed(Reason.INVALID_REQUEST, SideEffect.NONE))
    assert len(sent_of(play, "pay")) == 2


def test_two_equal_sub_goals_of_one_pass_are_two_calls_in_every_loop() -> None:
    """In a later loop the second one took over the first one's result, and was never sent."""
    plans = (
        planned(goal("x", "read")),
        planned(goal("a", "put"), goal("b", "put", depends_on=["a"])),
    )
    assert len(sent_of(looped(*plans), "put")) == 2


def test_what_was_taken_over_names_the_call_that_really_ran() -> None:
    judge = by_loop(judged("REPLAN"), judged("REPLAN"), ACCEPTED)
    component = troupe(plan=planned(goal("a", "pay")), judge=judge)
    play = Play(workflow_of(FOUR_CALLS), CATALOG, Cast(component=component)).open().run()
    (sent,) = sent_of(play, "pay")
    reused = {c.created.reused_from for c in play.state.calls.values()} - {""}
    assert reused == {sent.created.call_id}


# ---- target and semantics --------------------------------------------------------------


def test_an_action_whose_card_says_nothing_is_written_once_only() -> None:
    silent = msgspec.json.decode(
        b'{"name":"c","version":"1.0.0","roles":["EXECUTOR"],"actions":[{"name":"act"}]}',
        type=type(TOOLS),
    )
    catalog = catalog_of(silent)
    play = Play(workflow_of(ONE_ACTION % "act"), catalog, Cast(component=troupe())).open()
    (call,) = play.state.calls.values()
    assert call.created.effect is Effect.WRITE
    assert call.created.idempotency is Idempotency.NONE


def test_a_static_step_that_nobody_serves_is_created_as_if_it_could_not_be_repeated() -> None:
    play = Play(workflow_of(ONE_ACTION % "ghost"), CATALOG, Cast(component=troupe())).open()
    (call,) = play.state.calls.values()
    assert (call.created.component, call.created.version) == ("", "")
    assert call.created.idempotency is Idempotency.NONE


def test_a_sub_goal_that_nobody_serves_fails_with_no_component_and_siblings_go_on() -> None:
    plan = planned(goal("a", "ghost"), goal("b", "read"))
    play = Play(workflow_of(FOUR_CALLS), CATALOG, Cast(component=troupe(plan=plan))).open().run()
    found = play.state.steps["act"].sub_goals
    assert found["a"].error is not None
    assert found["a"].error.reason == "NO_COMPONENT"
    assert found["b"].status is StepStatus.SUCCEEDED
    assert play.state.status is SessionStatus.SUCCEEDED


OTHER = card("other", action("read"))
TWO = catalog_of(PLANNER, OBSERVER, REFLECTOR, TOOLS, OTHER)


def test_an_action_offered_twice_is_nobodys_until_a_label_or_the_step_chooses() -> None:
    component = troupe(plan=planned(goal("a", "read")))
    play = Play(workflow_of(FOUR_CALLS), TWO, Cast(component=component)).open().run()
    failure = play.state.steps["act"].sub_goals["a"].error
    assert failure is not None
    assert "other, tools" in failure.message

    labelled = Terms(labels={"action:read": "other"})
    play = Play(workflow_of(FOUR_CALLS), TWO, Cast(component=component), terms=labelled)
    play.open().run()
    assert sent_of(play, "read")[0].created.component == "other"

    chosen = FOUR_CALLS.replace("plan: plan}", "plan: plan, component: other}")
    play = Play(workflow_of(chosen), TWO, Cast(component=component)).open().run()
    assert sent_of(play, "read")[0].created.component == "other"


def test_the_pinned_version_is_used_also_when_a_newer_one_came() -> None:
    play = Play(workflow_of(FOUR_CALLS), CATALOG, Cast(component=troupe())).open()
    newer = card("tools", action("read"), version="2.0.0")
    play.catalog = catalog_of(PLANNER, OBSERVER, REFLECTOR, TOOLS, newer)
    play.run()
    assert sent_of(play, "read")[0].created.version == "1.0.0"


@pytest.mark.parametrize(
    ("role", "kind", "expected"),
    [
        (StepRole.PLAN, Kind.LLM, StepType.PLAN),
        (StepRole.EXECUTE, Kind.LLM, StepType.LLM),
        (StepRole.EXECUTE, Kind.TOOL, StepType.TOOL),
        (StepRole.REFLECT, Kind.LLM, StepType.LLM),
        (StepRole.OBSERVE, Kind.TOOL, StepType.TOOL),
    ],
)
def test_a_call_waits_in_the_queue_of_its_kind(
    role: StepRole, kind: Kind, expected: StepType
) -> None:
    assert calls.step_type(role, kind) is expected


def test_a_steps_own_timeout_goes_before_the_cards_and_that_before_the_default() -> None:
    slow = card("slow", action("act", READ, NATURAL, timeout_ms=9_000), action("b", WRITE, NONE))
    text = ONE_ACTION % "act"
    for source, expected in (
        (text, 9_000),
        (text.replace("action: act", "action: act, timeout_ms: 70"), 70),
        (ONE_ACTION % "b", 5_000),
    ):
        play = Play(workflow_of(source), catalog_of(slow), Cast(component=troupe())).open()
        assert play.sent[0].created.timeout_ms == expected
