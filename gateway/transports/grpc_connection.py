"""A component instance reached over gRPC unary calls (SPEC section 1): the Connection port.

Methods are called by path. A call is written only to a connection that stands, so that a refused
one proves that nothing was sent; after that only the peer's trailer can say what was done. The
grpc-timeout is the attempt's time plus the late grace: gRPC drops whatever comes after it.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any, Final, TypeVar

import grpc
import msgspec
from grpc_health.v1 import health_pb2

from acp_spec.bindings.errors import error, from_grpc
from acp_spec.bindings.fields import ACP_ERROR_TRAILER
from acp_spec.bindings.routes import COMPONENT_ROUTES, Route
from acp_spec.codec import json, proto
from acp_spec.model.calls import (
    CancelRequest,
    CancelResponse,
    ErrorBody,
    OperationRequest,
    OperationState,
)
from acp_spec.model.card import Card, Health
from acp_spec.model.enums import Boundary, HealthStatus, SideEffect, StepRole
from acp_spec.model.errors import AcpFailure, Code, Reason
from acp_spec.model.gateway_calls import Empty
from gateway.config.credentials import CredentialUnavailable
from gateway.runtime.connection import Answer, Outgoing, Sink
from gateway.transports.address_guard import AddressGuard, AddressRefused, Target
from gateway.transports.answers import (
    RESPONSE_OF,
    lost,
    not_sent,
    stated_error,
    success,
    unreadable,
    unstated_error,
)
from gateway.transports.attempts import Attempt, AttemptKey
from gateway.transports.outbound import (
    VERSION_FIELD,
    ConnectionOptions,
    Credentials,
    Fields,
    authorization,
    call_fields,
    no_credentials,
    with_context,
)

T = TypeVar("T", bound=msgspec.Struct)

_ROUTES: Final[dict[str, Route]] = {route.name: route for route in COMPONENT_ROUTES}
_CALLS: Final[dict[StepRole, Route]] = {role: _ROUTES[role.value.lower()] for role in StepRole}
REQUESTS: Final = {role: msgspec.json.Decoder(route.rpc_in) for role, route in _CALLS.items()}
_HEALTH_CHECK: Final = "/grpc.health.v1.Health/Check"
# Beyond the payload limit gRPC still reads so much, so that the refusal is ours, with its reason.
_FRAMING_BYTES: Final = 64 * 1024
# gRPC's words, as it came (`Received ...`) and unpacked (`Decompressed ...`).
_TOO_LARGE_TEXT: Final = " message larger than max"
# Calls on a channel that is being replaced may still end.
_CLOSING_GRACE_S: Final = 30.0


class _NotConnected(Exception):
    """No connection stands: proof that nothing was sent."""

    def __init__(
        self, message: str, *, reason: Reason = Reason.UNAVAILABLE, boundary: Boundary
    ) -> None:
        super().__init__(message)
        self.reason = reason
        self.boundary = boundary


class GrpcConnection:
    """See `Connection`. All methods are called on the event loop's thread."""

    def __init__(
        self,
        target: Target,
        guard: AddressGuard,
        *,
        options: ConnectionOptions = ConnectionOptions(),
        credentials: Credentials = no_credentials,
        ca_pem: bytes = b"",
    ) -> None:
        self.max_request_bytes = options.max_request_bytes
        self.max_response_bytes = options.max_response_bytes
        self._options = options
        self._credentials = credentials
        self._channels = _Channels(target, guard, options=options, ca_pem=ca_pem)
        self._open: dict[AttemptKey, Attempt] = {}

    # -- calls -----------------------------------------------------------------------------------

    def send(self, outgoing: Outgoing, sink: Sink) -> None:
        attempt = _GrpcAttempt(outgoing, sink, open_attempts=self._open)
        attempt.start(self._attempt(attempt))

    async def _attempt(self, attempt: "_GrpcAttempt") -> Answer:
        """Make the attempt; everything that can happen is an answer."""
        outgoing = attempt.outgoing
        try:
            metadata = self._metadata(outgoing.auth) + call_fields(outgoing.context)
            channel = await self._channels.ready()
            request = _request(outgoing, attempt.stamp_ms())
        except CredentialUnavailable as missing:
            return not_sent(Reason.UNAVAILABLE, str(missing), boundary=Boundary.GATEWAY)
        except _NotConnected as why:
            return not_sent(why.reason, str(why), boundary=why.boundary)
        except msgspec.MsgspecError as wrong:
            text = f"the request is not one of {outgoing.role.value}: {wrong}"
            return not_sent(Reason.INVALID_REQUEST, text, boundary=Boundary.GATEWAY)
        limit = self.max_request_bytes
        if limit and len(request) > limit:
            text = f"the request has {len(request)} bytes, its card allows {limit}"
            return not_sent(Reason.PAYLOAD_TOO_LARGE, text, boundary=Boundary.GATEWAY)
        timeout_s = (attempt.left_ms + outgoing.late_grace_ms) / 1000
        attempt.sent = True
        try:
            method = channel.unary_unary(_CALLS[outgoing.role].rpc)
            data = await method(request, timeout=timeout_s, metadata=tuple(metadata))
        except grpc.aio.AioRpcError as failed:
            return _failed(failed, outgoing)
        return self._read(data, outgoing)

    def _read(self, data: bytes, outgoing: Outgoing) -> Answer:
        type_ = RESPONSE_OF[outgoing.role]
        try:
            response = proto.decode_response(type_, data, max_bytes=self.max_response_bytes)
        except AcpFailure as failure:
            return unreadable(failure.error, outgoing.effect)
        return success(response, json.encode(response), effect=outgoing.effect)

    def reset(self, call_id: str, attempt: int) -> None:
        found = self._open.get((call_id, attempt))
        if found is not None:
            found.reset()

    async def close(self) -> None:
        for attempt in list(self._open.values()):
            attempt.reset()
        await self._channels.close()

    # -- questions -------------------------------------------------------------------------------

    async def describe(self, timeout_ms: int) -> Card:
        card = await self._ask("describe", Empty(), type_=Card, timeout_ms=timeout_ms)
        self.max_request_bytes = card.limits.max_request_bytes
        return card

    async def health(self, timeout_ms: int) -> Health:
        try:
            return await self._ask("health", Empty(), type_=Health, timeout_ms=timeout_ms)
        except AcpFailure as failure:
            if failure.error.code is not Code.UNIMPLEMENTED:
                raise
        data = await self._call(_HEALTH_CHECK, b"", timeout_ms=timeout_ms)
        checked: Any = health_pb2.HealthCheckResponse.FromString(data)
        serving = checked.status == health_pb2.HealthCheckResponse.SERVING
        return Health(status=HealthStatus.SERVING if serving else HealthStatus.NOT_SERVING)

    async def cancel(self, call_id: str, attempt: int, *, timeout_ms: int) -> CancelResponse:
        request = CancelRequest(call_id=call_id, attempt=attempt)
        return await self._ask("cancel", request, type_=CancelResponse, timeout_ms=timeout_ms)

    async def operation(self, call_id: str, timeout_ms: int) -> OperationState:
        request = OperationRequest(call_id=call_id)
        return await self._ask(
            "get_operation", request, type_=OperationState, timeout_ms=timeout_ms
        )

    async def cancel_operation(self, call_id: str, timeout_ms: int) -> CancelResponse:
        request = OperationRequest(call_id=call_id)
        return await self._ask(
            "cancel_operation", request, type_=CancelResponse, timeout_ms=timeout_ms
        )

    async def _ask(
        self, name: str, request: msgspec.Struct, *, type_: type[T], timeout_ms: int
    ) -> T:
        data = await self._call(_ROUTES[name].rpc, proto.to_proto(request), timeout_ms=timeout_ms)
        return proto.decode_response(type_, data, max_bytes=self.max_response_bytes)

    async def _call(self, path: str, request: bytes, *, timeout_ms: int) -> bytes:
        """One question; raises AcpFailure for everything that is no good answer."""
        try:
            metadata = tuple(self._metadata(""))
            async with asyncio.timeout(timeout_ms / 1000):
                channel = await self._channels.ready()
                data: bytes = await channel.unary_unary(path)(
                    request, timeout=timeout_ms / 1000, metadata=metadata
                )
        except TimeoutError:
            text = f"no answer to {path} within {timeout_ms} ms"
            raise _harmless(Reason.TIMEOUT, text, boundary=Boundary.COMPONENT) from None
        except CredentialUnavailable as missing:
            raise _harmless(Reason.UNAVAILABLE, str(missing), boundary=Boundary.GATEWAY) from None
        except _NotConnected as why:
            reason = why.reason
            if why.boundary is Boundary.GATEWAY:
                reason = Reason.PERMISSION_DENIED  # the address: whoever registered it must act
            raise _harmless(reason, str(why), boundary=why.boundary) from None
        except grpc.aio.AioRpcError as failed:
            raise AcpFailure(_error_of(failed)[0].error) from None
        return data

    def _metadata(self, auth: str) -> Fields:
        """What is sent beside every message; keys are the lower-case header names."""
        return [VERSION_FIELD, *authorization(auth or self._options.auth, self._credentials)]


