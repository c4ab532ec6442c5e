"""OpenAPI 3.1 of a component and of the gateway, from the route tables and acp.proto's comments.

Every route of SPEC section 6 and section 1 stands here with its errors; a status lists the reasons
that the table of errors gives it.
"""

import re
from collections.abc import Iterator
from typing import Final

import msgspec

from acp_spec.bindings import fields
from acp_spec.bindings.errors import ERRORS
from acp_spec.bindings.routes import COMPONENT_ROUTES, GATEWAY_ROUTES, Body, Route
from acp_spec.codec.generate.protobuf import Comments
from acp_spec.codec.generate.schemas import Schema, definitions
from acp_spec.codec.shapes import message_name
from acp_spec.model.calls import ErrorBody, Progress
from acp_spec.model.gateway_calls import SessionEvent
from acp_spec.model.trajectory import Trajectory

_PREFIX: Final = "#/components/schemas/"
_STRING: Final[Schema] = {"type": "string"}
_WHOLE: Final[Schema] = {"type": "integer", "minimum": 0}

_TITLES: Final = {
    "component": (
        "ACP v1: a component",
        "What a component serves below its base URL. Normative text: SPEC.md.",
        COMPONENT_ROUTES,
    ),
    "gateway": (
        "ACP v1: the gateway",
        "The gateway's own API; acp.v1.Gateway mirrors it over gRPC. Normative text: SPEC.md.",
        GATEWAY_ROUTES,
    ),
}

# Headers that some routes read, beside `acp-version` on all of them.
_PREFER: Final = (fields.PREFER, "`wait=N`: answer once it has ended, after N seconds at most.")
_HEADERS: Final[dict[str, tuple[tuple[str, str], ...]]] = {
    "open_session": (_PREFER,),
    "execute_step": (_PREFER,),
    "stream_events": ((fields.LAST_EVENT_ID, "Resume after this event."),),
}
_CALL_HEADERS: Final = (
    (fields.IDEMPOTENCY_KEY, "Equal to context.call_id."),
    (fields.ACP_TIMEOUT_MS, "context.timeout_ms, for those on the way; the body is authoritative."),
    (fields.TRACEPARENT, "W3C trace context; if valid, the parent span."),
    (fields.TRACESTATE, "W3C trace state."),
    (fields.BAGGAGE, "W3C baggage."),
)
_QUERY: Final[dict[str, tuple[Schema, str]]] = {
    "status": (_STRING, "Only sessions with this status."),
    "workflow": (_STRING, "Only sessions of this workflow: name, or name@version."),
    "after": (_STRING, "`next` of the page before."),
    "limit": (_WHOLE, "At most this many; 0 = the gateway's default."),
    "min_version": (_STRING, "409 STALE_STATE if the session is older than this state_version."),
}
# Bodies that are no message of acp.proto.
_SPECIAL_BODIES: Final[dict[str, type[msgspec.Struct]]] = {"get_trajectory": Trajectory}
_OPTIONAL_BODY: Final = frozenset(
    {"cancel", "heartbeat_component", "finish_session"},
)


def all(comments: Comments) -> Iterator[tuple[str, Schema]]:
    """Both documents: `component` and `gateway`."""
    for name, (title, about, routes) in _TITLES.items():
        yield name, _document(title, about, routes=routes, comments=comments)


def _document(title: str, about: str, *, routes: tuple[Route, ...], comments: Comments) -> Schema:
    paths: dict[str, Schema] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, comments)
    bodies = {type_: None for route in routes for type_ in _types(route)} | {ErrorBody: None}
    schemas = definitions(tuple(bodies), comments, prefix=_PREFIX)
    return {
        "openapi": "3.1.0",
        "info": {"title": title, "description": about, "version": fields.VERSION},
        "security": [{"bearer": []}, {}],
        "paths": paths,
        "components": {
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
            "schemas": dict(sorted(schemas.items())),
        },
    }


def _types(route: Route) -> Iterator[type[msgspec.Struct]]:
    also = [type_ for _, type_ in route.also]
    stream = [Progress] if route.name == "execute" else []
    special = [_SPECIAL_BODIES[route.name]] if route.name in _SPECIAL_BODIES else []
    for type_ in (route.request, route.response, *also, *stream, *special):
        if type_ is not None:
            yield type_


def _operation(route: Route, comments: Comments) -> Schema:
    operation: Schema = {
        "operationId": route.name,
        "summary": route.about or comments.of(route.rpc),
        "parameters": _parameters(route),
    }
    if route.rpc:
        operation["x-grpc-method"] = route.rpc.removeprefix("/")
    if route.scope:
        operation["x-scope"] = route.scope
    body = _request_body(route)
    if body:
        operation["requestBody"] = body
    operation["responses"] = _responses(route)
    return operation


def _parameters(route: Route) -> list[Schema]:
    found = [
        {"name": name, "in": "path", "required": True, "schema": _STRING}
        for name in re.findall(r"{(\w+)}", route.path)
    ]
    for name in route.query:
        schema, about = _QUERY[name]
        found.append({"name": name, "in": "query", "description": about, "schema": schema})
    headers = _HEADERS.get(route.name, ()) + (_CALL_HEADERS if route.role else ())
    if route.rpc:
        headers = ((fields.ACP_VERSION, "As negotiated; absent = 1.0."), *headers)
    for name, about in headers:
        found.append({"name": name, "in": "header", "description": about, "schema": _STRING})
    return found


def _request_body(route: Route) -> Schema | None:
    if route.request_body is Body.YAML:
        document: Schema = {"description": "A workflow file (SPEC section 8)."}
        types = (fields.JSON, *fields.YAML_TYPES)
        return {"required": True, "content": {type_: {"schema": document} for type_ in types}}
    if route.request is None:
        return None
    content = {fields.JSON: {"schema": _ref(route.request)}}
    return {"required": route.name not in _OPTIONAL_BODY, "content": content}


def _responses(route: Route) -> Schema:
    found = {str(route.status): _success(route, route.response)}
    for status, type_ in route.also:
        found[str(status)] = _success(route, type_)
    for status in route.errors:
        found[str(status)] = {
            "description": _reasons(status),
            "content": {fields.JSON: {"schema": _ref(ErrorBody)}},
        }
    return found


def _success(route: Route, type_: type[msgspec.Struct] | None) -> Schema:
    type_ = type_ or _SPECIAL_BODIES.get(route.name)
    if type_ is None and route.status == 204:
        return {"description": "Done; no body."}
    if type_ is None and route.response_body is Body.EVENTS:
        return {"description": "The session's terminal event was already sent; no body."}
    schema = _ref(type_) if type_ else {}
    content = {route.response_body.value: {"schema": schema}}
    if type_ is SessionEvent:
        return {
            "description": "Server-sent events: `id`, `event` (the type), `data` of each message.",
            "content": content,
        }
    if route.name == "execute":
        lines = {"anyOf": [_ref(Progress), schema, _ref(ErrorBody)]}
        content[fields.NDJSON] = {"schema": lines}
    return {"description": message_name(type_) if type_ else "Done.", "content": content}


def _reasons(status: int) -> str:
    reasons = sorted(reason.value for reason, row in ERRORS.items() if row.http == status)
    return ", ".join(reasons) or "An error."


def _ref(type_: type[msgspec.Struct]) -> Schema:
    return {"$ref": _PREFIX + message_name(type_)}
