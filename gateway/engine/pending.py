"""What is still to be done in a state read back from the journal (architecture idea 2).

Recovery re-issues what the state says is pending; it never re-decides and never re-evaluates. An
attempt that was started and has no end is *lost*: unless it only reads, nobody knows what it did.
"""

from acp_spec.bindings.errors import effective_side_effect, error
from acp_spec.model.enums import Boundary, Mode
from acp_spec.model.errors import Reason
from gateway.engine.commands import Advance, Call, CancelCall, Command, Decide, Poll, StartTimer
from gateway.engine.events import AttemptEnded, Timer
from gateway.engine.states import CallState, Phase, SessionState


def attempts_in_flight(state: SessionState) -> list[tuple[CallState, int]]:
    """The attempts that were in flight when the gateway stopped: call and number."""
    return [
        (call, attempt.number)
        for call in state.open_calls()
        if call.phase is Phase.SENT
        for attempt in call.in_flight
    ]


def lost_attempt(state: SessionState, call: CallState, *, attempt: int, at_ms: int) -> AttemptEnded:
    """The end of an attempt that was in flight, and that nobody will answer for."""
    message = "the gateway stopped while this attempt was in flight"
    lost = error(Reason.UNAVAILABLE, message, boundary=Boundary.GATEWAY)
    return AttemptEnded(
        at_ms=max(at_ms, state.now_ms),
        call_id=call.created.call_id,
        attempt=attempt,
        error=lost,
        side_effect=effective_side_effect(lost, call.created.effect),
        answered=False,
    )


def pending(state: SessionState, at_ms: int) -> list[Command]:
    """The commands that bring a recovered session back to work."""
    if state.terminal:
        return []
    commands: list[Command] = []
    if state.deadline_at_ms and state.paused_since_ms is None:
        commands.append(StartTimer(Timer.DEADLINE, state.deadline_at_ms))
    for call in state.open_calls():
        commands.extend(_of_call(call, at_ms))
    if state.ending is not None:
        commands.append(StartTimer(Timer.GRACE, at_ms + state.opened.cancel_grace_ms))
    if state.opened.mode is Mode.AUTOMATIC or state.ending is not None:
        commands.append(Advance())
    return commands


def _of_call(call: CallState, at_ms: int) -> list[Command]:
    call_id, number = call.created.call_id, call.number
    match call.phase:
        case Phase.READY:
            return [Call(call_id)]
        case Phase.DECIDING:
            return [Decide(call_id, call.trigger)]
        case Phase.BACKOFF:
            return [StartTimer(Timer.BACKOFF, call.resume_at_ms, call_id, number)]
        case Phase.OPERATION:
            return _of_operation(call, at_ms)
        case Phase.SENT | Phase.SETTLED:
            return []


def _of_operation(call: CallState, at_ms: int) -> list[Command]:
    call_id, number = call.created.call_id, call.number
    if call.cancelling:
        return [CancelCall(call_id, number)]
    over_at_ms = max(at_ms, call.operation_since_ms + call.operation_limit_ms)
    return [Poll(call_id, number), StartTimer(Timer.OPERATION, over_at_ms, call_id, number)]
