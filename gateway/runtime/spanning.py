"""Events as spans: a session, its steps below it, the attempts below those (R23).

Values only: spans are made of the journal's events and the state they left, so one that ended after
a crash is the same span as without. Ids hang on session, step, loop, call and attempt. Nothing here
is asked unless the session is recorded, and nothing here sends.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from acp_spec.model.enums import Mode, SessionStatus, StepRole, StepStatus
from acp_spec.model.errors import AcpError
from gateway.engine.events import (
    AttemptEnded,
    AttemptStarted,
    CallCreated,
    Late,
    OperationEnded,
    SessionEnded,
    StepEnded,
)
from gateway.engine.sla_samples import pin_of
from gateway.engine.states import CallState, SessionState
from gateway.runtime.context import attempt_span
from gateway.telemetry import genai
from gateway.telemetry.genai import Fact
from gateway.telemetry.instruments import RECORDED
from gateway.telemetry.spans import (
    AttributeValue,
    SpanKind,
    SpanRecord,
    TraceParent,
    parse_traceparent,
)

NS_PER_MS = 1_000_000

Told = dict[str, AttributeValue]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """What the spans below a session differ in; `times` in milliseconds, from and to."""

    at: TraceParent
    times: tuple[int, int]
    told: Told
    links: tuple[TraceParent, ...] = ()
    error: str = ""


def recorded(state: SessionState) -> TraceParent | None:
    """The session's span if it is recorded. Most are not: the flag is looked at before parsing."""
    header = state.opened.traceparent
    return parse_traceparent(header) if header.endswith(RECORDED) else None


def step_span(session: TraceParent, step: str, *, loop: int) -> TraceParent:
    """One pass of a step: a step ends once in each loop."""
    return session.child("step", step, str(loop))


def of_session(
    state: SessionState, event: SessionEnded, *, session: TraceParent
) -> Iterator[SpanRecord]:
    """The session itself, and the steps that ended with it instead of by themselves."""
    passes: dict[tuple[str, int], list[CallState]] = {}
    for call in state.calls.values():
        passes.setdefault((call.created.step, call.created.loop), []).append(call)
    for step, loop, status in _open_passes(state):
        calls = passes[step, loop]
        times = (calls[0].created.at_ms, _last_ms(calls, event.at_ms))
        error = next((call.error for call in calls if call.error is not None), None)
        part = _pass(session, (step, loop, status), times=times, error=error)
        yield _of_step(state, part, session=session)
    opened = state.opened
    name, _, version = opened.workflow.partition("@")
    operation = genai.OPERATIONS[genai.SESSION]
    reason = event.error.reason if event.error else ""
    failed = reason or event.status.value
    yield SpanRecord(
        name=genai.span_name(operation, name),
        at=session,
        parent_span_id=opened.caller_span,
        kind=SpanKind.SERVER,
        start_ns=opened.at_ms * NS_PER_MS,
        end_ns=event.at_ms * NS_PER_MS,
        attributes=_listed(
            genai.attributes(
                {
                    Fact.OPERATION: operation,
                    Fact.AGENT: name,
                    Fact.AGENT_VERSION: version,
                    Fact.CONVERSATION: opened.session_key or opened.session_id,
                    Fact.ERROR: failed if event.status is SessionStatus.FAILED else None,
                }
            ),
            _ids(state),
            {
                "acp.workflow": opened.workflow,
                "acp.mode": opened.mode.value,
                "acp.status": event.status.value,
                "acp.fell_back": event.fell_back,
            },
        ),
        error=failed if event.status is SessionStatus.FAILED else "",
    )


def of_step(state: SessionState, event: StepEnded, *, session: TraceParent) -> SpanRecord:
    """A pass of a workflow's step, from its first call to its end."""
    loop = _loop_of(state, event)
    calls = _calls_of(state, event.step, loop=loop)
    times = (calls[0].created.at_ms if calls else event.at_ms, event.at_ms)
    part = _pass(session, (event.step, loop, event.status), times=times, error=event.error)
    return _of_step(state, part, session=session)


