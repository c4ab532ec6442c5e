"""The operations of the gateway's own API, once for both bindings (SPEC section 6).

Each takes the gRPC request message of its route and gives the gRPC response message; `Done` adds
what only HTTP says (a status, a place). No header, no JSON and no protobuf is known here.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Final

import msgspec

from acp_spec.bindings.errors import invalid_request
from acp_spec.bindings.routes import GATEWAY
from acp_spec.model import gateway_calls as calls
from acp_spec.model.enums import SessionStatus, StepStatus
from acp_spec.model.payload import payload
from acp_spec.model.session import FinishRequest, Opened, SessionPage, SessionView
from gateway.runtime.principal import NO_TRACE, Principal, Trace
from gateway.transports.ports import Services
from gateway.transports.streaming import close_events

PAGE_LIMIT_DEFAULT: Final = 50
# A page is built in one go; more rows than this would hold the loop for too long.
PAGE_LIMIT_MAX: Final = 500


class Caller(msgspec.Struct, frozen=True, gc=False):
    """Who asks whom, and within which trace."""

    services: Services
    principal: Principal
    trace: Trace = NO_TRACE


class Done(msgspec.Struct, frozen=True, gc=False):
    """An answer. `status`: the HTTP status (0: the route's own); `location`: a path, or nothing."""

    value: msgspec.Struct
    status: int = 0
    location: str = ""


Operation = Callable[..., Awaitable[Done]]
"""`operation(caller, request)`; `request` is the route's `rpc_in`."""

EMPTY: Final = calls.Empty()


async def open_session(caller: Caller, request: calls.OpenSessionRequest) -> Done:
    answer, created = await caller.services.sessions.open(
        request.session, caller.principal, wait_s=request.wait_s, trace=caller.trace
    )
    location = f"/v1/sessions/{answer.session_id}"
    if isinstance(answer, Opened):
        response = calls.OpenSessionResponse(opened=answer)
        return Done(response, 201 if created else 200, location)
    return Done(calls.OpenSessionResponse(session=answer), 200, location)


async def get_session(caller: Caller, request: calls.GetSessionRequest) -> Done:
    view = await caller.services.sessions.view(
        request.session_id, caller.principal, min_version=request.min_version
    )
    return Done(view)


async def list_sessions(caller: Caller, request: calls.ListSessionsRequest) -> Done:
    if request.limit > PAGE_LIMIT_MAX:
        raise invalid_request(f"limit: at most {PAGE_LIMIT_MAX} sessions fit one page")
    page: SessionPage = await caller.services.sessions.page(
        caller.principal,
        status=session_status(request.status),
        workflow=request.workflow,
        after=request.after,
        limit=request.limit or PAGE_LIMIT_DEFAULT,
    )
    return Done(page)


async def execute_step(caller: Caller, request: calls.ExecuteStepRequest) -> Done:
    result = await caller.services.sessions.manual_step(
        request.session_id, request.step, principal=caller.principal, wait_s=request.wait_s
    )
    location = f"/v1/sessions/{request.session_id}/steps/{result.step_key}"
    return Done(result, _status_of_step(result.status), location)


async def get_step(caller: Caller, request: calls.GetStepRequest) -> Done:
    result = await caller.services.sessions.step_result(
        request.session_id, request.step_key, principal=caller.principal
    )
    return Done(result, _status_of_step(result.status))


async def finish_session(caller: Caller, request: calls.FinishSessionRequest) -> Done:
    view: SessionView = await caller.services.sessions.finish(
        request.session_id, FinishRequest(output=request.output), principal=caller.principal
    )
    return Done(view)


async def give_feedback(caller: Caller, request: calls.GiveFeedbackRequest) -> Done:
    accepted = await caller.services.sessions.feedback(
        request.session_id, request.feedback, principal=caller.principal
    )
    return Done(accepted)


async def cancel_session(caller: Caller, request: calls.SessionIdRequest) -> Done:
    view = await caller.services.sessions.cancel(request.session_id, caller.principal)
    return Done(view, location=f"/v1/sessions/{request.session_id}")


async def delete_session(caller: Caller, request: calls.SessionIdRequest) -> Done:
    await caller.services.sessions.erase(request.session_id, caller.principal)
    return Done(EMPTY)


async def get_trajectory(caller: Caller, request: calls.SessionIdRequest) -> Done:
    text = await caller.services.sessions.trajectory(request.session_id, caller.principal)
    return Done(calls.Document(json=payload(text)))


async def get_lineage(caller: Caller, request: calls.LineageRequest) -> Done:
    text = await caller.services.sessions.lineage(request.lineage_id, caller.principal)
    return Done(calls.Document(json=payload(text)))


async def complete_operation(caller: Caller, request: calls.CompleteOperationRequest) -> Done:
    await caller.services.sessions.complete_operation(
        request.call_id, request.token, result=request.result
    )
    return Done(EMPTY)


def stream_events(
    caller: Caller, request: calls.StreamEventsRequest, *, still: Callable[[], object]
) -> AsyncIterator[tuple[int, str, bytes]]:
    """The one operation that answers many times; a stream outlives what was checked at its begin.

    `still()` raises once the caller may see nothing more: its token was revoked, or has expired.
    """
    events = caller.services.sessions.events(
        request.session_id, caller.principal, after=request.last_event_id
    )
    return _while(still, events)


async def _while(
    still: Callable[[], object], events: AsyncIterator[tuple[int, str, bytes]]
) -> AsyncIterator[tuple[int, str, bytes]]:
    try:
        async for event in events:
            still()
            yield event
    finally:
        await close_events(events)


def session_status(text: str) -> SessionStatus | None:
    """A status from a query, capitals or not; empty means any."""
    if not text:
        return None
    try:
        return SessionStatus(text.upper())
    except ValueError:
        known = ", ".join(status.value for status in SessionStatus)
        raise invalid_request(f"status: {text!r} is none of {known}") from None


def _status_of_step(status: StepStatus) -> int:
    return 202 if status in (StepStatus.RUNNING, StepStatus.PENDING) else 200


SESSION_OPERATIONS: Final[Mapping[str, Operation]] = {
    "open_session": open_session,
    "get_session": get_session,
    "list_sessions": list_sessions,
    "execute_step": execute_step,
    "get_step": get_step,
    "finish_session": finish_session,
    "give_feedback": give_feedback,
    "cancel_session": cancel_session,
    "delete_session": delete_session,
    "get_trajectory": get_trajectory,
    "get_lineage": get_lineage,
    "complete_operation": complete_operation,
}
assert GATEWAY.keys() >= SESSION_OPERATIONS.keys()
