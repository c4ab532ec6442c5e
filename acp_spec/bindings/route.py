"""What one route is: the row of the tables in `component_routes` and `gateway_routes`."""

import enum
from dataclasses import dataclass

import msgspec

from acp_spec.model.enums import Role
from acp_spec.model.gateway_calls import Empty


class Body(enum.Enum):
    """How a body is written."""

    JSON = "application/json"
    YAML = "application/yaml"
    NDJSON = "application/x-ndjson"
    EVENTS = "text/event-stream"
    TEXT = "text/plain"
    HTML = "text/html"


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """One operation. `request` and `response` are the HTTP bodies (None = no body).

    `rpc_request` and `rpc_response` are the gRPC messages, where they differ from the HTTP bodies.
    `also` are further success statuses with their type. `query` are the query parameters.
    `about` says what it does where no gRPC method's comment in acp.proto does.
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
    about: str = ""

    @property
    def rpc_in(self) -> type[msgspec.Struct]:
        """The gRPC request message."""
        return self.rpc_request or self.request or Empty

    @property
    def rpc_out(self) -> type[msgspec.Struct]:
        """The gRPC response message."""
        return self.rpc_response or self.response or Empty
