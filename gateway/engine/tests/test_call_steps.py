"""One call: attempts, leases, long operations, late answers, its one outcome (SPEC 9.1-9.5)."""

import pytest

from acp_spec.bindings.errors import error
from acp_spec.model.calls import OperationState
from acp_spec.model.enums import OperationStatus, SessionStatus, SideEffect, StepStatus
from acp_spec.model.errors import AcpError, Reason
from acp_spec.model.payload import payload
from gateway.engine.commands import CancelCall, StartTimer
from gateway.engine.events import AttemptEnded, Late, Timer, TimerFired
from gateway.engine.states import OPERATION_LIMIT_MS, CallState, Phase
from gateway.engine.step import step
from gateway.engine.tests.casting import (
    START_MS,
    Cast,
    Operation,
    Said,
    Sent,
    Terms,
    operation_ended,
)
from gateway.engine.tests.playing import Play
from gateway.engine.tests.stage import (
    CATALOG,
    FOUR_CALLS,
    ONE_ACTION,
    Line,
    accepted,
    failed,
    first,
    gave,
    goal,
    planned,
    troupe,
    workflow_of,
)


def nobody_knows(call_id: str, nth: int) -> AcpError:
    return error(Reason.NOT_FOUND, "there is no such operation")


def one(
    action: str,
    line: Line,
    terms: Terms | None = None,
    *,
    operation: Operation = nobody_knows,
) -> Play:
    made = Cast(component=troupe(**{action: line}), operation=operation)
    return Play(workflow_of(ONE_ACTION % action), CATALOG, made, terms=terms).open()


def call_of(play: Play, action: str = "") -> CallState:
    found = [c for c in play.state.calls.values() if not action or c.created.action == action]
    return found[-1]


# ---- attempts and the budget -----------------------------------------------------------


def test_a_call_is_sent_three_times_at_most() -> None:
    play = one("read", failed()).run()
    assert [sent.attempt for sent in play.sent] == [1, 2, 3]
    assert call_of(play).status is StepStatus.FAILED
    assert play.state.budget_left == 6


def test_a_later_attempt_that_succeeds_is_the_outcome() -> None:
    play = one("read", first(2, failed(), gave(1))).run()
    assert play.state.status is SessionStatus.SUCCEEDED
    assert bytes(play.state.output) == b"1"
    assert call_of(play).error is None


def test_what_an_answer_did_not_spend_comes_back() -> None:
    spent = Said(response=b'{"output":1}', retries_spent=1)
    play = one("read", spent)
    assert play.state.budget_left == 7, "one is lent while the attempt runs, one kept for a retry"
    play.run()
    assert play.state.budget_left == 7
    assert one("read", gave(1)).run().state.budget_left == 8


def test_a_component_cannot_spend_more_than_it_was_lent() -> None:
    play = one("read", Said(response=b'{"output":1}', retries_spent=99)).run()
    assert play.state.budget_left == 7


def test_a_lost_answer_spent_all_that_was_lent_and_leaves_the_one_kept_back() -> None:
    play = one("read", None).run()
    assert [(sent.attempt, sent.lease) for sent in play.sent] == [(1, 1), (2, 0)]
    assert play.state.budget_left == 6
    assert play.state.decisions[1].options[0].masked_by == "call_retries"


def test_what_was_proven_not_sent_spent_nothing() -> None:
    refused = Said(
        error=error(Reason.UNAVAILABLE, "no route"), side_effect=SideEffect.NONE, not_sent=True
    )
    play = one("pay", first(1, refused, gave(1))).run()
    assert play.state.status is SessionStatus.SUCCEEDED
    assert play.state.budget_left == 7


def test_parallel_calls_share_one_budget_and_none_is_lent_twice() -> None:
    """Sub-goals that began together were each lent from the whole budget."""
    plan = planned(*(goal(f"g{n}", "read") for n in range(6)))
    cast = Cast(component=troupe(plan=plan))
    play = Play(workflow_of(FOUR_CALLS), CATALOG, cast, terms=Terms(retry_budget=3)).open()
    play.run()
    assert [s.lease for s in play.sent if s.created.action == "read"] == [1, 1, 0, 0, 0, 0]
    assert play.state.budget_left == 3


