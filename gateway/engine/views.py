"""A session's state as its clients see it: the view, the manual step, the lineage page."""

import msgspec

from acp_spec.model.enums import StepStatus
from acp_spec.model.payload import ABSENT
from acp_spec.model.session import Opened, SessionView, StepResult, StepView, Times
from acp_spec.model.times import rfc3339
from acp_spec.model.trajectory import Lineage
from gateway.engine.rejections import refused_by_hand
from gateway.engine.states import CallState, SessionState


def opened_view(state: SessionState) -> Opened:
    """The answer to an opening."""
    return Opened(
        session_id=state.session_id,
        lineage_id=state.opened.lineage_id,
        state_version=state.version_text,
        status=state.status,
    )


def session_view(state: SessionState) -> SessionView:
    """The answer to `GET /v1/sessions/{id}`."""
    opened = state.opened
    steps = [StepView(name=name, status=entry.status) for name, entry in state.steps.items()]
    manual = [
        StepView(name=key, status=_manual_status(state, state.calls[call]))
        for key, call in state.manual.items()
    ]
    return SessionView(
        session_id=opened.session_id,
        lineage_id=opened.lineage_id,
        workflow=opened.workflow,
        status=state.status,
        state_version=state.version_text,
        fell_back=state.fell_back,
        output=state.output,
        error=state.error,
        steps=(*steps, *manual),
        deviations=state.deviations,
        mode=opened.mode,
        labels=opened.labels,
        times=times(opened.at_ms, state.deadline_at_ms, ended_at_ms=state.ended_at_ms),
    )


def times(opened_at_ms: int, deadline_at_ms: int, *, ended_at_ms: int | None) -> Times:
    """Milliseconds as the times a client reads; what is not yet, or never, stays out."""
    return Times(
        opened_at=rfc3339(opened_at_ms),
        deadline_at=rfc3339(deadline_at_ms) if deadline_at_ms else "",
        ended_at=rfc3339(ended_at_ms) if ended_at_ms is not None else "",
    )


def step_result(state: SessionState, call: CallState) -> StepResult:
    """The answer to a manual step: RUNNING until its call settles. A plan that may not run is not
    given out: the trajectory has it."""
    status = StepStatus.RUNNING if call.open else _manual_status(state, call)
    return StepResult(
        step_key=call.created.manual_key,
        call_id=call.created.call_id,
        status=status,
        state_version=state.version_text,
        response=call.response if status is StepStatus.SUCCEEDED else ABSENT,
        error=call.error or refused_by_hand(state, call),
    )


def _manual_status(state: SessionState, call: CallState) -> StepStatus:
    return StepStatus.FAILED if refused_by_hand(state, call) else call.status


def lineage(state: SessionState) -> Lineage:
    """What was meant to serve this session, and what did otherwise (R23)."""
    opened = state.opened
    return Lineage(
        intended=opened.pins,
        input_sha256=opened.input_sha256,
        workflow_sha256=opened.workflow_digest,
        policies=opened.policies,
        deviations=state.deviations,
    )


class LineagePage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`GET /v1/lineage/{id}`: the whole context of one run, as JSON."""

    lineage_id: str
    session_id: str
    workflow: str
    status: str
    lineage: Lineage
    served: dict[str, str] = {}
    calls: dict[str, list[str]] = {}
    traceparent: str = ""
    state_version: str = ""
    times: Times | None = None


def lineage_page(state: SessionState) -> LineagePage:
    """The lineage page: intended and served versions, calls per step, where the trace is."""
    served: dict[str, str] = {}
    calls: dict[str, list[str]] = {}
    for call in state.calls.values():
        created = call.created
        calls.setdefault(created.step, []).append(created.call_id)
        attempt = call.attempt
        if attempt is not None and attempt.started is not None:
            started = attempt.started
            version = attempt.ended.served_version if attempt.ended else ""
            served[created.action or created.step] = (
                f"{started.component}@{version or started.version}"
            )
    return LineagePage(
        lineage_id=state.opened.lineage_id,
        session_id=state.session_id,
        workflow=state.opened.workflow,
        status=state.status.value,
        lineage=lineage(state),
        served=served,
        calls=calls,
        traceparent=state.opened.traceparent,
        state_version=state.version_text,
        times=session_view(state).times,
    )
