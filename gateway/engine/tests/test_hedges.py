"""A second attempt beside the first: the first good answer stands, each has one end and one row."""

import msgspec
import pytest

from acp_spec.model.enums import SideEffect, StepStatus
from acp_spec.model.errors import Reason
from gateway.engine import hedges
from gateway.engine.events import AttemptEnded, AttemptStarted, Opened
from gateway.engine.states import CallState
from gateway.engine.tests import laws
from gateway.engine.tests.casting import Cast, Said, Sent, Terms
from gateway.engine.tests.playing import Play
from gateway.engine.tests.stage import CATALOG, ONE_ACTION, accepted, failed, gave, workflow_of
from gateway.engine.trajectories import trajectory

AFTER_MS = 50


def slow(said: Said, after_ms: int) -> Said:
    return Said(response=said.response, error=said.error, after_ms=after_ms)


def played(*lines: Said, action: str = "read", terms: Terms | None = None) -> Play:
    """One call; attempt n is answered by line n."""

    def component(sent: Sent) -> Said:
        return lines[sent.attempt - 1]

    wanted = terms or Terms(hedge_after_ms=AFTER_MS)
    play = Play(workflow_of(ONE_ACTION % action), CATALOG, Cast(component=component), terms=wanted)
    laws.watch(play).open().run()
    laws.check_end(play)
    laws.check_replay(play)
    return play


def call_of(play: Play) -> CallState:
    return next(iter(play.state.calls.values()))


def ends(play: Play) -> list[AttemptEnded]:
    return [event for event in play.journal if isinstance(event, AttemptEnded)]


def test_the_hedge_that_answers_first_wins_and_the_first_attempt_is_cancelled() -> None:
    play = played(slow(gave("slow"), 1_000), slow(gave("quick"), 20))
    call = call_of(play)
    assert bytes(call.output) == b'"quick"'
    assert [end.superseded_by for end in ends(play)] == [2, 0]
    assert (call.created.call_id, 1) in play.cancelled
    rows = trajectory(play.state).calls
    assert [(row.attempt, row.hedge) for row in rows] == [(1, False), (2, True)]
    assert rows[0].error is not None
    assert rows[0].error.reason == Reason.CANCELLED.value
    assert bytes(rows[1].output) == b'"quick"'


def test_the_first_attempt_may_still_win_and_the_call_stands_on_it() -> None:
    play = played(slow(gave("first"), 80), slow(gave("hedge"), 500))
    call = call_of(play)
    assert bytes(call.output) == b'"first"'
    assert call.attempt is not None
    assert call.attempt.number == 1
    assert [(end.attempt, end.superseded_by) for end in ends(play)] == [(2, 1), (1, 0)]
    assert (call.created.call_id, 2) in play.cancelled


def test_an_answer_in_time_needs_no_hedge() -> None:
    play = played(slow(gave("quick"), 20))
    assert len(call_of(play).attempts) == 1


@pytest.mark.parametrize("action", ["put", "book", "pay", "peek"])
def test_what_writes_or_may_not_be_repeated_is_never_hedged(action: str) -> None:
    """Also if an event says so: what may be sent twice is the engine's to know."""
    lines = [slow(gave(1), 300)] * 3
    play = played(*lines, action=action)
    assert not [e for e in play.journal if isinstance(e, AttemptStarted) and e.hedge]


def test_a_failure_decides_nothing_while_the_other_attempt_is_out() -> None:
    play = played(slow(failed(Reason.UNAVAILABLE, SideEffect.NONE), 70), slow(gave("yes"), 60))
    call = call_of(play)
    assert call.status is StepStatus.SUCCEEDED
    assert not play.state.decisions, "nothing was to be decided"


def test_when_both_fail_the_policy_is_asked_once_about_the_last_to_fail() -> None:
    first = slow(failed(Reason.TIMEOUT, SideEffect.NONE), 200)
    hedge = slow(failed(Reason.UNAVAILABLE, SideEffect.NONE), 10)
    play = played(first, hedge, slow(gave("third"), 5))
    assert [decision.features["reason"] for decision in play.state.decisions] == ["TIMEOUT"]
    assert [attempt.number for attempt in call_of(play).attempts] == [1, 2, 3]


def test_a_hedge_is_paid_from_the_retries_and_is_not_had_without() -> None:
    terms = Terms(hedge_after_ms=AFTER_MS, retry_budget=0)
    play = played(slow(gave("slow"), 300), terms=terms)
    assert len(call_of(play).attempts) == 1
    paid = played(slow(gave("slow"), 300), slow(gave("quick"), 20))
    lost = 1  # the lease of the attempt that was superseded: nobody knows what it spent
    assert paid.state.budget_left == paid.state.opened.retry_budget - 1 - lost


def test_a_cancelled_session_cancels_both_attempts() -> None:
    def component(sent: Sent) -> Said | None:
        return None

    text = workflow_of(ONE_ACTION % "read")
    terms = Terms(hedge_after_ms=AFTER_MS)
    play = Play(text, CATALOG, Cast(component=component), terms=terms)
    laws.watch(play).at(100, play.cancel)
    play.open().run()
    laws.check_end(play)
    call_id = call_of(play).created.call_id
    assert play.cancelled == [(call_id, 1), (call_id, 2)]


def test_an_operation_that_the_first_attempt_began_is_followed_there() -> None:
    first = Said(poll_after_ms=50, response=accepted(50).response, after_ms=80)
    play = played(first, slow(gave("hedge"), 500))
    call = call_of(play)
    assert call.attempt is not None
    assert (call.attempt.number, call.attempt.operation is not None) == (1, True)


def test_a_crash_with_both_attempts_out_loses_both_and_asks_once() -> None:
    play = played(slow(gave("first"), 80), slow(gave("hedge"), 500))
    started = [i for i, e in enumerate(play.journal) if isinstance(e, AttemptStarted)]
    again = laws.watch(play.crashed(started[1] + 1)).run()
    laws.check_end(again)
    laws.check_replay(again)
    assert len(again.state.decisions) == 1


def test_a_session_from_before_hedges_sets_no_timer_for_them() -> None:
    play = played(slow(gave("slow"), 300), slow(gave("quick"), 20))
    opened, start = play.journal[0], next(e for e in play.journal if isinstance(e, AttemptStarted))
    assert isinstance(opened, Opened)
    before = msgspec.structs.replace(
        play.state, opened=msgspec.structs.replace(opened, behaviour=1)
    )
    assert hedges.timer(play.state, start)
    assert not hedges.timer(before, start)
