"""`acp.v1.Gateway` over gRPC: the same operations as HTTP, called by method path, without stubs.

Errors are a status and the `acp-error-bin` trailer. Health and reflection stand beside it. The end
must not hang on an open stream: event streams are ended first, then the server stops with a grace.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import Final, Protocol

import grpc
import msgspec
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from acp_spec.bindings import fields
from acp_spec.bindings.errors import grpc_status
from acp_spec.bindings.routes import GATEWAY_ROUTES, Route
from acp_spec.codec import proto
from acp_spec.codec.error_trailer import encode_trailer
from acp_spec.model import gateway_calls as calls
from acp_spec.model.calls import ErrorBody
from acp_spec.model.errors import AcpError
from acp_spec.model.payload import payload
from acp_spec.sdk.steady_grpc import steady_server
from gateway.config.binds import Bind
from gateway.config.settings import Settings, TlsSettings
from gateway.runtime.principal import LOCAL, NO_TRACE, Principal, Trace
from gateway.transports.admin import ADMIN_OPERATIONS
from gateway.transports.auth import Gate, allow, check_version, metadata_of
from gateway.transports.operations import SESSION_OPERATIONS, Caller, stream_events
from gateway.transports.own_failures import attempted, too_many_streams
from gateway.transports.ports import Services
from gateway.transports.streaming import cancelled, close_events, next_event

SERVICE: Final = "acp.v1.Gateway"
# Read beyond the limit, so that the refusal is ours, with its reason.
MESSAGE_SLACK_BYTES: Final = 64 * 1024
# A message of an attached component is a list of frames: as much as gRPC takes by default.
ATTACH_MESSAGE_BYTES: Final = 4 * 1024 * 1024
# `grpc-message` travels percent-encoded in a header; the trailer has the whole text.
STATUS_MESSAGE_MAX: Final = 1_000
# As many streams as over HTTP would be too many here: each costs a thread-safe queue in the core.
STREAMS_MAX: Final = 1_000
_STATUS: Final = {code.value[0]: code for code in grpc.StatusCode}
_OPERATIONS: Final = {**SESSION_OPERATIONS, **ADMIN_OPERATIONS}
_CALL_BACK: Final = "complete_operation"

Unary = Callable[[bytes, grpc.aio.ServicerContext], Awaitable[bytes]]


class Methods(Protocol):
    """What serves some methods: a handler for each path."""

    handlers: dict[str, grpc.RpcMethodHandler]


class GatewayHandler:
    """Has the operation of each method path of `acp.v1.Gateway`."""

    def __init__(
        self, services: Services, gate: Gate, *, max_bytes: int, wait_max_s: float
    ) -> None:
        self._services = services
        self._gate = gate
        self._max_bytes = max_bytes
        self._wait_max_s = int(wait_max_s)
        self._streams: set[asyncio.Event] = set()
        self.handlers = {route.rpc: self._handler(route) for route in GATEWAY_ROUTES if route.rpc}

    def close_streams(self) -> None:
        """End every event stream; their clients resume with `last_event_id`."""
        for ended in self._streams:
            ended.set()

    def _handler(self, route: Route) -> grpc.RpcMethodHandler:
        if route.streams:
            return grpc.unary_stream_rpc_method_handler(self._stream(route))
        return grpc.unary_unary_rpc_method_handler(self._unary(route))

    def _unary(self, route: Route) -> Unary:
        operate = _OPERATIONS[route.name]

        async def serve(data: bytes, context: grpc.aio.ServicerContext) -> bytes:
            async def answer() -> bytes:
                caller = self._caller(route, context)
                request = proto.decode_request(route.rpc_in, data, max_bytes=self._max_bytes)
                done = await operate(caller, self._bounded(request))
                return proto.to_proto(done.value)

            answered = await attempted(answer(), where=route.rpc)
            if isinstance(answered, AcpError):
                await self._abort(answered, context)
                raise AssertionError("abort raises")
            return answered

        return serve

    def _stream(
        self, route: Route
    ) -> Callable[[bytes, grpc.aio.ServicerContext], AsyncIterator[bytes]]:
        async def begin(
            data: bytes, context: grpc.aio.ServicerContext
        ) -> AsyncIterator[tuple[int, str, bytes]]:
            caller = self._caller(route, context)
            self._check_streams()
            request = proto.decode_request(
                calls.StreamEventsRequest, data, max_bytes=self._max_bytes
            )
            return stream_events(caller, request, still=lambda: self._caller(route, context))

        async def serve(data: bytes, context: grpc.aio.ServicerContext) -> AsyncIterator[bytes]:
            events = await attempted(begin(data, context), where=route.rpc)
            if isinstance(events, AcpError):
                await self._abort(events, context)
                return
            async for event in self._events(events):
                if isinstance(event, AcpError):
                    await self._abort(event, context)
                    return
                yield proto.to_proto(event)

        return serve

    async def _events(
        self, events: AsyncIterator[tuple[int, str, bytes]]
    ) -> AsyncIterator[calls.SessionEvent | AcpError]:
        """The session's events until the terminal one, an error, or the end of this server."""
        ended = asyncio.Event()
        self._streams.add(ended)
        ending = asyncio.create_task(ended.wait())
        following = asyncio.create_task(next_event(events))
        try:
            while True:
                await asyncio.wait({following, ending}, return_when=asyncio.FIRST_COMPLETED)
                if not following.done():
                    return
                event = await attempted(following, where="StreamEvents")
                if event is None:
                    return
                if isinstance(event, AcpError):
                    yield event
                    return
                following = asyncio.create_task(next_event(events))
                number, name, data = event
                yield calls.SessionEvent(id=number, type=name, data=payload(data))
        finally:
            self._streams.discard(ended)
            ending.cancel()
            await cancelled(following)
            await close_events(events)

    def _check_streams(self) -> None:
        if len(self._streams) >= STREAMS_MAX:
            raise too_many_streams()

    def _caller(self, route: Route, context: grpc.aio.ServicerContext) -> Caller:
        metadata = metadata_of(context.invocation_metadata() or ())
        check_version(metadata.get(fields.ACP_VERSION, ""))
        if route.name == _CALL_BACK:
            return Caller(self._services, LOCAL)
        principal: Principal = self._gate.caller(metadata.get(fields.AUTHORIZATION, ""))
        allow(principal, route.scope)
        return Caller(self._services, principal, _trace(metadata))

    def _bounded(self, request: msgspec.Struct) -> msgspec.Struct:
        """`wait_s` has the same cap as `Prefer: wait=N`."""
        match request:
            case calls.OpenSessionRequest() | calls.ExecuteStepRequest():
                if request.wait_s > self._wait_max_s:
                    return msgspec.structs.replace(request, wait_s=self._wait_max_s)
        return request

    async def _abort(self, failure: AcpError, context: grpc.aio.ServicerContext) -> None:
        """End the call with the error's status and trailer; always raises."""
        self._services.metrics.refused(failure.reason)
        trailer = ((fields.ACP_ERROR_TRAILER, encode_trailer(ErrorBody(error=failure))),)
        status = _STATUS[grpc_status(failure)]
        await context.abort(status, failure.message[:STATUS_MESSAGE_MAX], trailer)


