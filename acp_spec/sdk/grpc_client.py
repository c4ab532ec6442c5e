"""A component over gRPC: one attempt per call, failures as values (SPEC section 5).

Methods are called by path, without generated stubs. Retries, service configuration and environment
proxies are off. The connection is made before the call is written, so that a refused one proves
that nothing was sent; gRPC's own UNAVAILABLE would not tell.
"""

import asyncio
from collections.abc import AsyncIterator
from types import TracebackType
from typing import Self, TypeVar

import grpc
import msgspec

from acp_spec.bindings import fields
from acp_spec.bindings.errors import error
from acp_spec.bindings.routes import COMPONENT_ROUTES, EXECUTE_STREAM_RPC
from acp_spec.codec import proto
from acp_spec.codec.error_trailer import decode_trailer
from acp_spec.model.calls import (
    CancelRequest,
    CancelResponse,
    ErrorBody,
    ExecuteRequest,
    ExecuteResponse,
    ExecuteStreamItem,
    ObserveRequest,
    ObserveResponse,
    OperationRequest,
    OperationState,
    PlanRequest,
    PlanResponse,
    ReflectRequest,
    ReflectResponse,
)
from acp_spec.model.card import Card, Health
from acp_spec.model.context import Context
from acp_spec.model.enums import Boundary, SideEffect
from acp_spec.model.errors import AcpFailure, Reason
from acp_spec.model.gateway_calls import Empty
from acp_spec.sdk.carriage import ANSWER_SLACK_MS, QUESTION_TIMEOUT_MS, beside
from acp_spec.sdk.client import StreamItem

T = TypeVar("T", bound=msgspec.Struct)

_RPC = {route.name: route.rpc for route in COMPONENT_ROUTES}
_OPTIONS = (
    ("grpc.enable_retries", 0),
    ("grpc.enable_http_proxy", 0),
    ("grpc.service_config_disable_resolution", 1),
    ("grpc.max_send_message_length", -1),
)
_FRAMING_BYTES = 64 * 1024


