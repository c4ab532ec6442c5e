"""Every route of a component and of the gateway: HTTP method and path, types, gRPC method.

Servers, clients and the OpenAPI generator read these tables; a route that is not here does not
exist. `{name}` stands for one path segment. Component paths are relative to its base URL.
"""

import enum
from dataclasses import dataclass
from typing import Final

import msgspec

from acp_spec.model import calls, gateway_calls, session
from acp_spec.model.card import Card, Health
from acp_spec.model.enums import Role


class Body(enum.Enum):
    """How a body is written."""

    JSON = "application/json"
    YAML = "application/yaml"
    NDJSON = "application/x-ndjson"
    EVENTS = "text/event-stream"
    TEXT = "text/plain"


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """One operation. `request` and `response` are the HTTP bodies (None = no body).

    `rpc_request` and `rpc_response` are the gRPC messages, where they differ from the HTTP bodies.
    `also` are further success statuses with their type. `query` are the query parameters.
    """

    name: str
    method: str
    path: str
    request: type[msgspec.Struct] | None = None
    response: type[msgspec.Struct] | None = None
    status: int = 200
    also: tuple[tuple[int, type[msgspec.Struct] | None], ...] = ()
    query: tuple[str, ...] = ()
    request_body: Body = Body.JSON
    response_body: Body = Body.JSON
    rpc: str = ""
    rpc_request: type[msgspec.Struct] | None = None
    rpc_response: type[msgspec.Struct] | None = None
    streams: bool = False
    role: Role | None = None
    scope: str = ""
    errors: tuple[int, ...] = ()

    @property
    def rpc_in(self) -> type[msgspec.Struct]:
        """The gRPC request message."""
        return self.rpc_request or self.request or gateway_calls.Empty

    @property
    def rpc_out(self) -> type[msgspec.Struct]:
        """The gRPC response message."""
        return self.rpc_response or self.response or gateway_calls.Empty


_CALL_ERRORS: Final = (400, 401, 403, 404, 409, 413, 415, 422, 429, 500, 503, 504)

COMPONENT_ROUTES: Final[tuple[Route, ...]] = (
    Route(
        name="describe",
        method="GET",
        path="/acp/v1/component",
        response=Card,
        rpc="/acp.v1.Component/Describe",
        errors=(401,),
    ),
    Route(
        name="health",
        method="GET",
        path="/acp/v1/health",
        response=Health,
        rpc="/acp.v1.Component/Health",
        errors=(401,),
    ),
    Route(
        name="plan",
        method="POST",
        path="/acp/v1/plan",
        request=calls.PlanRequest,
        response=calls.PlanResponse,
        rpc="/acp.v1.Planner/Plan",
        role=Role.PLANNER,
        errors=_CALL_ERRORS,
    ),
    Route(
        name="execute",
        method="POST",
        path="/acp/v1/execute",
        request=calls.ExecuteRequest,
        response=calls.ExecuteResponse,
        rpc="/acp.v1.Executor/Execute",
        role=Role.EXECUTOR,
        errors=_CALL_ERRORS,
    ),
    Route(
        name="observe",
        method="POST",
        path="/acp/v1/observe",
        request=calls.ObserveRequest,
        response=calls.ObserveResponse,
        rpc="/acp.v1.Observer/Observe",
        role=Role.OBSERVER,
        errors=_CALL_ERRORS,
    ),
    Route(
        name="reflect",
        method="POST",
        path="/acp/v1/reflect",
        request=calls.ReflectRequest,
        response=calls.ReflectResponse,
        rpc="/acp.v1.Reflector/Reflect",
        role=Role.REFLECTOR,
        errors=_CALL_ERRORS,
    ),
    Route(
        name="cancel",
        method="POST",
        path="/acp/v1/calls/{call_id}/cancel",
        request=calls.CancelRequest,
        response=calls.CancelResponse,
        rpc="/acp.v1.Component/Cancel",
        errors=(400, 401),
    ),
    Route(
        name="get_operation",
        method="GET",
        path="/acp/v1/operations/{call_id}",
        response=calls.OperationState,
        rpc="/acp.v1.Component/GetOperation",
        rpc_request=calls.OperationRequest,
        errors=(401, 404),
    ),
    Route(
        name="cancel_operation",
        method="POST",
        path="/acp/v1/operations/{call_id}/cancel",
        response=calls.CancelResponse,
        rpc="/acp.v1.Component/CancelOperation",
        rpc_request=calls.OperationRequest,
        errors=(401, 404),
    ),
)

EXECUTE_STREAM_RPC: Final = "/acp.v1.Executor/ExecuteStream"
"""gRPC's streaming Execute; over HTTP it is `execute` answered with application/x-ndjson."""

_G: Final = "/acp.v1.Gateway/"
_READ: Final = (401, 404)
_WRITE: Final = (400, 401, 403, 404, 409, 413, 415)

