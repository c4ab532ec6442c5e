"""The gateway's HTTP side as one pure ASGI application: gate, route, read, operate, answer.

Every request takes the same short way, hot or not, and every failure leaves in the ACP error shape.
A client's fault is never a 5xx; what nobody expected is logged with its cause and told as INTERNAL.
"""

import asyncio
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from typing import Final

from acp_spec.bindings.errors import error
from acp_spec.bindings.fields import AUTHORIZATION, JSON, WRITE_TYPES
from acp_spec.bindings.routes import GATEWAY_ROUTES, Body, Route
from acp_spec.model import gateway_calls as calls
from acp_spec.model.errors import AcpError, AcpFailure, Reason
from gateway.telemetry.logs import get_log
from gateway.transports import pages
from gateway.transports.admin import ADMIN_OPERATIONS
from gateway.transports.auth import Gate, allow, check_version
from gateway.transports.http_request import (
    ClientGone,
    HttpRequest,
    Message,
    Receive,
    Scope,
    Send,
    one_value_headers,
    segments,
)
from gateway.transports.http_response import (
    Header,
    Response,
    failed,
    send_response,
)
from gateway.transports.http_routes import BUILDERS, Builder, HttpLimits, body_of
from gateway.transports.operations import (
    SESSION_OPERATIONS,
    Caller,
    Operation,
    stream_events,
)
from gateway.transports.operator_api import (
    OPERATOR_BUILDERS,
    OPERATOR_OPERATIONS,
    OPERATOR_ROUTES,
)
from gateway.transports.own_failures import attempted, stopping, too_many_streams
from gateway.transports.ports import Services
from gateway.transports.routing import NoRoute, Router, WrongMethod
from gateway.transports.streaming import EventStream, Stalled, Streams, StreamTimes

log = get_log(__name__)

OPERATIONS: Final[Mapping[str, Operation]] = {
    **SESSION_OPERATIONS,
    **ADMIN_OPERATIONS,
    **OPERATOR_OPERATIONS,
}
_BUILDERS: Final[Mapping[str, Builder]] = {**BUILDERS, **OPERATOR_BUILDERS}
# The token in this route's header is the call's own (SPEC section 6), not an API token.
_CALL_BACK: Final = "complete_operation"
_WAITS: Final = frozenset({"open_session", "execute_step"})
_JSON_TYPES: Final = frozenset({JSON})
_FILE_TYPES: Final = frozenset(WRITE_TYPES)


@dataclass(frozen=True, slots=True)
class Target:
    """A route with all it takes to serve it; without an operation it is a page or the stream."""

    route: Route
    types: frozenset[str]
    takes_query: bool
    build: Builder | None = None
    operate: Operation | None = None