class GrpcComponentClient:
    """`async with GrpcComponentClient("127.0.0.1:8081") as client`; `grpc://` may stand in front.

    `credentials` given, or `grpcs://` in front = TLS.
    """

    def __init__(
        self,
        target: str,
        *,
        token: str | None = None,
        max_response_bytes: int = fields.MAX_RESPONSE_BYTES,
        credentials: grpc.ChannelCredentials | None = None,
    ) -> None:
        scheme, _, rest = target.rpartition("://")
        limit = ("grpc.max_receive_message_length", max_response_bytes + _FRAMING_BYTES)
        options = (*_OPTIONS, limit)
        if scheme == "grpcs" or credentials is not None:
            secured = credentials or grpc.ssl_channel_credentials()
            self._channel = grpc.aio.secure_channel(rest, secured, options=options)
        else:
            self._channel = grpc.aio.insecure_channel(rest, options=options)
        self._target = rest
        self._token = token
        self._max_bytes = max_response_bytes

    async def describe(self) -> Card | ErrorBody:
        return await self._call("describe", Empty(), answer=Card)

    async def health(self) -> Health | ErrorBody:
        return await self._call("health", Empty(), answer=Health)

    async def plan(self, request: PlanRequest) -> PlanResponse | ErrorBody:
        return await self._call("plan", request, answer=PlanResponse)

    async def execute(self, request: ExecuteRequest) -> ExecuteResponse | ErrorBody:
        return await self._call("execute", request, answer=ExecuteResponse)

    async def observe(self, request: ObserveRequest) -> ObserveResponse | ErrorBody:
        return await self._call("observe", request, answer=ObserveResponse)

    async def reflect(self, request: ReflectRequest) -> ReflectResponse | ErrorBody:
        return await self._call("reflect", request, answer=ReflectResponse)

    async def cancel(self, request: CancelRequest) -> CancelResponse | ErrorBody:
        return await self._call("cancel", request, answer=CancelResponse)

    async def get_operation(self, call_id: str) -> OperationState | ErrorBody:
        return await self._call(
            "get_operation", OperationRequest(call_id=call_id), answer=OperationState
        )

    async def cancel_operation(self, call_id: str) -> CancelResponse | ErrorBody:
        asked = OperationRequest(call_id=call_id)
        return await self._call("cancel_operation", asked, answer=CancelResponse)

    async def execute_stream(self, request: ExecuteRequest) -> AsyncIterator[StreamItem]:
        """Progress as it arrives, then the response; a stream cut before it ends in UNKNOWN."""
        timeout_s = _timeout_s(request.context)
        if not await self._connect(timeout_s):
            yield self._unreachable()
            return
        method = self._channel.unary_stream(EXECUTE_STREAM_RPC)
        stream = method(
            proto.to_proto(request), timeout=timeout_s, metadata=self._metadata(request.context)
        )
        try:
            async for data in stream:
                item = proto.decode_response(ExecuteStreamItem, data, max_bytes=self._max_bytes)
                if item.response is not None:
                    yield item.response
                    return
                if item.progress is not None:
                    yield item.progress
        except grpc.aio.AioRpcError as failed:
            yield _failed(failed)
        except AcpFailure as failure:
            yield ErrorBody(error=failure.error)
        else:
            yield _cut()
        finally:
            stream.cancel()

    async def close(self) -> None:
        await self._channel.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def _call(self, route: str, request: msgspec.Struct, *, answer: type[T]) -> T | ErrorBody:
        context: Context | None = getattr(request, "context", None)
        timeout_s = _timeout_s(context)
        if not await self._connect(timeout_s):
            return self._unreachable()
        method = self._channel.unary_unary(_RPC[route])
        try:
            data = await method(
                proto.to_proto(request), timeout=timeout_s, metadata=self._metadata(context)
            )
            return proto.decode_response(answer, data, max_bytes=self._max_bytes)
        except grpc.aio.AioRpcError as failed:
            return _failed(failed)
        except AcpFailure as failure:
            return ErrorBody(error=failure.error)

    async def _connect(self, timeout_s: float) -> bool:
        """Whether a connection stands; waits while one is being made, gives up where it is
        refused.
        """
        try:
            async with asyncio.timeout(timeout_s):
                state = self._channel.get_state(try_to_connect=True)
                while state is not grpc.ChannelConnectivity.READY:
                    if state in (
                        grpc.ChannelConnectivity.TRANSIENT_FAILURE,
                        grpc.ChannelConnectivity.SHUTDOWN,
                    ):
                        return False
                    await self._channel.wait_for_state_change(state)
                    state = self._channel.get_state(try_to_connect=True)
        except TimeoutError:
            return False
        return True

    def _metadata(self, context: Context | None) -> tuple[tuple[str, str], ...]:
        return tuple(beside(context, self._token).items())

    def _unreachable(self) -> ErrorBody:
        return ErrorBody(
            error=error(
                Reason.UNAVAILABLE,
                f"The component at {self._target} cannot be reached.",
                side_effect=SideEffect.NONE,
                boundary=Boundary.COMPONENT,
            )
        )


def _timeout_s(context: Context | None) -> float:
    allowed_ms = QUESTION_TIMEOUT_MS if context is None else context.timeout_ms
    return (allowed_ms + ANSWER_SLACK_MS) / 1000


def _failed(failed: grpc.aio.AioRpcError) -> ErrorBody:
    trailers = failed.trailing_metadata() or ()
    trailer = next((value for name, value in trailers if name == fields.ACP_ERROR_TRAILER), None)
    return decode_trailer(failed.code().value[0], failed.details() or "", trailer=trailer)


def _cut() -> ErrorBody:
    return ErrorBody(
        error=error(
            Reason.UNAVAILABLE,
            "The stream ended before the response came.",
            side_effect=SideEffect.UNKNOWN,
            boundary=Boundary.COMPONENT,
        )
    )