GATEWAY_ROUTES: Final[tuple[Route, ...]] = (
    # -- components
    Route(
        name="register_component",
        method="POST",
        path="/v1/components",
        request=session.RegisterRequest,
        response=session.Component,
        status=201,
        rpc=_G + "RegisterComponent",
        scope="component",
        errors=(400, 401, 403, 413, 415, 422, 503),
    ),
    Route(
        name="list_components",
        method="GET",
        path="/v1/components",
        response=gateway_calls.ComponentPage,
        rpc=_G + "ListComponents",
        scope="operate",
        errors=(401, 403),
    ),
    Route(
        name="get_component",
        method="GET",
        path="/v1/components/{component_id}",
        response=session.Component,
        rpc=_G + "GetComponent",
        rpc_request=gateway_calls.ComponentIdRequest,
        scope="operate",
        errors=_READ,
    ),
    Route(
        name="remove_component",
        method="DELETE",
        path="/v1/components/{component_id}",
        status=204,
        rpc=_G + "RemoveComponent",
        rpc_request=gateway_calls.ComponentIdRequest,
        scope="component",
        errors=_READ,
    ),
    Route(
        name="heartbeat_component",
        method="POST",
        path="/v1/components/{component_id}/heartbeat",
        request=session.Heartbeat,
        response=session.Component,
        rpc=_G + "HeartbeatComponent",
        rpc_request=gateway_calls.HeartbeatRequest,
        scope="component",
        errors=_WRITE,
    ),
    Route(
        name="drain_component",
        method="POST",
        path="/v1/components/{component_id}/drain",
        response=session.Component,
        rpc=_G + "DrainComponent",
        rpc_request=gateway_calls.ComponentIdRequest,
        scope="component",
        errors=_READ,
    ),
    # -- workflows
    Route(
        name="validate_workflow",
        method="POST",
        path="/v1/workflows:validate",
        response=session.Validation,
        request_body=Body.YAML,
        rpc=_G + "ValidateWorkflow",
        rpc_request=gateway_calls.ValidateWorkflowRequest,
        scope="operate",
        errors=(400, 401, 403, 413, 415),
    ),
    Route(
        name="list_workflows",
        method="GET",
        path="/v1/workflows",
        response=gateway_calls.WorkflowPage,
        rpc=_G + "ListWorkflows",
        rpc_request=gateway_calls.ListWorkflowsRequest,
        scope="operate",
        errors=(401, 403),
    ),
    Route(
        name="list_workflow_versions",
        method="GET",
        path="/v1/workflows/{name}/versions",
        response=gateway_calls.WorkflowPage,
        rpc=_G + "ListWorkflows",
        rpc_request=gateway_calls.ListWorkflowsRequest,
        scope="operate",
        errors=_READ,
    ),
    Route(
        name="put_workflow",
        method="PUT",
        path="/v1/workflows/{name}/versions/{version}",
        response=gateway_calls.WorkflowVersion,
        status=201,
        also=((200, gateway_calls.WorkflowVersion),),
        request_body=Body.YAML,
        rpc=_G + "PutWorkflow",
        rpc_request=gateway_calls.PutWorkflowRequest,
        scope="operate",
        errors=_WRITE,
    ),
    Route(
        name="get_workflow",
        method="GET",
        path="/v1/workflows/{name}/versions/{version}",
        response=gateway_calls.WorkflowVersion,
        rpc=_G + "GetWorkflow",
        rpc_request=gateway_calls.WorkflowRequest,
        scope="operate",
        errors=_READ,
    ),
    Route(
        name="activate_workflow",
        method="POST",
        path="/v1/workflows/{name}/versions/{version}/activate",
        response=gateway_calls.WorkflowVersion,
        rpc=_G + "ActivateWorkflow",
        rpc_request=gateway_calls.WorkflowRequest,
        scope="operate",
        errors=_READ,
    ),
    # -- sessions
    Route(
        name="open_session",
        method="POST",
        path="/v1/sessions",
        request=session.OpenSession,
        response=session.Opened,
        status=201,
        also=((200, session.SessionView),),
        rpc=_G + "OpenSession",
        rpc_request=gateway_calls.OpenSessionRequest,
        rpc_response=gateway_calls.OpenSessionResponse,
        scope="submit",
        errors=(400, 401, 403, 404, 409, 413, 415, 422, 429, 503),
    ),
    Route(
        name="list_sessions",
        method="GET",
        path="/v1/sessions",
        response=session.SessionPage,
        query=("status", "workflow", "after", "limit"),
        rpc=_G + "ListSessions",
        rpc_request=gateway_calls.ListSessionsRequest,
        scope="submit",
        errors=(400, 401, 403),
    ),
    Route(
        name="get_session",
        method="GET",
        path="/v1/sessions/{session_id}",
        response=session.SessionView,
        query=("min_version",),
        rpc=_G + "GetSession",
        rpc_request=gateway_calls.GetSessionRequest,
        scope="submit",
        errors=(400, 401, 404, 409),
    ),
    Route(
        name="delete_session",
        method="DELETE",
        path="/v1/sessions/{session_id}",
        status=204,
        rpc=_G + "DeleteSession",
        rpc_request=gateway_calls.SessionIdRequest,
        scope="admin",
        errors=(401, 403, 404, 409),
    ),
    Route(
        name="stream_events",
        method="GET",
        path="/v1/sessions/{session_id}/events",
        response=gateway_calls.SessionEvent,
        response_body=Body.EVENTS,
        also=((204, None),),
        rpc=_G + "StreamEvents",
        rpc_request=gateway_calls.StreamEventsRequest,
        streams=True,
        scope="submit",
        errors=(400, 401, 404, 410),
    ),
    Route(
        name="execute_step",
        method="POST",
        path="/v1/sessions/{session_id}/steps",
        request=session.ManualStep,
        response=session.StepResult,
        also=((202, session.StepResult),),
        rpc=_G + "ExecuteStep",
        rpc_request=gateway_calls.ExecuteStepRequest,
        scope="submit",
        errors=(400, 401, 404, 409, 413, 415, 422, 429, 503),
    ),
    Route(
        name="get_step",
        method="GET",
        path="/v1/sessions/{session_id}/steps/{step_key}",
        response=session.StepResult,
        also=((202, session.StepResult),),
        rpc=_G + "GetStep",
        rpc_request=gateway_calls.GetStepRequest,
        scope="submit",
        errors=_READ,
    ),
    Route(
        name="finish_session",
        method="POST",
        path="/v1/sessions/{session_id}/finish",
        request=session.FinishRequest,
        response=session.SessionView,
        rpc=_G + "FinishSession",
        rpc_request=gateway_calls.FinishSessionRequest,
        scope="submit",
        errors=_WRITE,
    ),
    Route(
        name="give_feedback",
        method="POST",
        path="/v1/sessions/{session_id}/feedback",
        request=session.Feedback,
        response=session.FeedbackAccepted,
        status=201,
        also=((200, session.FeedbackAccepted),),
        rpc=_G + "GiveFeedback",
        rpc_request=gateway_calls.GiveFeedbackRequest,
        scope="annotate",
        errors=_WRITE,
    ),
    Route(
        name="cancel_session",
        method="POST",
        path="/v1/sessions/{session_id}/cancel",
        response=session.SessionView,
        status=202,
        rpc=_G + "CancelSession",
        rpc_request=gateway_calls.SessionIdRequest,
        scope="submit",
        errors=(401, 404, 409),
    ),
    Route(
        name="get_trajectory",
        method="GET",
        path="/v1/sessions/{session_id}/trajectory",
        rpc=_G + "GetTrajectory",
        rpc_request=gateway_calls.SessionIdRequest,
        rpc_response=gateway_calls.Document,
        scope="submit",
        errors=_READ,
    ),
    Route(
        name="get_lineage",
        method="GET",
        path="/v1/lineage/{lineage_id}",
        rpc=_G + "GetLineage",
        rpc_request=gateway_calls.LineageRequest,
        rpc_response=gateway_calls.Document,
        scope="submit",
        errors=_READ,
    ),
    # -- call-backs: the token in `authorization` is the call's own, not an API token
    Route(
        name="complete_operation",
        method="POST",
        path="/v1/operations/{call_id}:complete",
        request=session.CompleteOperation,
        response=gateway_calls.Empty,
        rpc=_G + "CompleteOperation",
        rpc_request=gateway_calls.CompleteOperationRequest,
        errors=(400, 401, 404, 409, 413, 415),
    ),
    # -- the house itself; no gRPC twin (grpc.health.v1 and reflection serve there)
    Route(name="live", method="GET", path="/healthz", response_body=Body.TEXT),
    Route(name="ready", method="GET", path="/readyz", response_body=Body.TEXT, errors=(503,)),
    Route(name="metrics", method="GET", path="/metrics", response_body=Body.TEXT),
)

COMPONENT: Final = {route.name: route for route in COMPONENT_ROUTES}
GATEWAY: Final = {route.name: route for route in GATEWAY_ROUTES}
ROUTE_OF_ROLE: Final = {route.role: route for route in COMPONENT_ROUTES if route.role}


def messages_over_http() -> tuple[type[msgspec.Struct], ...]:
    """Every type that is a body (or a line of one) over HTTP, in the order of the tables."""
    bodies: dict[type[msgspec.Struct], None] = {}
    for route in COMPONENT_ROUTES + GATEWAY_ROUTES:
        for body in (route.request, route.response, *(type_ for _, type_ in route.also)):
            if body is not None:
                bodies[body] = None
    return (*bodies, calls.Progress, calls.ErrorBody)


def messages_over_grpc() -> tuple[type[msgspec.Struct], ...]:
    """Every type that is a message of a unary or streaming method."""
    found: dict[type[msgspec.Struct], None] = {}
    for route in COMPONENT_ROUTES + GATEWAY_ROUTES:
        if route.rpc:
            found[route.rpc_in] = found[route.rpc_out] = None
    return (*found, calls.ExecuteStreamItem, calls.ErrorBody)