def test_a_later_attempt_is_never_lent_more_than_an_earlier_one() -> None:
    """CTX-012: the first got nothing because siblings held it all; they had given it back."""
    terms = Terms(retry_budget=3)
    plan = planned(*(goal(f"g{n}", "read") for n in range(4)), goal("last", "put"))
    lines = troupe(plan=plan, read=gave(1), put=first(1, failed(retry_after_ms=500), gave(1)))
    play = Play(workflow_of(FOUR_CALLS), CATALOG, Cast(component=lines), terms=terms).open().run()
    assert [s.lease for s in play.sent if s.created.action == "put"] == [0, 0]


def test_the_budget_of_the_session_bounds_all_retries_together() -> None:
    plan = planned(*(goal(f"g{n}", "read") for n in range(6)))
    cast = Cast(component=troupe(plan=plan, read=failed()))
    play = Play(workflow_of(FOUR_CALLS), CATALOG, cast, terms=Terms(retry_budget=3)).open().run()
    assert sum(s.attempt > 1 for s in play.sent) == 3
    assert play.state.budget_left == 0


def test_a_refusal_by_the_gateway_is_an_attempt_that_did_nothing() -> None:
    def gate(call: CallState, attempt: int, now_ms: int) -> AcpError | int | None:
        return error(Reason.OVERLOADED, "full") if attempt == 1 else None

    cast = Cast(component=troupe(pay=gave(1)), gate=gate)
    play = Play(workflow_of(ONE_ACTION % "pay"), CATALOG, cast).open().run()
    attempts = call_of(play).attempts
    assert [(a.number, a.refused is not None) for a in attempts] == [(1, True), (2, False)]
    assert play.state.status is SessionStatus.SUCCEEDED


def test_a_deferred_attempt_counts_its_wait_and_keeps_its_number() -> None:
    def gate(call: CallState, attempt: int, now_ms: int) -> AcpError | int | None:
        return 40 if now_ms == START_MS else None

    cast = Cast(component=troupe(read=gave(1)), gate=gate)
    play = Play(workflow_of(ONE_ACTION % "read"), CATALOG, cast).open().run()
    started = call_of(play).attempts[0].started
    assert started is not None
    assert (started.attempt, started.wait_ms, started.queued_at_ms) == (1, 40, START_MS)


def test_an_attempt_ends_once() -> None:
    play = one("read", gave(1)).run(until_ms=1)
    ended = AttemptEnded(at_ms=play.now_ms, call_id=call_of(play).created.call_id, attempt=1)
    state, _ = step(play.state, ended)
    with pytest.raises(AssertionError, match="ends once"):
        step(state, ended)


# ---- late answers (SPEC 9.3) -----------------------------------------------------------


def test_a_late_answer_sharpens_the_side_effect_and_never_the_outcome() -> None:
    late = Said(response=b'{"output":1}', after_ms=5_300)
    play = one("pay", late).run()
    call = call_of(play)
    assert call.status is StepStatus.FAILED
    assert call.error is not None
    assert call.error.reason == "TIMEOUT"
    assert call.side_effect is SideEffect.PERFORMED
    assert bytes(call.output) == b""


def test_a_late_refusal_proves_that_nothing_was_done() -> None:
    late = failed(Reason.INVALID_REQUEST, SideEffect.NONE, after_ms=5_300)
    assert call_of(one("pay", late).run()).side_effect is SideEffect.NONE


def test_a_late_answer_of_an_earlier_attempt_leaves_the_later_one_alone() -> None:
    """While attempt 2 was in flight its own UNKNOWN got stuck to the call."""

    def book(sent: Sent) -> Said | None:
        if sent.attempt == 1:
            return failed(Reason.UNAVAILABLE, SideEffect.UNKNOWN)
        return failed(Reason.INVALID_REQUEST, SideEffect.NONE, after_ms=2_000)

    play = one("book", book).run(until_ms=1_000)
    call = call_of(play)
    assert call.phase is Phase.SENT
    late = Late(
        at_ms=play.now_ms, call_id=call.created.call_id, attempt=1, side_effect=SideEffect.NONE
    )
    play.feed(late)
    play.run()
    assert [a.side_effect.value for a in call_of(play).attempts] == ["NONE", "NONE"]
    assert call_of(play).side_effect is SideEffect.NONE


