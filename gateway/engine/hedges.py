"""A second attempt of a call that only reads, beside the first one (SPEC 9.7): whose turn, and why.

A hedge is an attempt of its own, with its number, its end and its price: one of the session's
retries. The first good answer stands; before it is taken the other attempt is ended as superseded
and told to stop. An attempt that fails while the other is out decides nothing. Replay needs no
clock and no chance for it: when to hedge, and whether somebody was free, ride on events.
"""

import msgspec

from acp_spec.bindings.errors import error
from acp_spec.model.enums import Boundary, Effect, Idempotency, SideEffect
from acp_spec.model.errors import AcpError, Reason
from gateway.engine.commands import CancelCall, Command, Hedge, Send, StartTimer
from gateway.engine.events import AttemptEnded, AttemptStarted, Timer, TimerFired
from gateway.engine.states import AttemptState, CallState, Phase, SessionState

SINCE_BEHAVIOUR = 2

replace = msgspec.structs.replace


def timer(state: SessionState, event: AttemptStarted) -> list[Command]:
    """When to think of a hedge, if this attempt may have one at all."""
    if not event.hedge_after_ms or state.opened.behaviour < SINCE_BEHAVIOUR:
        return []
    at_ms = event.at_ms + event.hedge_after_ms
    return [StartTimer(Timer.HEDGE, at_ms, event.call_id, event.attempt)]


def may_have_one(call: CallState) -> bool:
    """Whether sending it twice does nothing: by its card it reads, and begins no operation."""
    created = call.created
    reads = created.effect is Effect.READ and created.idempotency is Idempotency.NATURAL
    return reads and not created.operation_timeout_ms


def due(state: SessionState, event: TimerFired) -> list[Command]:
    """The first attempt has not answered by then: ask for the second, once."""
    call = state.calls.get(event.call_id)
    if call is None or call.phase is not Phase.SENT or call.number != event.attempt:
        return []
    if state.ending is not None or call.cancelling or not may_have_one(call):
        return []
    if state.budget_left <= 0 or call.retries_left <= 0:
        return []
    return [Hedge(event.call_id)]


def started(state: SessionState, call: CallState, *, event: AttemptStarted) -> list[Command]:
    """The second attempt is out: it cost a retry, and it carries a lease like any other."""
    assert call.phase is Phase.SENT, "a hedge stands beside an attempt that is out"
    assert len(call.in_flight) == 1, "one hedge at a time"
    assert event.attempt == call.number + 1, "an attempt has the next number"
    assert may_have_one(call), "only what reads is hedged"
    state.budget_left -= 1 + event.lease
    attempt = AttemptState(
        number=event.attempt,
        queued_at_ms=event.at_ms,
        started=event,
        budget_left=state.budget_left,
    )
    state.calls[event.call_id] = replace(
        call,
        number=event.attempt,
        retries_left=call.retries_left - 1,
        attempts=(*call.attempts, attempt),
    )
    return [Send(event.call_id, event.attempt)]


def goes_on(state: SessionState, call: CallState, *, event: AttemptEnded) -> list[Command] | None:
    """What follows while the other attempt is out; None: none is, this was the last of them."""
    if len(call.attempts) == 1 or not call.in_flight:
        return None
    assert event.error is not None, "the other attempt is ended before an answer is taken"
    state.calls[call.created.call_id] = call
    return [CancelCall(event.call_id, event.attempt)] if event.superseded_by else []


def superseded(call: CallState, winner: int, *, at_ms: int) -> tuple[AttemptEnded, ...]:
    """The end of the attempt beside the one that answered: to be fed before that answer.

    It only reads, so its side effect is NONE; what it would have said is late, if it says it.
    """
    others = [attempt for attempt in call.in_flight if attempt.number != winner]
    if not others:
        return ()
    message = f"attempt {winner} of this call answered first"
    failure = error(
        Reason.CANCELLED, message, side_effect=SideEffect.NONE, boundary=Boundary.GATEWAY
    )
    return tuple(
        AttemptEnded(
            at_ms=at_ms,
            call_id=call.created.call_id,
            attempt=attempt.number,
            error=failure,
            side_effect=SideEffect.NONE,
            answered=False,
            superseded_by=winner,
        )
        for attempt in others
    )


def tells(call: CallState, attempt: int, *, answered: bool, failure: AcpError | None) -> bool:
    """Whether an answer after its attempt's end is worth keeping as late.

    Of an operation the first answer was all; of a superseded attempt that was stopped nothing is.
    """
    if call.phase is Phase.OPERATION and call.attempt is not None:
        return call.attempt.number != attempt and not call.superseded(attempt)
    if not call.superseded(attempt):
        return True
    return answered and (failure is None or failure.reason != Reason.CANCELLED.value)
