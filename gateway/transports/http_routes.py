"""How an HTTP request becomes an operation's request message: one builder per route of the wire.

The path gives ids, the query filters, the headers `Prefer`, `Last-Event-ID` and the call-back's
token, the body the rest. Builders only assemble; what the values mean is checked where they are
read.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

import msgspec

from acp_spec.bindings.errors import invalid_request
from acp_spec.bindings.fields import AUTHORIZATION, LAST_EVENT_ID, PREFER
from acp_spec.bindings.routes import GATEWAY, Route
from acp_spec.codec import json
from acp_spec.model import gateway_calls as calls
from acp_spec.model.session import (
    CompleteOperation,
    Feedback,
    FinishRequest,
    Heartbeat,
    ManualStep,
    OpenSession,
    RegisterRequest,
)
from gateway.transports.auth import bearer
from gateway.transports.http_request import (
    HttpRequest,
    count,
    preferred_wait_s,
    query_values,
)

T = TypeVar("T", bound=msgspec.Struct)


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpLimits:
    """What a request may ask of this gateway."""

    body_bytes: int
    wait_s: float


Builder = Callable[[HttpRequest, HttpLimits], msgspec.Struct]


def last_event_id(request: HttpRequest) -> int:
    """Where a stream resumes; 0 without the header."""
    return count(request.header(LAST_EVENT_ID), f"header {LAST_EVENT_ID}")


def _body(type_: type[T], request: HttpRequest, *, limits: HttpLimits) -> T:
    return json.decode_request(
        type_, request.body, max_bytes=limits.body_bytes, lower_case_enums=True
    )


def _text_body(request: HttpRequest) -> str:
    """A workflow file; other encodings than UTF-8 are told apart from bad YAML."""
    try:
        text = request.body.decode()
    except UnicodeDecodeError as problem:
        raise invalid_request(f"body: is not UTF-8 (byte {problem.start})") from None
    if not text.strip():
        raise invalid_request("body: is empty; send a workflow file in YAML or JSON")
    return text


def _wait_s(request: HttpRequest, limits: HttpLimits) -> int:
    return int(preferred_wait_s(request.header(PREFER), limits.wait_s))


def _empty(request: HttpRequest, limits: HttpLimits) -> calls.Empty:
    return calls.Empty()


def _component(request: HttpRequest, limits: HttpLimits) -> calls.ComponentIdRequest:
    return calls.ComponentIdRequest(component_id=request.params[0])


def _register(request: HttpRequest, limits: HttpLimits) -> RegisterRequest:
    return _body(RegisterRequest, request, limits=limits)


def _heartbeat(request: HttpRequest, limits: HttpLimits) -> calls.HeartbeatRequest:
    beat = _body(Heartbeat, request, limits=limits)
    return calls.HeartbeatRequest(component_id=request.params[0], signals=beat.signals)


def _versions(request: HttpRequest, limits: HttpLimits) -> calls.ListWorkflowsRequest:
    return calls.ListWorkflowsRequest(name=request.params[0] if request.params else "")


def _workflow(request: HttpRequest, limits: HttpLimits) -> calls.WorkflowRequest:
    name, version = request.params
    return calls.WorkflowRequest(name=name, version=version)


def _put_workflow(request: HttpRequest, limits: HttpLimits) -> calls.PutWorkflowRequest:
    name, version = request.params
    return calls.PutWorkflowRequest(name=name, version=version, source=_text_body(request))


def _validate(request: HttpRequest, limits: HttpLimits) -> calls.ValidateWorkflowRequest:
    return calls.ValidateWorkflowRequest(source=_text_body(request))


def _open(request: HttpRequest, limits: HttpLimits) -> calls.OpenSessionRequest:
    return calls.OpenSessionRequest(
        session=_body(OpenSession, request, limits=limits), wait_s=_wait_s(request, limits)
    )


def _get_session(request: HttpRequest, limits: HttpLimits) -> calls.GetSessionRequest:
    values = query_values(request.query, GATEWAY["get_session"].query) if request.query else {}
    return calls.GetSessionRequest(
        session_id=request.params[0], min_version=values.get("min_version", "")
    )


def _list_sessions(request: HttpRequest, limits: HttpLimits) -> calls.ListSessionsRequest:
    values = query_values(request.query, GATEWAY["list_sessions"].query)
    return calls.ListSessionsRequest(
        status=values.get("status", ""),
        workflow=values.get("workflow", ""),
        after=values.get("after", ""),
        limit=count(values.get("limit", ""), "query limit"),
    )


def _session(request: HttpRequest, limits: HttpLimits) -> calls.SessionIdRequest:
    return calls.SessionIdRequest(session_id=request.params[0])


def _events(request: HttpRequest, limits: HttpLimits) -> calls.StreamEventsRequest:
    return calls.StreamEventsRequest(
        session_id=request.params[0], last_event_id=last_event_id(request)
    )


def _step(request: HttpRequest, limits: HttpLimits) -> calls.ExecuteStepRequest:
    return calls.ExecuteStepRequest(
        session_id=request.params[0],
        step=_body(ManualStep, request, limits=limits),
        wait_s=_wait_s(request, limits),
    )


def _get_step(request: HttpRequest, limits: HttpLimits) -> calls.GetStepRequest:
    session_id, step_key = request.params
    return calls.GetStepRequest(session_id=session_id, step_key=step_key)


def _finish(request: HttpRequest, limits: HttpLimits) -> calls.FinishSessionRequest:
    finish = _body(FinishRequest, request, limits=limits)
    return calls.FinishSessionRequest(session_id=request.params[0], output=finish.output)


def _feedback(request: HttpRequest, limits: HttpLimits) -> calls.GiveFeedbackRequest:
    return calls.GiveFeedbackRequest(
        session_id=request.params[0], feedback=_body(Feedback, request, limits=limits)
    )


def _lineage(request: HttpRequest, limits: HttpLimits) -> calls.LineageRequest:
    return calls.LineageRequest(lineage_id=request.params[0])


def _complete(request: HttpRequest, limits: HttpLimits) -> calls.CompleteOperationRequest:
    return calls.CompleteOperationRequest(
        call_id=request.params[0],
        token=bearer(request.header(AUTHORIZATION)),
        result=_body(CompleteOperation, request, limits=limits),
    )


BUILDERS: Final[Mapping[str, Builder]] = {
    "register_component": _register,
    "list_components": _empty,
    "get_component": _component,
    "remove_component": _component,
    "heartbeat_component": _heartbeat,
    "drain_component": _component,
    "validate_workflow": _validate,
    "list_workflows": _versions,
    "list_workflow_versions": _versions,
    "put_workflow": _put_workflow,
    "get_workflow": _workflow,
    "activate_workflow": _workflow,
    "open_session": _open,
    "list_sessions": _list_sessions,
    "get_session": _get_session,
    "delete_session": _session,
    "stream_events": _events,
    "execute_step": _step,
    "get_step": _get_step,
    "finish_session": _finish,
    "give_feedback": _feedback,
    "cancel_session": _session,
    "get_trajectory": _session,
    "get_lineage": _lineage,
    "complete_operation": _complete,
}


def body_of(route: Route, value: msgspec.Struct) -> bytes:
    """The HTTP body for an operation's answer; some answers wear an envelope only over gRPC."""
    if route.status == 204:
        return b""
    if isinstance(value, calls.OpenSessionResponse):
        inner = value.opened or value.session
        assert inner is not None, "an opened session has either form"
        return json.encode(inner)
    if isinstance(value, calls.Document):
        return bytes(value.json)
    return json.encode(value)