def test_what_one_attempt_may_have_done_stays_so_whatever_the_next_one_says() -> None:
    lines = first(
        1,
        failed(Reason.UNAVAILABLE, SideEffect.UNKNOWN),
        failed(Reason.INVALID_REQUEST, SideEffect.NONE),
    )
    assert call_of(one("book", lines).run()).side_effect is SideEffect.UNKNOWN


# ---- long operations (SPEC 9.5) --------------------------------------------------------


def states(*answers: OperationState | AcpError | None) -> Operation:
    def operation(call_id: str, nth: int) -> OperationState | AcpError | None:
        return answers[min(nth, len(answers)) - 1]

    return operation


RUNNING = OperationState(status=OperationStatus.RUNNING, poll_after_ms=200)
DONE = OperationState(status=OperationStatus.SUCCEEDED, output=payload(b"0.10"))


def test_an_operation_is_polled_until_it_ends() -> None:
    play = one("grow", accepted(100), operation=states(RUNNING, RUNNING, DONE)).run()
    assert play.state.status is SessionStatus.SUCCEEDED
    assert bytes(play.state.output) == b"0.10"
    assert call_of(play).side_effect is SideEffect.PERFORMED


def test_while_an_operation_runs_the_session_waits_and_its_deadline_stands_still() -> None:
    terms = Terms(deadline_ms=1_000)
    play = one("grow", accepted(5_000), terms, operation=states(DONE)).run(until_ms=4_000)
    assert play.status == "WAITING"
    assert play.state.deadline_at(play.now_ms) == START_MS + 1_000 + 4_000 - 5
    play.run()
    assert play.state.status is SessionStatus.SUCCEEDED
    assert play.state.deadline_at_ms == START_MS + 1_000 + 5_001


def test_after_the_operation_the_rest_of_the_deadline_counts_again() -> None:
    text = (
        ONE_ACTION.replace("output:", "  - {name: b, role: execute, action: read}\noutput:")
        % "grow"
    )
    cast = Cast(component=troupe(grow=accepted(5_000), read=None), operation=states(DONE))
    play = Play(workflow_of(text), CATALOG, cast, terms=Terms(deadline_ms=1_000, cancel_grace_ms=0))
    play.open().run()
    assert play.state.status is SessionStatus.FAILED
    assert play.state.ended_at_ms == START_MS + 1_000 + 5_001


def test_of_two_operations_the_clock_runs_again_after_the_last() -> None:
    plan = planned(goal("a", "grow"), goal("b", "print"))

    def operation(call_id: str, nth: int) -> OperationState | AcpError | None:
        return DONE

    lines = troupe(plan=plan, grow=accepted(300), print=accepted(900))
    play = Play(workflow_of(FOUR_CALLS), CATALOG, Cast(component=lines, operation=operation))
    play.open().run(until_ms=500)
    assert play.status == "WAITING"
    play.run()
    assert play.state.status is SessionStatus.SUCCEEDED


def test_a_call_back_overtakes_the_poll() -> None:
    play = one("grow", accepted(10_000), operation=states(RUNNING)).run(until_ms=50)
    play.feed(operation_ended(call_of(play), play.now_ms, output=b"9007199254740993"))
    assert bytes(play.state.output) == b"9007199254740993"
    play.run()
    assert play.state.status is SessionStatus.SUCCEEDED


def test_a_second_end_of_an_operation_changes_nothing() -> None:
    play = one("grow", accepted(10_000), operation=states(RUNNING)).run(until_ms=50)
    ended = operation_ended(call_of(play), play.now_ms, output=b"1")
    play.feed(ended)
    again, commands = step(play.state, ended)
    assert commands == []
    assert again.calls == play.state.calls


