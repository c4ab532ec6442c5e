"""What an event does to one call: its attempts, its waiting, its one outcome (SPEC 9.1-9.5).

A call settles exactly once. Budget is leased with an attempt and comes back with the answer; a lost
answer has spent all of it.
"""

import msgspec

from acp_spec.bindings.errors import error
from acp_spec.model.enums import SessionStatus, SideEffect, StepStatus
from acp_spec.model.errors import Reason
from acp_spec.model.recovery import Option, Trigger
from gateway.engine import hedges, outcomes, recovery, side_effects
from gateway.engine.commands import (
    Advance,
    Call,
    CancelCall,
    Command,
    Decide,
    Poll,
    Record,
    Send,
    StartTimer,
)
from gateway.engine.events import (
    AttemptEnded,
    AttemptStarted,
    CallCreated,
    Decided,
    Deferred,
    Late,
    OperationEnded,
    Refused,
    Timer,
    TimerFired,
)
from gateway.engine.states import (
    AttemptState,
    CallState,
    Phase,
    SessionState,
    StepState,
    SubGoalState,
)

replace = msgspec.structs.replace


def call_created(state: SessionState, event: CallCreated) -> list[Command]:
    call = CallState(created=event, queued_at_ms=event.at_ms)
    state.calls[event.call_id] = call
    if event.manual_key:
        state.manual = {**state.manual, event.manual_key: event.call_id}
    else:
        _join_step(state, event)
    if event.reused_from:
        return _take_over(state, call)
    return [Call(event.call_id)]


def _join_step(state: SessionState, event: CallCreated) -> None:
    before = state.steps.get(event.step, StepState())
    sub_goals = {**before.sub_goals, event.sub_goal: SubGoalState(call_id=event.call_id)}
    state.steps[event.step] = replace(before, status=StepStatus.RUNNING, sub_goals=sub_goals)


def _take_over(state: SessionState, call: CallState) -> list[Command]:
    """A later loop asks for what was done already: that result stands, nothing is sent (9.1)."""
    source = state.calls[call.created.reused_from]
    settled = replace(
        call,
        phase=Phase.SETTLED,
        status=source.status,
        response=source.response,
        output=source.output,
        error=source.error,
        side_effect=source.side_effect,
    )
    outcomes.apply(state, settled)
    return [Advance()]


def deferred(state: SessionState, event: Deferred) -> list[Command]:
    return []


def refused(state: SessionState, event: Refused) -> list[Command]:
    call = state.calls[event.call_id]
    assert call.phase is Phase.READY, "only what waits to be sent is refused"
    attempt = AttemptState(
        number=event.attempt,
        queued_at_ms=call.queued_at_ms,
        refused=event,
        side_effect=SideEffect.NONE,
        budget_left=state.budget_left,
    )
    return _failed(
        state,
        replace(call, attempts=(*call.attempts, attempt), stands_on=0),
        trigger=Trigger.REFUSED,
    )


def attempt_started(state: SessionState, event: AttemptStarted) -> list[Command]:
    call = state.calls[event.call_id]
    if event.hedge:
        return hedges.started(state, call, event=event)
    assert call.phase is Phase.READY, "only what waits to be sent is started"
    state.budget_left -= event.lease
    if event.deviation is not None:
        state.deviations = (*state.deviations, event.deviation)
    attempt = AttemptState(
        number=event.attempt,
        queued_at_ms=call.queued_at_ms,
        started=event,
        budget_left=state.budget_left,
    )
    state.calls[event.call_id] = replace(
        call,
        phase=Phase.SENT,
        attempts=(*call.attempts, attempt),
        first_sent_ms=event.at_ms if call.first_sent_ms is None else call.first_sent_ms,
        stands_on=0,
    )
    return [Send(event.call_id, event.attempt), *hedges.timer(state, event)]