def of_attempt(
    state: SessionState, event: AttemptEnded, *, session: TraceParent, outcome: str
) -> SpanRecord | None:
    """An attempt, from its admission to its one end; None of one that never began."""
    call = state.calls[event.call_id]
    started = call.started(event.attempt)
    if started is None:
        return None
    failed = outcome if event.error is not None and not event.superseded_by else ""
    about: Told = {
        "acp.attempt": event.attempt,
        "acp.component": pin_of(started),
        "acp.instance": started.instance,
        "acp.wait_ms": started.wait_ms,
        "acp.outcome": outcome,
        "acp.hedge": started.hedge,
        "acp.side_effect": event.side_effect.value,
    }
    part = _Part(
        at=attempt_span(state.opened.traceparent, event.call_id, attempt=event.attempt),
        times=(started.at_ms, event.at_ms),
        told=about | _served(call.created, started, event=event, failed=failed),
        links=_beside(state, started, superseded_by=event.superseded_by),
        error=failed,
    )
    return _of_call(state, call.created, part=part, session=session)


def of_operation(
    state: SessionState, event: OperationEnded, *, session: TraceParent
) -> SpanRecord | None:
    """The long work that an attempt left running, from that attempt's end to its own."""
    call = state.calls[event.call_id]
    attempt = call.numbered(event.attempt)
    if attempt is None or attempt.ended is None:
        return None
    asked = attempt_span(state.opened.traceparent, event.call_id, attempt=event.attempt)
    reason = event.error.reason if event.error else ""
    about: Told = {
        "acp.attempt": event.attempt,
        "acp.operation": True,
        "acp.ended_by": event.by,
    }
    part = _Part(
        at=session.child(event.call_id, str(event.attempt), "operation"),
        times=(attempt.ended.at_ms, event.at_ms),
        told=about | genai.attributes({Fact.ERROR: reason}),
        links=(asked,),
        error=reason,
    )
    return _of_call(state, call.created, part=part, session=session)


def of_late(state: SessionState, event: Late, *, session: TraceParent) -> SpanRecord:
    """An answer that came when its attempt was over: a moment, linked to the attempt it is of."""
    call = state.calls[event.call_id]
    asked = attempt_span(state.opened.traceparent, event.call_id, attempt=event.attempt)
    part = _Part(
        at=session.child(event.call_id, str(event.attempt), "late", str(state.sequence)),
        times=(event.at_ms, event.at_ms),
        told={
            "acp.attempt": event.attempt,
            "acp.late": True,
            "acp.side_effect": event.side_effect.value,
        },
        links=(asked,),
    )
    return _of_call(state, call.created, part=part, session=session)


def _of_call(
    state: SessionState, created: CallCreated, *, part: _Part, session: TraceParent
) -> SpanRecord:
    about: Told = {
        "acp.call_id": created.call_id,
        "acp.step": created.step,
        "acp.loop": created.loop,
    }
    operation = genai.OPERATIONS[created.role.value]
    return SpanRecord(
        name=genai.span_name(operation, created.action or created.component),
        at=part.at,
        parent_span_id=step_span(session, created.step, loop=created.loop).span_id,
        kind=SpanKind.CLIENT,
        start_ns=part.times[0] * NS_PER_MS,
        end_ns=max(part.times) * NS_PER_MS,
        attributes=_listed(_ids(state), about, part.told),
        links=part.links,
        error=part.error,
    )


def _served(
    created: CallCreated, started: AttemptStarted, *, event: AttemptEnded, failed: str
) -> Told:
    """What the conventions want to know of a call: who served what, with which model and tokens."""
    tool = created.role is StepRole.EXECUTE
    models = {one.model for one in event.llm_calls if one.model}
    model = models.pop() if len(models) == 1 else None
    asked = [len(one.prompt_token_ids) for one in event.llm_calls]
    answered = [len(one.response_token_ids) for one in event.llm_calls]
    told = genai.attributes(
        {
            Fact.OPERATION: genai.OPERATIONS[created.role.value],
            Fact.PROVIDER: genai.PROVIDER,
            Fact.AGENT: None if tool else started.component,
            Fact.AGENT_VERSION: None if tool else event.served_version or started.version,
            Fact.TOOL: created.action if tool else None,
            Fact.TOOL_TYPE: genai.TOOL_TYPE if tool else None,
            Fact.TOOL_CALL: created.call_id if tool else None,
            Fact.MODEL_ASKED: model,
            Fact.MODEL_ANSWERED: model,
            Fact.INPUT_TOKENS: sum(asked) if asked and all(asked) else None,
            Fact.OUTPUT_TOKENS: sum(answered) if answered and all(answered) else None,
            Fact.ERROR: failed,
        }
    )
    if event.usage is not None:
        told["acp.usage.tokens"] = event.usage.tokens
        told["acp.usage.cost_micros"] = event.usage.cost_micros
    return told