def test_an_operation_that_nobody_knows_any_more_ends_unknown() -> None:
    lost = error(Reason.NOT_FOUND, "never heard of it")
    play = one("grow", accepted(), operation=states(RUNNING, lost)).run()
    call = call_of(play)
    assert (call.status, call.side_effect) == (StepStatus.FAILED, SideEffect.UNKNOWN)
    assert call.error is not None
    assert call.error.reason == "NOT_FOUND"


def test_a_peer_that_does_not_answer_a_poll_is_asked_again() -> None:
    play = one("grow", accepted(), operation=states(None, None, DONE)).run()
    assert play.state.status is SessionStatus.SUCCEEDED


def test_an_operation_has_the_time_its_card_says_and_then_fails_unknown() -> None:
    play = one("print", accepted(), operation=states(RUNNING)).run()
    call = call_of(play)
    assert call.error is not None
    assert (call.error.reason, call.side_effect) == ("TIMEOUT", SideEffect.UNKNOWN)
    assert play.state.ended_at_ms == START_MS + 5 + 5_000
    assert "5000 ms" in call.error.message


def test_an_operation_whose_card_names_no_limit_has_one_all_the_same() -> None:
    """Its session's deadline stands still: without a limit it would never end."""
    play = one("put", accepted(), operation=states(RUNNING)).run(until_ms=50)
    assert call_of(play).operation_limit_ms == OPERATION_LIMIT_MS
    fired = TimerFired(
        at_ms=START_MS + OPERATION_LIMIT_MS + 5,
        timer=Timer.OPERATION,
        call_id=call_of(play).created.call_id,
        attempt=1,
    )
    play.feed(fired)
    assert play.state.status is SessionStatus.FAILED


def test_a_failed_operation_is_not_begun_again() -> None:
    broke = OperationState(status=OperationStatus.FAILED, error=error(Reason.UNAVAILABLE, "broke"))
    play = one("grow", accepted(), operation=states(broke)).run()
    assert len(play.sent) == 1
    assert play.state.status is SessionStatus.FAILED


def test_an_operation_of_a_retried_call_keeps_what_the_lost_attempt_may_have_done() -> None:
    lines = first(1, failed(Reason.UNAVAILABLE, SideEffect.UNKNOWN), accepted())
    refused = OperationState(
        status=OperationStatus.FAILED,
        error=error(Reason.INVALID_REQUEST, "no"),
        side_effect=SideEffect.NONE,
    )
    play = one("grow", lines, operation=states(refused)).run()
    assert call_of(play).side_effect is SideEffect.UNKNOWN


def test_a_running_operation_is_cancelled_and_given_up_after_the_grace() -> None:
    play = one("grow", accepted(), operation=states(RUNNING)).run(until_ms=50)
    play.cancel()
    assert play.cancelled == [(call_of(play).created.call_id, 1)]
    play.run()
    assert play.state.status is SessionStatus.CANCELLED
    assert call_of(play).side_effect is SideEffect.UNKNOWN


def test_a_call_that_becomes_an_operation_while_it_is_cancelled_is_cancelled_as_one() -> None:
    slow = Said(response=b'{"operation":{}}', poll_after_ms=100, after_ms=300)
    play = one("grow", slow, operation=states(RUNNING)).run(until_ms=50)
    play.cancel()
    ended = AttemptEnded(
        at_ms=play.now_ms,
        call_id=call_of(play).created.call_id,
        attempt=1,
        operation_poll_after_ms=100,
    )
    _, commands = step(play.state, ended)
    assert [type(c) for c in commands] == [StartTimer, StartTimer, CancelCall]


def test_an_operation_that_succeeds_during_the_grace_keeps_its_outcome() -> None:
    play = one("grow", accepted(), operation=states(RUNNING)).run(until_ms=50)
    play.cancel()
    play.feed(operation_ended(call_of(play), play.now_ms, output=b"1"))
    assert call_of(play).status is StepStatus.SUCCEEDED
    assert play.state.status is SessionStatus.CANCELLED