def attempt_ended(state: SessionState, event: AttemptEnded) -> list[Command]:
    call = state.calls[event.call_id]
    attempt = call.numbered(event.attempt)
    assert call.phase is Phase.SENT, "an attempt ends once"
    assert attempt is not None, "only an attempt that was started ends"
    assert attempt.started is not None, "what was refused never was out"
    assert attempt.ended is None, "an attempt ends once"
    ended = replace(attempt, ended=event, side_effect=event.side_effect)
    spent = _return_lease(state, attempt, event=event)
    attempts = call.with_attempt(ended)
    call = replace(
        call,
        attempts=attempts,
        stands_on=0 if ended.number == attempts[-1].number else ended.number,
        side_effect=_over(attempts),
        retries_left=max(0, call.retries_left - spent),
    )
    beside = hedges.goes_on(state, call, event=event)
    if beside is not None:
        return beside
    if event.error is not None:
        return _failed(state, call, trigger=Trigger.FAILED)
    if event.operation_poll_after_ms is not None:
        return _accepted(state, call, poll_after_ms=event.operation_poll_after_ms)
    return _succeeded(state, call, response=event.response)


def _return_lease(state: SessionState, attempt: AttemptState, *, event: AttemptEnded) -> int:
    """Give back what was not spent; an attempt that nobody answered spent its whole lease."""
    lease = attempt.started.lease if attempt.started else 0
    if event.not_sent:
        spent = 0
    elif event.answered:
        spent = min(lease, max(0, event.retries_spent))
    else:
        spent = lease
    state.budget_left += lease - spent
    return spent


def _over(attempts: tuple[AttemptState, ...]) -> SideEffect:
    """The side effect of a call over its attempts."""
    if len(attempts) == 1:  # of most calls
        return attempts[0].side_effect
    return side_effects.joined(attempt.side_effect for attempt in attempts)


def _failed(state: SessionState, call: CallState, *, trigger: Trigger) -> list[Command]:
    if state.ending is not None:
        settle_cancelled(state, call)
        return [Advance()]
    state.calls[call.created.call_id] = replace(call, phase=Phase.DECIDING, trigger=trigger)
    return [Decide(call.created.call_id, trigger)]


def _accepted(state: SessionState, call: CallState, *, poll_after_ms: int) -> list[Command]:
    """A long operation has its own limit; meanwhile the session's clock stands still (9.5)."""
    call_id = call.created.call_id
    state.calls[call_id] = replace(call, phase=Phase.OPERATION, operation_since_ms=state.now_ms)
    if state.paused_since_ms is None:
        state.paused_since_ms = state.now_ms
    state.status = SessionStatus.WAITING
    over_at_ms = state.now_ms + call.operation_limit_ms
    commands: list[Command] = [
        StartTimer(Timer.POLL, state.now_ms + max(1, poll_after_ms), call_id, call.number),
        StartTimer(Timer.OPERATION, over_at_ms, call_id, call.number),
    ]
    if call.cancelling:  # the cancel met a call; what runs now is an operation
        commands.append(CancelCall(call_id, call.number))
    return commands


def _succeeded(state: SessionState, call: CallState, *, response: msgspec.Raw) -> list[Command]:
    outcomes.settle(state, call, response=response)
    return [Advance()]


def operation_ended(state: SessionState, event: OperationEnded) -> list[Command]:
    call = state.calls[event.call_id]
    if call.phase is not Phase.OPERATION:
        return []
    accepted = call.attempt
    assert accepted is not None, "an operation was accepted by an attempt"
    attempts = call.with_attempt(replace(accepted, operation=event, side_effect=event.side_effect))
    call = replace(call, attempts=attempts, side_effect=_over(attempts), phase=Phase.SENT)
    state.calls[event.call_id] = call
    commands = _resume(state)
    if event.error is None:
        return [*commands, *_succeeded(state, call, response=event.response)]
    if state.ending is not None:
        settle_cancelled(state, call)
        return [*commands, Advance()]
    settle_failed(state, call)
    return [*commands, Advance()]