class HttpApp:
    """The application; `unready`, streams and limits come from outside."""

    def __init__(
        self, services: Services, gate: Gate, *, limits: HttpLimits, times: StreamTimes
    ) -> None:
        self.streams: Final = Streams()
        self._services = services
        self._gate = gate
        self._limits = limits
        self._times = times
        self._router: Router[Target | pages.Page] = Router(
            [
                *((page.method, page.path, page) for page in pages.PAGES),
                *((route.method, route.path, _target(route)) for route in _served_routes()),
            ]
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI: one request, answered whatever happens."""
        if scope["type"] != "http":
            return  # no lifespan, no web sockets: the server is told so
        started = _Started(send)
        where = f"{scope['method']} {scope['path']}"
        work = self._route(scope, receive, send=started)
        try:
            failure = await attempted(work, where=where, passing=(ClientGone, Stalled))
        except ClientGone:
            return
        except Stalled:
            log.info("event_stream_stalled", path=scope["path"])
            _abort(scope)
            return
        except asyncio.CancelledError:
            # The server stops. What was asked may have been done; the journal knows.
            failure = stopping()
        if failure is not None:
            self._services.metrics.refused(failure.reason)
            if not started.has_started:
                await send_response(send, failed(failure, *_closing(scope, failure)))

    async def _route(self, scope: Scope, receive: Receive, *, send: "_Started") -> None:
        headers = one_value_headers(scope["headers"])
        self._gate.check_host(headers.get(b"host"))
        if b"origin" in headers:
            self._gate.check_origin(headers[b"origin"], headers.get(b"host"))
        try:
            target, params = self._find(scope)
        except WrongMethod as problem:
            await send_response(send, _wrong_method(scope["method"], problem.allowed))
            return
        if b"acp-version" in headers:
            check_version(headers[b"acp-version"].decode("latin-1"))
        request = HttpRequest(scope, receive, headers=headers)
        request.params = params
        if isinstance(target, pages.Page):
            await send_response(send, await self._page(target, request))
            return
        await self._operate(target, request, send=send)

    def _find(self, scope: Scope) -> tuple[Target | pages.Page, tuple[str, ...]]:
        path = segments(scope.get("raw_path") or scope["path"].encode())
        try:
            if path is None:
                raise NoRoute
            return self._router.find(scope["method"], path)
        except NoRoute:
            message = f"no route {scope['path'][:200]!r}: see /docs or /openapi.json"
            raise AcpFailure(error(Reason.NOT_FOUND, message)) from None

    async def _page(self, page: pages.Page, request: HttpRequest) -> Response:
        if page.scope:
            allow(self._gate.caller(request.header(AUTHORIZATION)), page.scope)
        await request.read_body(self._limits.body_bytes)
        return page.render(self._services, request)

    async def _operate(self, target: Target, request: HttpRequest, *, send: "_Started") -> None:
        route = target.route
        if route.name != _CALL_BACK:
            request.principal = self._gate.caller(request.header(AUTHORIZATION))
            allow(request.principal, route.scope)
        await request.read_body(self._limits.body_bytes)
        _check_type(target, request)
        if request.query and not target.takes_query:
            _refuse_query()
        assert target.build is not None, f"route {route.name} has no builder"
        message = target.build(request, self._limits)
        if target.operate is None:
            assert isinstance(message, calls.StreamEventsRequest), "the one stream there is"
            await self._stream(message, request, send=send)
            return
        caller = Caller(self._services, request.principal, request.trace)
        done = await target.operate(caller, message)
        more: list[Header] = []
        if done.location:
            more.append((b"location", done.location.encode()))
        if route.name in _WAITS and (wait_s := getattr(message, "wait_s", 0)):
            more.append((b"preference-applied", b"wait=%d" % wait_s))
        status = done.status or route.status
        await send_response(send, Response(status, body_of(route, done.value), headers=tuple(more)))

    async def _stream(
        self, message: calls.StreamEventsRequest, request: HttpRequest, *, send: "_Started"
    ) -> None:
        if self.streams.is_full:
            raise too_many_streams()
        shown = request.header(AUTHORIZATION)
        caller = Caller(self._services, request.principal)
        events = stream_events(caller, message, still=lambda: self._gate.caller(shown))
        stream = EventStream(events, request, send=send, times=self._times)
        with self.streams.counted():
            await stream.run(self.streams.closing)


class _Started:
    """`send` that knows whether the headers have left: after that no error can be answered."""

    __slots__ = ("_send", "has_started")

    def __init__(self, send: Send) -> None:
        self._send = send
        self.has_started = False

    def __call__(self, message: Message) -> Awaitable[None]:
        self.has_started = True
        return self._send(message)


def _served_routes() -> tuple[Route, ...]:
    own = {page.name for page in pages.PAGES}
    return tuple(route for route in (*GATEWAY_ROUTES, *OPERATOR_ROUTES) if route.name not in own)


def _target(route: Route) -> Target:
    takes_file = route.request_body is Body.YAML
    return Target(
        route=route,
        types=_FILE_TYPES if takes_file else _JSON_TYPES,
        takes_query=bool(route.query),
        build=_BUILDERS[route.name],
        operate=OPERATIONS.get(route.name),
    )


def _check_type(target: Target, request: HttpRequest) -> None:
    """UNSUPPORTED_MEDIA_TYPE for a write that is not JSON (or YAML, where a file is taken).

    A browser can send other types across sites without asking first; these it cannot.
    """
    stated = request.headers.get(b"content-type")
    if stated is None and not request.body:
        return
    if stated is not None and not request.body and request.method in ("GET", "HEAD", "DELETE"):
        return
    kind = (stated or b"").partition(b";")[0].strip().lower().decode("latin-1")
    if kind in target.types or (kind.endswith("+json") and JSON in target.types):
        return
    known = " or ".join(sorted(target.types))
    message = f"header content-type: {kind[:100]!r} is not taken here; send {known}"
    raise AcpFailure(error(Reason.UNSUPPORTED_MEDIA_TYPE, message))


def _refuse_query() -> None:
    message = "query: this route takes no parameters"
    raise AcpFailure(error(Reason.INVALID_REQUEST, message))


def _wrong_method(method: str, allowed: tuple[str, ...]) -> Response:
    names = ", ".join(allowed)
    failure = error(Reason.METHOD_NOT_ALLOWED, f"{method} is not served here; allowed: {names}")
    return failed(failure, (b"allow", names.encode()))


def _closing(scope: Scope, failure: AcpError) -> tuple[Header, ...]:
    """A refused body that waits for `100 Continue` will not come: the connection is of no use."""
    if failure.reason != Reason.PAYLOAD_TOO_LARGE.value:
        return ()
    waits = any(name == b"expect" for name, _ in scope["headers"])
    return ((b"connection", b"close"),) if waits else ()


def _abort(scope: Scope) -> None:
    """Cut a client off that takes nothing; a polite close would wait for it."""
    abort = scope.get("extensions", {}).get("acp.abort")
    if abort is not None:
        abort()