class GrpcServer:
    """One listening address. `extra` are further services (attach) on the same port."""

    def __init__(
        self,
        services: Services,
        gate: Gate,
        *,
        settings: Settings,
        extra: Sequence[Methods] = (),
    ) -> None:
        limit = settings.limits.max_request_bytes
        self._handler = GatewayHandler(
            services, gate, max_bytes=limit, wait_max_s=settings.http.wait_max_ms / 1000
        )
        self._extra = tuple(extra)
        self._settings = settings
        self._options = server_options(limit)
        self._health = health.aio.HealthServicer()
        self._server: grpc.aio.Server | None = None
        self._bind = settings.grpc.bind

    @property
    def address(self) -> str:
        """`host:port` as it is really bound, after `start`."""
        return str(self._bind)

    async def start(self) -> None:
        """Bind and serve; OSError names the address when it is taken."""
        methods = dict(self._handler.handlers)
        for more in self._extra:
            methods |= more.handlers
        server = steady_server(methods, options=self._options)
        health_pb2_grpc.add_HealthServicer_to_server(self._health, server)
        await self.set_ready(False)
        known = (SERVICE, health.SERVICE_NAME, reflection.SERVICE_NAME)
        reflection.enable_server_reflection(known, server)
        self._bind = Bind(self._bind.host, _listen(server, self._bind, tls=self._settings.tls))
        await server.start()
        self._server = server

    async def set_ready(self, ready: bool) -> None:
        """What grpc.health.v1 answers."""
        response = health_pb2.HealthCheckResponse
        status = response.SERVING if ready else response.NOT_SERVING
        for service in ("", SERVICE):
            await self._health.set(service, status)

    async def drain(self) -> None:
        """Tell health watchers, end event streams, take no new calls' worth of waiting."""
        await self._health.enter_graceful_shutdown()
        self._handler.close_streams()

    async def stop(self, grace_s: float = 0.0) -> None:
        """Take no new calls, let running ones end within the grace, then cut them."""
        if self._server is not None:
            self._handler.close_streams()
            await self._server.stop(grace_s)


def server_options(max_request_bytes: int) -> tuple[tuple[str, int], ...]:
    """What the server is told: a fixed port of its own, and sizes that leave refusing to us."""
    message_bytes = max(2 * max_request_bytes + MESSAGE_SLACK_BYTES, ATTACH_MESSAGE_BYTES)
    return (
        ("grpc.max_receive_message_length", message_bytes),
        ("grpc.max_send_message_length", -1),
        ("grpc.so_reuseport", 0),
    )


def _listen(server: grpc.aio.Server, bind: Bind, *, tls: TlsSettings) -> int:
    try:
        if tls.cert_file is None or tls.key_file is None:
            port: int = server.add_insecure_port(str(bind))
        else:
            port = server.add_secure_port(str(bind), _credentials(tls.cert_file, tls.key_file))
    except RuntimeError as problem:
        message = f"cannot listen on {bind} for gRPC: {problem}; choose another (0: any free port)"
        raise OSError(message) from None
    return port


def _credentials(cert_file: Path, key_file: Path) -> grpc.ServerCredentials:
    return grpc.ssl_server_credentials([(key_file.read_bytes(), cert_file.read_bytes())])


def _trace(metadata: dict[str, str]) -> Trace:
    if not metadata.keys() & set(fields.TRACE_FIELDS):
        return NO_TRACE
    return Trace(
        traceparent=metadata.get(fields.TRACEPARENT, ""),
        tracestate=metadata.get(fields.TRACESTATE, ""),
        baggage=metadata.get(fields.BAGGAGE, ""),
    )
