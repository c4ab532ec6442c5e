"""Every route of a component and of the gateway: HTTP method and path, types, gRPC method.

Servers, clients and the OpenAPI generator read these tables; a route that is not here does not
exist. `{name}` stands for one path segment.
"""

from typing import Final

import msgspec

from acp_spec.bindings.component_routes import COMPONENT_ROUTES, EXECUTE_STREAM_RPC
from acp_spec.bindings.gateway_routes import GATEWAY_ROUTES
from acp_spec.bindings.route import Body, Route
from acp_spec.model import calls

__all__ = [
    "COMPONENT",
    "COMPONENT_ROUTES",
    "EXECUTE_STREAM_RPC",
    "GATEWAY",
    "GATEWAY_ROUTES",
    "ROUTE_OF_ROLE",
    "Body",
    "Route",
    "messages_over_grpc",
    "messages_over_http",
]

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
