"""The routes of a component (SPEC section 1). Paths are relative to its base URL."""

from typing import Final

from acp_spec.bindings.route import Route
from acp_spec.model import calls
from acp_spec.model.card import Card, Health
from acp_spec.model.enums import Role

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