def _resume(state: SessionState) -> list[Command]:
    """When the last operation is over, the session's clock runs again."""
    waiting = any(call.phase is Phase.OPERATION for call in state.calls.values())
    if waiting or state.paused_since_ms is None:
        return []
    stood_still_ms = state.now_ms - state.paused_since_ms
    state.paused_since_ms = None
    state.status = SessionStatus.RUNNING
    if not state.deadline_at_ms:
        return []
    state.deadline_at_ms += stood_still_ms
    return [StartTimer(Timer.DEADLINE, state.deadline_at_ms)]


def poll_due(state: SessionState, event: TimerFired) -> list[Command]:
    call = state.calls.get(event.call_id)
    if call is None or call.phase is not Phase.OPERATION:
        return []
    return [Poll(event.call_id, call.number)]


def operation_timeout(state: SessionState, event: TimerFired) -> list[Command]:
    call = state.calls.get(event.call_id)
    if call is None or call.phase is not Phase.OPERATION:
        return []
    message = f"the operation did not end within {call.operation_limit_ms} ms"
    failure = error(Reason.TIMEOUT, message, side_effect=SideEffect.UNKNOWN)
    ended = OperationEnded(
        at_ms=event.at_ms,
        call_id=event.call_id,
        attempt=call.number,
        error=failure,
        side_effect=SideEffect.UNKNOWN,
        by="timeout",
    )
    return operation_ended(state, ended)


def late(state: SessionState, event: Late) -> list[Command]:
    """What a late answer may change: an UNKNOWN side effect becomes known; no outcome (9.3)."""
    call = state.calls[event.call_id]
    attempts = tuple(
        replace(attempt, late=event, side_effect=_sharper(attempt.side_effect, event.side_effect))
        if attempt.number == event.attempt
        else attempt
        for attempt in call.attempts
    )
    state.calls[event.call_id] = replace(call, attempts=attempts, side_effect=_over(attempts))
    return [Record()] if state.terminal else []


def _sharper(before: SideEffect, now: SideEffect) -> SideEffect:
    return now if before is SideEffect.UNKNOWN else before


def decided(state: SessionState, event: Decided) -> list[Command]:
    call = state.calls[event.call_id]
    assert call.phase is Phase.DECIDING, "a decision answers a failed or refused attempt"
    decision = event.decision
    state.decisions = (*state.decisions, decision)
    call = replace(call, decisions=call.decisions + 1)
    if decision.chosen is Option.GIVE_UP:
        settle_failed(state, call)
        return [Advance()]
    chosen = recovery.chosen(decision)
    state.budget_left -= 1
    resume_at_ms = state.now_ms + chosen.wait_ms
    call = replace(
        call,
        phase=Phase.BACKOFF,
        number=call.number + 1,
        retries_left=call.retries_left - 1,
        resume_at_ms=resume_at_ms,
        queued_at_ms=resume_at_ms,
    )
    state.calls[event.call_id] = call
    return [StartTimer(Timer.BACKOFF, resume_at_ms, event.call_id, call.number)]


def backoff_over(state: SessionState, event: TimerFired) -> list[Command]:
    call = state.calls.get(event.call_id)
    if call is None or call.phase is not Phase.BACKOFF or call.number != event.attempt:
        return []
    state.calls[event.call_id] = replace(call, phase=Phase.READY, queued_at_ms=state.now_ms)
    return [Call(event.call_id)]


def settle_failed(state: SessionState, call: CallState) -> None:
    """The call's one outcome is the error of its last attempt."""
    settled = replace(
        call,
        phase=Phase.SETTLED,
        status=StepStatus.FAILED,
        error=side_effects.of_call(outcomes.last_error(call), call),
    )
    outcomes.apply(state, settled)


def settle_cancelled(state: SessionState, call: CallState) -> None:
    """The session ends before this call had an outcome of its own."""
    failure = outcomes.last_error(call, error(Reason.CANCELLED, "the session ended before this"))
    settled = replace(
        call,
        phase=Phase.SETTLED,
        status=StepStatus.CANCELLED,
        error=side_effects.of_call(failure, call),
    )
    outcomes.apply(state, settled)
