"""What is still to be done in a state read back: re-issued, never re-decided (idea 2)."""

from acp_spec.model.calls import OperationState
from acp_spec.model.enums import Mode, OperationStatus, SessionStatus, SideEffect
from gateway.engine.commands import Advance, Call, CancelCall, Poll, StartTimer
from gateway.engine.events import AttemptEnded, AttemptStarted, Decided, Deferred, Opened, Timer
from gateway.engine.pending import pending
from gateway.engine.states import CallState, Phase, SessionState
from gateway.engine.tests.casting import START_MS, Cast, Operation, Said, Terms
from gateway.engine.tests.playing import Play, lost_attempts
from gateway.engine.tests.stage import (
    CATALOG,
    ONE_ACTION,
    Line,
    accepted,
    failed,
    first,
    gave,
    troupe,
    workflow_of,
)


def running(call_id: str, nth: int) -> OperationState:
    return OperationState(status=OperationStatus.RUNNING, poll_after_ms=100)


def one(action: str, line: Line, operation: Operation = running, **terms: int) -> Play:
    cast = Cast(component=troupe(**{action: line}), operation=operation)
    play = Play(workflow_of(ONE_ACTION % action), CATALOG, cast, terms=Terms(**terms))  # type: ignore[arg-type]
    return play.open()


def phase(state: SessionState) -> Phase:
    (call,) = state.calls.values()
    return call.phase


def kinds(state: SessionState) -> list[str]:
    return [type(c).__name__ for c in pending(state, state.now_ms)]


def test_a_call_not_yet_started_is_asked_for_again() -> None:
    def gate(call: CallState, attempt: int, now_ms: int) -> int | None:
        return 1_000 if now_ms == START_MS else None

    cast = Cast(component=troupe(), gate=gate)
    play = Play(workflow_of(ONE_ACTION % "pay"), CATALOG, cast).open()
    assert isinstance(play.journal[-1], Deferred)
    assert phase(play.state) is Phase.READY
    assert [type(c) for c in pending(play.state, play.now_ms)] == [StartTimer, Call, Advance]


def test_a_started_attempt_is_lost_and_what_it_did_is_unknown() -> None:
    play = one("pay", None)
    (lost,) = lost_attempts(play.state, START_MS + 9)
    assert lost.side_effect is SideEffect.UNKNOWN
    assert not lost.answered
    assert not lost.not_sent
    again = play.crashed(len(play.journal)).run()
    assert again.state.status is SessionStatus.FAILED
    assert again.sent == [], "NONE is never sent again"


def test_a_lost_attempt_that_only_reads_did_nothing_and_is_sent_again() -> None:
    """`peek` reads, and its card says no more: after a restart it was given up as doubtful."""
    play = one("peek", first(1, None, gave(1)))
    (lost,) = lost_attempts(play.state, START_MS)
    assert lost.side_effect is SideEffect.NONE
    again = play.crashed(len(play.journal)).run()
    assert again.state.status is SessionStatus.SUCCEEDED


def test_a_lost_attempt_by_key_is_sent_again_with_the_same_bytes() -> None:
    play = one("book", first(1, None, gave(1)))
    again = play.crashed(len(play.journal)).run()
    assert [s.attempt for s in again.sent] == [2]
    assert again.sent[0].body == play.sent[0].body


def test_a_decision_that_was_not_made_is_asked_for() -> None:
    play = one("read", failed()).run()
    kept = next(n for n, e in enumerate(play.journal, 1) if isinstance(e, AttemptEnded))
    again = play.crashed(kept)
    assert isinstance(again.journal[kept], Decided)
    assert again.state.decisions[0].draw == play.state.decisions[0].draw, "nothing new is drawn"


def test_a_decision_that_was_made_stands_and_its_wait_goes_on() -> None:
    play = one("read", first(1, failed(retry_after_ms=3_000), gave(1))).run(until_ms=100)
    assert phase(play.state) is Phase.BACKOFF
    again = play.crashed(len(play.journal))
    assert len(again.state.decisions) == 1
    again.run()
    assert again.sent[0].at_ms == play.state.calls[again.sent[0].created.call_id].resume_at_ms


def test_an_operation_is_polled_at_once_and_keeps_its_limit() -> None:
    play = one("print", accepted()).run(until_ms=50)
    call_id = play.sent[0].created.call_id
    assert pending(play.state, play.now_ms) == [
        Poll(call_id, 1),
        StartTimer(Timer.OPERATION, START_MS + 5 + 5_000, call_id, 1),
        Advance(),
    ]
    late = pending(play.state, START_MS + 90_000)
    assert StartTimer(Timer.OPERATION, START_MS + 90_000, call_id, 1) in late


def test_a_session_that_is_being_cancelled_goes_on_being_cancelled() -> None:
    play = one("print", accepted()).run(until_ms=50)
    play.cancel()
    call_id = play.sent[0].created.call_id
    assert pending(play.state, play.now_ms) == [
        CancelCall(call_id, 1),
        StartTimer(Timer.GRACE, play.now_ms + 2_000),
        Advance(),
    ]
    again = play.crashed(len(play.journal)).run()
    assert again.state.status is SessionStatus.CANCELLED


def test_a_deadline_that_passed_while_the_gateway_was_down_ends_the_session() -> None:
    play = one("read", None, deadline_ms=1_000).run(until_ms=10)
    again = play.crashed(len(play.journal), after_ms=5_000).run()
    assert again.state.status is SessionStatus.FAILED
    assert again.sent == []


def test_nothing_is_pending_in_a_session_that_has_ended() -> None:
    play = one("read", gave(1)).run()
    assert pending(play.state, play.now_ms) == []
    assert lost_attempts(play.state, play.now_ms) == []


def test_a_manual_session_waits_for_its_client_after_a_restart() -> None:
    play = Play(None, CATALOG, Cast(component=troupe()), terms=Terms(mode=Mode.MANUAL)).open()
    again = play.crashed(1).run(until_ms=1_000)
    assert [type(e) for e in again.journal] == [Opened]
    assert kinds(again.state) == ["StartTimer"]


def test_no_attempt_number_is_used_twice_over_crashes() -> None:
    lines = first(2, failed(after_ms=20), Said(response=b'{"output":1}', after_ms=30))
    whole = one("read", lines).run()
    for kept in range(1, len(whole.journal)):
        again = whole.crashed(kept).run()
        numbers = [e.attempt for e in again.journal if isinstance(e, AttemptStarted)]
        assert numbers == sorted(set(numbers))