class _GrpcAttempt(Attempt):
    """An attempt as a task: gRPC's own cost is far above a task's."""

    sent = False

    def start(self, work: Coroutine[None, None, Answer]) -> None:
        self._task = self._loop.create_task(work)
        self._task.add_done_callback(self._done)

    def is_sent(self) -> bool:
        return self.sent

    def give_up(self) -> None:
        self._task.cancel()

    def _done(self, task: "asyncio.Task[Answer]") -> None:
        if not task.cancelled():
            self.finish(task.result())


class _Channels:
    """The one channel of a connection, made anew (and its name resolved anew) when it broke."""

    def __init__(
        self, target: Target, guard: AddressGuard, *, options: ConnectionOptions, ca_pem: bytes
    ) -> None:
        self._target = target
        self._guard = guard
        self._timeout_s = options.connect_timeout_ms / 1000
        self._ca_pem = ca_pem or None
        limit = options.max_response_bytes + _FRAMING_BYTES
        self._arguments: list[tuple[str, int | str]] = [
            ("grpc.max_receive_message_length", limit),
            ("grpc.max_send_message_length", -1),
            ("grpc.enable_retries", 0),
            ("grpc.enable_http_proxy", 0),
            ("grpc.service_config_disable_resolution", 1),
            # Nothing is shared with other channels: neither a broken connection nor its back-off.
            ("grpc.use_local_subchannel_pool", 1),
            ("grpc.default_authority", target.authority),
        ]
        if target.is_tls:
            self._arguments.append(("grpc.ssl_target_name_override", target.host))
        self._channel: grpc.aio.Channel | None = None
        self._lock = asyncio.Lock()
        self._closing: set[asyncio.Task[None]] = set()
        self._is_closed = False

    async def ready(self) -> grpc.aio.Channel:
        """A channel whose connection stands; raises _NotConnected."""
        channel = self._channel
        if channel is not None and _is_ready(channel):
            return channel
        async with self._lock:
            channel = self._channel  # another call may have connected meanwhile
            if channel is not None and _is_ready(channel):
                return channel
            if self._is_closed:
                raise _NotConnected("the connection is closed", boundary=Boundary.GATEWAY)
            if channel is not None:
                self._retire(channel)
                self._channel = None
            self._channel = await self._connect()
            return self._channel

    async def close(self) -> None:
        self._is_closed = True
        for task in list(self._closing):
            task.cancel()
        await asyncio.gather(*self._closing, return_exceptions=True)
        if self._channel is not None:
            await self._channel.close()
            self._channel = None

    async def _connect(self) -> grpc.aio.Channel:
        place = self._target.authority
        try:
            async with asyncio.timeout(self._timeout_s):
                for address in await self._guard.addresses(self._target):
                    channel = await self._connected(address)
                    if channel is not None:
                        return channel
            text = f"no connection to {place}: refused, or TLS failed"
        except AddressRefused as refused:
            raise _NotConnected(str(refused), boundary=Boundary.GATEWAY) from None
        except TimeoutError:
            text = f"no connection to {place} within {self._timeout_s:g} s"
        except OSError as problem:
            text = f"no connection to {place}: {problem.strerror or problem}"
        raise _NotConnected(text, boundary=Boundary.COMPONENT)

    async def _connected(self, address: str) -> grpc.aio.Channel | None:
        """A channel to one literal address once its connection stands; None if it is refused."""
        family, host = ("ipv6", f"[{address}]") if ":" in address else ("ipv4", address)
        place = f"{family}:{host}:{self._target.port}"
        if self._target.is_tls:
            secrets = grpc.ssl_channel_credentials(root_certificates=self._ca_pem)
            channel = grpc.aio.secure_channel(place, secrets, options=self._arguments)
        else:
            channel = grpc.aio.insecure_channel(place, options=self._arguments)
        try:
            state = channel.get_state(try_to_connect=True)
            while state is not grpc.ChannelConnectivity.READY:
                if state is grpc.ChannelConnectivity.TRANSIENT_FAILURE:
                    await channel.close()
                    return None
                await channel.wait_for_state_change(state)
                state = channel.get_state(try_to_connect=True)
        except BaseException:
            await channel.close()
            raise
        return channel

    def _retire(self, channel: grpc.aio.Channel) -> None:
        task = asyncio.get_running_loop().create_task(channel.close(_CLOSING_GRACE_S))
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)


