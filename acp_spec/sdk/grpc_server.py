"""The gRPC front of a component: handlers by method path over the same dispatcher.

Methods come from `bindings.routes`; there are no generated stubs. Errors are a status and the
`acp-error-bin` trailer. It enforces nothing of its own beyond the size that gRPC must be told.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import grpc
import msgspec

from acp_spec.bindings import fields
from acp_spec.bindings.errors import grpc_status
from acp_spec.bindings.routes import COMPONENT_ROUTES, EXECUTE_STREAM_RPC, Route
from acp_spec.codec import proto
from acp_spec.codec.error_trailer import encode_trailer
from acp_spec.model.calls import (
    CancelRequest,
    ErrorBody,
    ExecuteRequest,
    ExecuteResponse,
    ExecuteStreamItem,
    ObserveRequest,
    OperationRequest,
    PlanRequest,
    Progress,
    ReflectRequest,
)
from acp_spec.model.errors import AcpFailure
from acp_spec.sdk.arrival import Arrival
from acp_spec.sdk.dispatch import Dispatcher

MESSAGE_SLACK_BYTES = 64 * 1024
"""Beyond max_request_bytes gRPC itself still reads, so that the refusal is ours, with its reason.
"""
STATUS_MESSAGE_MAX = 1000
"""Characters of `grpc-message`, which travels percent-encoded; the trailer has the whole."""
PROGRESS_QUEUE_MAX = 1000
"""Unread progress messages kept per stream; more is dropped: progress is news, not a result."""

_STATUS = {code.value[0]: code for code in grpc.StatusCode}


class GrpcFront(grpc.GenericRpcHandler):  # type: ignore[misc]  # grpc ships no types
    """Has a handler for each method path of a component; a server may also ask it for one."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher = dispatcher
        self._max_bytes = dispatcher.component.limits.max_request_bytes
        self.handlers: dict[str, grpc.RpcMethodHandler] = {
            route.rpc: grpc.unary_unary_rpc_method_handler(self._unary(route))
            for route in COMPONENT_ROUTES
        }
        self.handlers[EXECUTE_STREAM_RPC] = grpc.unary_stream_rpc_method_handler(self._stream)

    def service(
        self, handler_call_details: grpc.HandlerCallDetails
    ) -> grpc.RpcMethodHandler | None:
        return self.handlers.get(handler_call_details.method)

    def _unary(self, route: Route) -> Callable[[bytes, grpc.aio.ServicerContext], Awaitable[bytes]]:
        async def serve(data: bytes, context: grpc.aio.ServicerContext) -> bytes:
            try:
                answer = await self._answer(route, data, arrival=self._arrival(context))
            except AcpFailure as failure:
                answer = ErrorBody(error=failure.error)
            if isinstance(answer, ErrorBody):
                await _abort(answer, context)
            return proto.to_proto(answer)

        return serve

    async def _answer(self, route: Route, data: bytes, *, arrival: Arrival) -> msgspec.Struct:
        self._dispatcher.check_peer(arrival)
        request = proto.decode_request(route.rpc_in, data, max_bytes=self._max_bytes)
        match request:
            case PlanRequest() | ExecuteRequest() | ObserveRequest() | ReflectRequest():
                return await self._dispatcher.call(request, arrival)
            case CancelRequest():
                return await self._dispatcher.cancel(request, arrival)
            case OperationRequest(call_id=call_id):
                if route.name == "cancel_operation":
                    return await self._dispatcher.cancel_operation(call_id, arrival)
                return await self._dispatcher.get_operation(call_id, arrival)
            case _ if route.name == "describe":
                return self._dispatcher.describe(arrival)
            case _:
                return self._dispatcher.health(arrival)

    async def _stream(self, data: bytes, context: grpc.aio.ServicerContext) -> AsyncIterator[bytes]:
        items: asyncio.Queue[Progress | None] = asyncio.Queue(PROGRESS_QUEUE_MAX)
        try:
            arrival = self._arrival(context)
            self._dispatcher.check_peer(arrival)
            request = proto.decode_request(ExecuteRequest, data, max_bytes=self._max_bytes)
        except AcpFailure as failure:
            await _abort(ErrorBody(error=failure.error), context)
            return
        working = asyncio.ensure_future(
            self._dispatcher.call(request, arrival, on_progress=lambda item: _offer(items, item))
        )
        working.add_done_callback(lambda _: _close(items))
        try:
            while (item := await items.get()) is not None:
                yield proto.to_proto(ExecuteStreamItem(progress=item))
        finally:
            if not working.done():
                working.cancel()  # the caller is gone; what that means is the dispatcher's rule
        outcome = await working
        if isinstance(outcome, ErrorBody):
            await _abort(outcome, context)
            return
        assert isinstance(outcome, ExecuteResponse)
        yield proto.to_proto(ExecuteStreamItem(response=outcome))

    def _arrival(self, context: grpc.aio.ServicerContext) -> Arrival:
        metadata = dict(context.invocation_metadata() or ())
        left_s = context.time_remaining()
        return Arrival(
            at_ms=self._dispatcher.clock.monotonic_ms(),
            timeout_ms=None if left_s is None else left_s * 1000,
            acp_version=metadata.get(fields.ACP_VERSION),
            idempotency_key=metadata.get(fields.IDEMPOTENCY_KEY),
            authorization=metadata.get(fields.AUTHORIZATION),
            traceparent=metadata.get(fields.TRACEPARENT),
            tracestate=metadata.get(fields.TRACESTATE),
        )


def server_options(max_request_bytes: int) -> list[tuple[str, int]]:
    """What a grpc.aio server needs to be told for this front."""
    return [
        ("grpc.max_receive_message_length", 2 * max_request_bytes + MESSAGE_SLACK_BYTES),
        ("grpc.max_send_message_length", -1),
        ("grpc.so_reuseport", 0),
    ]


async def _abort(body: ErrorBody, context: grpc.aio.ServicerContext) -> None:
    trailer = ((fields.ACP_ERROR_TRAILER, encode_trailer(body)),)
    status = _STATUS[grpc_status(body.error)]
    await context.abort(status, body.error.message[:STATUS_MESSAGE_MAX], trailer)


def _offer(items: "asyncio.Queue[Progress | None]", item: Progress) -> None:
    if not items.full():
        items.put_nowait(item)


def _close(items: "asyncio.Queue[Progress | None]") -> None:
    """The end must get in even when nobody reads: the last progress item gives way."""
    if items.full():
        items.get_nowait()
    items.put_nowait(None)
