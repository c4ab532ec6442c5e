"""`step(state, event) -> (state, commands)`: the whole meaning of an event, as a pure function.

`HANDLERS` maps each event type to the function that applies it; a test holds it complete. Handlers
never run an expression, governance or a policy: their results ride on events. A handler may only
write to the fresh state it is given.
"""

from collections.abc import Callable

import msgspec

from acp_spec.bindings.errors import error
from acp_spec.model.enums import Mode, SessionStatus, StepStatus
from acp_spec.model.errors import Reason
from gateway.engine import call_steps, commanded, flow, hedges
from gateway.engine.commands import Advance, CancelCall, Command, End, Record, Reset, StartTimer
from gateway.engine.definition import Workflow
from gateway.engine.events import (
    AnyEvent,
    AttemptEnded,
    AttemptStarted,
    CallCreated,
    CancelRequested,
    Decided,
    Deferred,
    FeedbackGiven,
    FinishRequested,
    Late,
    Opened,
    OperationEnded,
    Refused,
    SessionEnded,
    SessionErased,
    StepEnded,
    SubGoalEnded,
    Timer,
    TimerFired,
)
from gateway.engine.states import (
    CallState,
    Ending,
    FeedbackState,
    Phase,
    SessionState,
    StepState,
    evolve,
)

PLAN, EXECUTION, FEEDBACK = (1, 0, 0), (0, 1, 0), (0, 0, 1)
"""What an event adds to the session's version: one to the counter of its shard."""

Handler = Callable[[SessionState, AnyEvent], list[Command]]


def begin(workflow: Workflow | None, opened: Opened) -> tuple[SessionState, list[Command]]:
    """The first step of every session."""
    state = SessionState(
        workflow=workflow,
        opened=opened,
        now_ms=opened.at_ms,
        sequence=1,
        version=(1, 0, 0),
        budget_left=opened.retry_budget,
        deadline_at_ms=opened.at_ms + opened.deadline_ms if opened.deadline_ms else 0,
        steps={step.name: StepState() for step in workflow.steps} if workflow else {},
        ending=_answered(opened),
    )
    commands: list[Command] = []
    if state.deadline_at_ms:
        commands.append(StartTimer(Timer.DEADLINE, state.deadline_at_ms))
    if opened.mode is Mode.AUTOMATIC:
        commands.append(Advance())
    state.commanded = commanded.after(b"", commands, opened=opened)
    return state, commands


def _answered(opened: Opened) -> Ending | None:
    """The end of a session that the rules of a business fallback answered: it calls nobody."""
    if opened.fallback is None or opened.fallback.probe:
        return None
    failed = opened.fallback_error is not None
    return Ending(
        status=SessionStatus.FAILED if failed else SessionStatus.SUCCEEDED,
        output=opened.fallback_output,
        error=opened.fallback_error,
        fell_back=True,
    )


def step(state: SessionState, event: AnyEvent) -> tuple[SessionState, list[Command]]:
    """The state after `event`, and what is to be done. Raising here is a fault of ours."""
    new = evolve(state)
    return new, apply(new, event)


def apply(state: SessionState, event: AnyEvent) -> list[Command]:
    """`step` within a state that its caller alone holds (from `evolve`): one copy, many events."""
    handler, (plan, execution, feedback) = HANDLERS[type(event)]
    if event.at_ms > state.now_ms:
        state.now_ms = event.at_ms
    state.sequence += 1
    plans, executions, feedbacks = state.version
    state.version = (plans + plan, executions + execution, feedbacks + feedback)
    commands = handler(state, event)
    if not state.terminal:  # the end has written down the hash of all before it
        state.commanded = commanded.after(state.commanded, commands, opened=state.opened)
    return commands


def _timer_fired(state: SessionState, event: TimerFired) -> list[Command]:
    match event.timer:
        case Timer.DEADLINE:
            return _deadline(state)
        case Timer.GRACE:
            return _grace_over(state)
        case Timer.BACKOFF:
            return call_steps.backoff_over(state, event)
        case Timer.POLL:
            return call_steps.poll_due(state, event)
        case Timer.OPERATION:
            return call_steps.operation_timeout(state, event)
        case Timer.HEDGE:
            return hedges.due(state, event)


def _deadline(state: SessionState) -> list[Command]:
    overdue = state.deadline_at_ms and state.now_ms >= state.deadline_at_ms
    if state.terminal or state.paused_since_ms is not None or not overdue:
        return []
    failure = error(
        Reason.TIMEOUT, f"the session's deadline of {state.opened.deadline_ms} ms is over"
    )
    return _end_early(state, Ending(status=SessionStatus.FAILED, error=failure))