def _is_ready(channel: grpc.aio.Channel) -> bool:
    return bool(channel.get_state() is grpc.ChannelConnectivity.READY)


def _request(outgoing: Outgoing, left_ms: int) -> bytes:
    """The journaled JSON as protobuf, its payloads' bytes as they are; the time stamped now."""
    context = msgspec.structs.replace(outgoing.context, timeout_ms=left_ms)
    message = REQUESTS[outgoing.role].decode(with_context(context, bytes(outgoing.body)))
    return proto.to_proto(message)


def _failed(failed: grpc.aio.AioRpcError, outgoing: Outgoing) -> Answer:
    details = failed.details() or ""
    if _TOO_LARGE_TEXT in details:
        text = f"the response: {details}"
        return lost(Reason.PAYLOAD_TOO_LARGE, text, effect=outgoing.effect)
    body, is_stated = _error_of(failed)
    return stated_error(body, outgoing.effect) if is_stated else unstated_error(body.error)


def _error_of(failed: grpc.aio.AioRpcError) -> tuple[ErrorBody, bool]:
    """The error of a call that failed; True if the peer stated it in a trailer, as ACP does."""
    details = failed.details() or "a gRPC status without a message"
    trailers = failed.trailing_metadata() or ()
    trailer = next((value for name, value in trailers if name == ACP_ERROR_TRAILER), None)
    if isinstance(trailer, bytes):
        try:
            return proto.decode_response(ErrorBody, trailer), True
        except AcpFailure:
            details += f" (its ACP trailer of {len(trailer)} bytes cannot be read)"
    return ErrorBody(error=from_grpc(failed.code().value[0], details)), False


def _harmless(reason: Reason, message: str, *, boundary: Boundary) -> AcpFailure:
    return AcpFailure(error(reason, message, side_effect=SideEffect.NONE, boundary=boundary))
