"""Which calls and sessions say something about a component, and what (R14).

Only what the component itself did counts: a client's fault, a call the gateway did not send or
cut short, and time spent waiting in the gateway say nothing about it. Pure, over events.
"""

from collections.abc import Iterator

from acp_spec.model.enums import Boundary, SessionStatus, StepRole, StepStatus
from acp_spec.model.errors import AcpError, Reason
from gateway.engine.events import AttemptEnded, AttemptStarted, OperationEnded, SessionEnded
from gateway.engine.states import CallState, SessionState
from gateway.governance.sla import Sla
from gateway.governance.sla_window import CallSample, SessionSample

BAR = "sla"
"""The `policy` of a refusal because of a breach."""
_NOT_THEIRS = (Boundary.CLIENT, Boundary.GATEWAY)


def call_sample(
    call: CallState, event: AttemptEnded | OperationEnded, *, sla: Sla
) -> CallSample | None:
    """What this end says; None when it says nothing. `call` is as the event left it."""
    if isinstance(event, OperationEnded):  # its time is its own (SPEC 9.5), its outcome counts
        failed = event.error is not None and _is_theirs(event.error)
        return CallSample(failed=failed) if failed or event.error is None else None
    if event.operation_poll_after_ms is not None:
        return None
    service_ms = service_ms_of(call, event)
    slow = 0 < sla.max_latency_ms < service_ms
    if event.error is None:
        return CallSample(failed=call.status is StepStatus.FAILED, slow=slow)
    if not _is_theirs(event.error) or _had_no_time(call, event, sla=sla):
        return None
    return CallSample(failed=True, slow=slow)


def service_ms_of(call: CallState, event: AttemptEnded) -> int:
    """How long the component worked on it, without any waiting in the gateway."""
    if event.service_ms is not None:
        return event.service_ms
    started = call.started(event.attempt)
    return event.at_ms - started.at_ms if started else 0


def _is_theirs(failure: AcpError) -> bool:
    cancelled = failure.reason == Reason.CANCELLED.value
    return failure.boundary not in _NOT_THEIRS and not cancelled


def _had_no_time(call: CallState, event: AttemptEnded, *, sla: Sla) -> bool:
    """It was cut off before the time that it may take: its session's time had gone by elsewhere."""
    if event.error is None or event.error.reason != Reason.TIMEOUT.value or event.answered:
        return False
    allowed_ms = min(sla.max_latency_ms or call.created.timeout_ms, call.created.timeout_ms)
    started = call.started(event.attempt)
    given_ms = started.timeout_ms if started and event.not_sent else service_ms_of(call, event)
    return given_ms + _CLOCK_MS < allowed_ms


_CLOCK_MS = 5
"""Two clocks and a rounding lie between a timeout and its report."""


def session_samples(
    state: SessionState, event: SessionEnded
) -> Iterator[tuple[str, SessionSample]]:
    """(name@version, sample) for every component that was called. A fallback is blamed on those
    whose calls failed; where none did, planner and executors gave what was not good enough."""
    if event.status is SessionStatus.CANCELLED or any(
        _barred(call) for call in state.calls.values()
    ):
        return
    called: dict[str, bool] = {}
    made: set[str] = set()
    for call in state.calls.values():
        started = next((a.started for a in reversed(call.attempts) if a.started), None)
        if started is not None:
            pin = pin_of(started)
            called[pin] = called.get(pin, False) or call.status is StepStatus.FAILED
            if call.created.role in (StepRole.PLAN, StepRole.EXECUTE):
                made.add(pin)
    blamed = {pin for pin, failed in called.items() if failed} or made
    for pin in called:
        yield pin, SessionSample(fell_back=event.fell_back and pin in blamed)


def pin_of(started: AttemptStarted) -> str:
    """Who served it: versions are judged apart, or a bad canary would bar the good primary."""
    return f"{started.component}@{started.version}"


def _barred(call: CallState) -> bool:
    return any(a.refused is not None and a.refused.policy == BAR for a in call.attempts)