def _refused(state: SessionState, event: Refused) -> list[Command]:
    """Nothing is decided about a refusal that ends the session: no attempt follows it."""
    if not event.fall_back or state.ending is not None:
        return call_steps.refused(state, event)
    call_steps.refused(state, event)
    call_steps.settle_failed(state, state.calls[event.call_id])
    return _end_early(state, Ending(status=SessionStatus.SUCCEEDED, fall_back=True))


def _cancel_requested(state: SessionState, event: CancelRequested) -> list[Command]:
    if state.terminal:
        return []
    failure = error(Reason.CANCELLED, f"cancelled by {event.by or 'its client'}")
    return _end_early(state, Ending(status=SessionStatus.CANCELLED, error=failure))


def _end_early(state: SessionState, ending: Ending) -> list[Command]:
    """End as soon as every open call has ended or its grace is over (SPEC 9.4).

    What came first stands: a second reason to end neither asks again nor lengthens the grace.
    """
    if state.ending is not None:
        return []
    state.ending = ending
    commands: list[Command] = []
    for call in state.open_calls():
        if call.phase in (Phase.SENT, Phase.OPERATION):
            changed = msgspec.structs.replace(call, cancelling=True)
            state.calls[call.created.call_id] = changed
            commands += [CancelCall(call.created.call_id, number) for number in _out(call)]
        else:
            call_steps.settle_cancelled(state, call)
    if commands:
        commands.append(StartTimer(Timer.GRACE, state.now_ms + state.opened.cancel_grace_ms))
    return [*commands, Advance()]


def _grace_over(state: SessionState) -> list[Command]:
    commands: list[Command] = []
    for call in state.open_calls():
        if call.phase is Phase.SENT:
            commands += [Reset(call.created.call_id, number) for number in _out(call)]
        elif call.phase is Phase.OPERATION:
            call_steps.settle_cancelled(state, call)
    return [*commands, Advance()]


def _out(call: CallState) -> list[int]:
    """The attempts that a cancel or a reset goes to: two while a hedge runs."""
    return [attempt.number for attempt in call.in_flight] or [call.number]


def _finish_requested(state: SessionState, event: FinishRequested) -> list[Command]:
    if state.terminal:
        return []
    return _end_early(state, Ending(status=SessionStatus.SUCCEEDED, output=event.output))


def _feedback_given(state: SessionState, event: FeedbackGiven) -> list[Command]:
    feedback = event.feedback
    target = feedback.target
    key = (target.call_id, target.step, target.loop, feedback.kind.value, feedback.author)
    entry = FeedbackState(given=event, version=state.version_text)
    state.feedback_log.append(entry)
    before = state.feedback.get(key)
    # Last writer wins by the author's time; equal times: the one that came later (SPEC section 6).
    if before is None or before.given.feedback.time <= feedback.time:
        state.feedback[key] = entry
    return [Record()] if state.terminal else []


def _session_ended(state: SessionState, event: SessionEnded) -> list[Command]:
    state.status = event.status
    state.output = event.output
    state.error = event.error
    state.fell_back = event.fell_back
    state.ended_at_ms = event.at_ms
    for name, entry in state.steps.items():
        if entry.status in (StepStatus.PENDING, StepStatus.RUNNING):
            status = StepStatus.SKIPPED if entry.status is StepStatus.PENDING else _over(event)
            state.steps[name] = msgspec.structs.replace(entry, status=status)
    return [Record(), End()]


def _over(event: SessionEnded) -> StepStatus:
    cancelled = event.status is SessionStatus.CANCELLED
    return StepStatus.CANCELLED if cancelled else StepStatus.FAILED


def _session_erased(state: SessionState, event: SessionErased) -> list[Command]:
    state.erased = True
    return []


def _unexpected(state: SessionState, event: AnyEvent) -> list[Command]:
    raise AssertionError(f"{type(event).__name__} opens a session; it cannot come later")


HANDLERS: dict[type, tuple[Callable[..., list[Command]], tuple[int, int, int]]] = {
    Opened: (_unexpected, PLAN),
    StepEnded: (flow.step_ended, PLAN),
    SubGoalEnded: (flow.sub_goal_ended, PLAN),
    CancelRequested: (_cancel_requested, PLAN),
    FinishRequested: (_finish_requested, PLAN),
    SessionEnded: (_session_ended, PLAN),
    SessionErased: (_session_erased, PLAN),
    TimerFired: (_timer_fired, EXECUTION),
    CallCreated: (call_steps.call_created, EXECUTION),
    Deferred: (call_steps.deferred, EXECUTION),
    Refused: (_refused, EXECUTION),
    AttemptStarted: (call_steps.attempt_started, EXECUTION),
    AttemptEnded: (call_steps.attempt_ended, EXECUTION),
    OperationEnded: (call_steps.operation_ended, EXECUTION),
    Late: (call_steps.late, EXECUTION),
    Decided: (call_steps.decided, EXECUTION),
    FeedbackGiven: (_feedback_given, FEEDBACK),
}
