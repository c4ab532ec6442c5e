"""The table of handlers, versions that only grow, and arguments that stay as they were."""

import typing

import pytest

from acp_spec.model.enums import SessionStatus, StepStatus
from gateway.engine import events
from gateway.engine.commands import CancelCall, Record, Reset
from gateway.engine.events import AnyEvent, CancelRequested, Opened, Timer, TimerFired
from gateway.engine.states import Phase
from gateway.engine.step import HANDLERS, step
from gateway.engine.tests import laws, troubles
from gateway.engine.tests.casting import START_MS, Cast, Said, Sent, Terms
from gateway.engine.tests.playing import Play
from gateway.engine.tests.stage import (
    CATALOG,
    FOUR_CALLS,
    ONE_ACTION,
    accepted,
    failed,
    gave,
    troupe,
    workflow_of,
)


def one(action: str, component: Cast, **terms: typing.Any) -> Play:
    return Play(workflow_of(ONE_ACTION % action), CATALOG, component, terms=Terms(**terms))


def test_every_event_has_a_handler_and_every_handler_an_event() -> None:
    assert set(HANDLERS) == set(typing.get_args(AnyEvent))
    declared = {
        kind
        for kind in vars(events).values()
        if isinstance(kind, type) and issubclass(kind, events.Event) and kind is not events.Event
    }
    assert set(HANDLERS) == declared


def test_an_opening_cannot_come_twice() -> None:
    play = one("read", Cast(component=troupe())).open()
    assert isinstance(play.journal[0], Opened)
    with pytest.raises(AssertionError, match="Opened opens a session"):
        step(play.state, play.journal[0])


@pytest.mark.parametrize("seed", range(25))
def test_step_never_changes_its_argument(seed: int) -> None:
    play = troubles.random_play(seed)
    play.on_event = lambda before, event, after: laws.check_purity(before, event)
    play.open().run()


def test_each_event_moves_exactly_one_counter_of_the_version() -> None:
    moved = set()

    def watch(before: typing.Any, event: AnyEvent, after: typing.Any) -> None:
        changes = [new - old for new, old in zip(after.version, before.version, strict=True)]
        assert sorted(changes) == [0, 0, 1]
        moved.add(changes.index(1))

    play = Play(workflow_of(FOUR_CALLS), CATALOG, Cast(component=troupe()))
    play.on_event = watch
    play.open().run()
    troubles.judge(play)
    assert moved == {0, 1, 2}
    assert play.state.sequence == sum(play.state.version) == len(play.journal)


def test_time_never_goes_back_even_if_the_clock_of_the_gateway_does() -> None:
    play = one("read", Cast(component=troupe())).open()
    state, _ = step(play.state, CancelRequested(at_ms=START_MS - 5_000))
    assert state.now_ms == START_MS


# ---- cancel (SPEC 9.4) -----------------------------------------------------------------


def test_a_cancelled_session_ends_once_its_call_has_answered() -> None:
    def stop(sent: Sent) -> Said:
        return failed(after_ms=100)

    cast = Cast(component=troupe(pay=Said(response=b"{}", after_ms=3_000)), on_cancel=stop)
    play = one("pay", cast).open().run(until_ms=50)
    play.cancel()
    assert not play.state.terminal, "its call is still open"
    assert len(play.cancelled) == 1
    play.run()
    assert play.state.status is SessionStatus.CANCELLED
    assert play.state.ended_at_ms == START_MS + 150
    assert play.state.steps["act"].status is StepStatus.CANCELLED


def test_a_peer_that_ignores_the_cancel_is_reset_after_the_grace() -> None:
    cast = Cast(component=troupe(pay=Said(response=b"{}", after_ms=4_000)))
    play = one("pay", cast, cancel_grace_ms=700).open().run(until_ms=50)
    play.cancel()
    play.run()
    (call,) = play.state.calls.values()
    assert play.state.status is SessionStatus.CANCELLED
    assert play.state.ended_at_ms == START_MS + 750
    assert call.attempts[-1].side_effect.value == "PERFORMED", "its late answer said so"
    ended = call.attempts[-1].ended
    assert ended is not None
    assert ended.side_effect.value == "UNKNOWN", "a reset is side effect UNKNOWN"


def test_a_call_that_waits_for_its_retry_is_over_at_once_when_the_session_is_cancelled() -> None:
    cast = Cast(component=troupe(read=failed(retry_after_ms=5_000)))
    play = one("read", cast).open().run(until_ms=100)
    (call,) = play.state.calls.values()
    assert call.phase is Phase.BACKOFF
    play.cancel()
    assert play.state.status is SessionStatus.CANCELLED
    play.run()
    assert len(play.sent) == 1


def test_cancelling_twice_asks_the_peer_once() -> None:
    cast = Cast(component=troupe(pay=Said(response=b"{}", after_ms=4_000)))
    play = one("pay", cast).open().run(until_ms=50)
    play.cancel()
    play.cancel()
    assert len(play.cancelled) == 1