def _pass(
    session: TraceParent,
    which: tuple[str, int, StepStatus],
    *,
    times: tuple[int, int],
    error: AcpError | None,
) -> _Part:
    name, loop, status = which
    failed = (error.reason if error else status.value) if status is StepStatus.FAILED else ""
    about: Told = {"acp.step": name, "acp.loop": loop, "acp.status": status.value}
    return _Part(
        at=step_span(session, name, loop=loop),
        times=times,
        told=about | genai.attributes({Fact.ERROR: failed}),
        error=failed,
    )


def _of_step(state: SessionState, part: _Part, *, session: TraceParent) -> SpanRecord:
    return SpanRecord(
        name=genai.span_name("step", str(part.told["acp.step"])),
        at=part.at,
        parent_span_id=session.span_id,
        kind=SpanKind.INTERNAL,
        start_ns=part.times[0] * NS_PER_MS,
        end_ns=max(part.times) * NS_PER_MS,
        attributes=_listed(_ids(state), part.told),
        error=part.error,
    )


def _beside(
    state: SessionState, started: AttemptStarted, *, superseded_by: int
) -> tuple[TraceParent, ...]:
    """A hedge is linked to the attempt it runs beside, and what lost to the one that won."""
    others = {superseded_by} if superseded_by else set()
    if started.hedge:
        others.add(started.attempt - 1)
    header = state.opened.traceparent
    return tuple(attempt_span(header, started.call_id, attempt=one) for one in sorted(others))


def _loop_of(state: SessionState, event: StepEnded) -> int:
    """The loop that the step ended in: its end may have begun the next one already."""
    if event.replan:
        return state.loop - 1
    judged = state.reflections[-1] if state.reflections else None
    if judged is not None and judged.step == event.step and event.status is StepStatus.SUCCEEDED:
        return judged.loop
    return state.loop


def _open_passes(state: SessionState) -> Iterator[tuple[str, int, StepStatus]]:
    """Steps with calls but without an end of their own, as the session's end left them.

    Steps end in order, so of a workflow's only the one it stands at can be broken off. A client's
    steps (MANUAL) never end by themselves; each is one call.
    """
    if state.opened.mode is Mode.MANUAL:
        for call in state.calls.values():
            yield call.created.step, call.created.loop, call.status
        return
    step = state.current_step
    if step is None or not _calls_of(state, step.name, loop=state.loop):
        return
    entry = state.steps[step.name]
    broken_off = entry.status is StepStatus.FAILED and entry.error is None
    if broken_off or entry.status is StepStatus.CANCELLED:
        yield step.name, state.loop, entry.status


def _calls_of(state: SessionState, step: str, *, loop: int) -> list[CallState]:
    found = [call for call in state.calls.values() if call.created.step == step]
    return [call for call in found if call.created.loop == loop]


def _last_ms(calls: Iterable[CallState], at_ms: int) -> int:
    """When the last of these was over; `at_ms` if one is not."""
    ends = [one.ended.at_ms for call in calls for one in call.attempts if one.ended is not None]
    return max(ends) if ends and not any(call.open for call in calls) else at_ms


def _ids(state: SessionState) -> Told:
    opened = state.opened
    return {"acp.session_id": opened.session_id, "acp.lineage_id": opened.lineage_id}


def _listed(*parts: Told) -> tuple[tuple[str, AttributeValue], ...]:
    return tuple(item for part in parts for item in part.items())