def test_cancelling_what_has_ended_changes_nothing() -> None:
    play = one("read", Cast(component=troupe())).open().run()
    play.cancel()
    assert play.state.status is SessionStatus.SUCCEEDED


# ---- deadline --------------------------------------------------------------------------


def test_the_deadline_fails_the_session_and_asks_the_peer_to_stop() -> None:
    cast = Cast(component=troupe(pay=None))
    play = one("pay", cast, deadline_ms=1_000, cancel_grace_ms=0).open().run()
    assert play.state.status is SessionStatus.FAILED
    assert play.state.error is not None
    assert play.state.error.reason == "TIMEOUT"
    assert play.sent[0].timeout_ms == 1_000, "an attempt never gets more than the session has"


def test_a_deadline_that_fires_again_after_a_restart_does_not_lengthen_the_grace() -> None:
    """A restart sets the deadline's timer anew; the session is ending already."""
    cast = Cast(component=troupe(pay=Said(response=b"{}", after_ms=4_000)))
    play = one("pay", cast, deadline_ms=1_000).open().run(until_ms=990)
    fired = TimerFired(at_ms=START_MS + 1_000, timer=Timer.DEADLINE)
    once, commands = step(play.state, fired)
    assert any(isinstance(command, CancelCall) for command in commands)
    _, again = step(once, fired)
    assert again == []


def test_the_deadline_stands_still_for_siblings_of_a_running_operation_too() -> None:
    """A read that fails while an operation runs was given up for want of time that stands still."""
    from gateway.engine.tests.stage import first, goal, planned

    plan = planned(goal("a", "grow"), goal("b", "read", depends_on=["c"]), goal("c", "put"))
    slow_put = Said(response=b'{"output":1}', after_ms=400)
    read = first(1, failed(retry_after_ms=600), gave(1))
    cast = Cast(component=troupe(plan=plan, grow=accepted(2_000), put=slow_put, read=read))
    play = Play(workflow_of(FOUR_CALLS), CATALOG, cast, terms=Terms(deadline_ms=800))
    play.open().run(until_ms=1_900)
    status = {c.created.sub_goal: c.status for c in play.state.calls.values()}
    assert status["b"] is StepStatus.SUCCEEDED
    assert play.state.status is SessionStatus.WAITING


# ---- after the end ---------------------------------------------------------------------


def test_a_late_answer_after_the_end_is_recorded_anew() -> None:
    """The trajectory was handed out at the end; what a late answer teaches must reach it too."""
    late = Said(response=b'{"output":1}', after_ms=5_500)
    play = one("pay", Cast(component=troupe(pay=late))).open().run()
    assert play.state.status is SessionStatus.FAILED
    (call,) = play.state.calls.values()
    assert call.attempts[0].late is not None
    assert play.records == 2


def test_feedback_after_the_end_is_recorded_and_changes_no_status() -> None:
    play = one("read", Cast(component=troupe())).open().run()
    before = play.state
    troubles.judge(play)
    assert play.state.status is before.status
    assert play.state.version == (before.version[0], before.version[1], 1)
    assert play.records == 2


def test_the_last_word_on_a_target_is_the_one_with_the_latest_time() -> None:
    from acp_spec.model.enums import FeedbackKind
    from acp_spec.model.session import Feedback
    from gateway.engine.events import FeedbackGiven

    play = one("read", Cast(component=troupe())).open().run()
    for number, (second, score) in enumerate(((30, 0.9), (10, 0.1), (30, 0.5))):
        feedback = Feedback(
            kind=FeedbackKind.RATING, score=score, author="a", time=f"2026-01-01T00:00:{second}Z"
        )
        play.feed(FeedbackGiven(at_ms=play.now_ms, feedback=feedback, feedback_id=str(number)))
    (entry,) = play.state.feedback.values()
    assert entry.given.feedback.score == 0.5, "an equal time: the one that came later"
    assert [e.given.feedback.score for e in play.state.feedback_log] == [0.9, 0.1, 0.5]
    before = play.state
    play.feed(FeedbackGiven(at_ms=play.now_ms, feedback=entry.given.feedback, feedback_id="again"))
    assert (len(before.feedback_log), len(play.state.feedback_log)) == (3, 4)
    assert [*before.feedback.values()] == [entry], "the old state keeps its own"
    assert [*play.state.feedback.values()] != [entry]


def test_resets_go_only_to_what_is_in_flight() -> None:
    play = one("read", Cast(component=troupe(read=None))).open().run(until_ms=10)
    play.cancel()
    _, commands = step(play.state, TimerFired(at_ms=play.now_ms, timer=Timer.GRACE))
    assert [type(c) for c in commands if isinstance(c, Reset | Record)] == [Reset]
