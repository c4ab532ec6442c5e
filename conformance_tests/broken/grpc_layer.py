"""A layer before a gRPC server that may change what goes in and what comes out.

An interceptor that works on bytes, for the methods of `acp.v1` and for unknown ones.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import grpc

from acp_spec.bindings.fields import ACP_ERROR_TRAILER

_STATUS = {code.name: code for code in grpc.StatusCode}


@dataclass(frozen=True, slots=True, kw_only=True)
class GrpcRequest:
    path: str
    data: bytes
    metadata: Mapping[str, str] = field(default_factory=dict)

    @property
    def do(self) -> str:
        return self.path.rpartition("/")[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class GrpcReply:
    """`items` are the messages; `trailer` is `acp-error-bin`, None = not sent."""

    status: str = "OK"
    message: str = ""
    trailer: bytes | None = None
    items: tuple[bytes, ...] = ()


GrpcForward: TypeAlias = Callable[[GrpcRequest], Awaitable[GrpcReply]]
GrpcRule: TypeAlias = Callable[[GrpcRequest, GrpcForward], Awaitable[GrpcReply]]


class _Aborted(Exception):
    def __init__(self, reply: GrpcReply) -> None:
        super().__init__(reply.message)
        self.reply = reply


class _Context:
    """What a handler sees in place of the real context: its end is caught."""

    def __init__(self, real: Any, metadata: Mapping[str, str]) -> None:
        self._real = real
        self._metadata = metadata

    def invocation_metadata(self) -> tuple[tuple[str, str], ...]:
        return tuple(self._metadata.items())

    def time_remaining(self) -> float | None:
        left: float | None = self._real.time_remaining()
        return left

    async def abort(self, code: grpc.StatusCode, *said: Any) -> None:
        details, trailing = (*said, "", ())[:2] if said else ("", ())
        trailer = next((v for k, v in trailing if k == ACP_ERROR_TRAILER), None)
        raise _Aborted(GrpcReply(status=code.name, message=details, trailer=trailer))


class GrpcLayer(grpc.aio.ServerInterceptor):  # type: ignore[misc]  # grpc ships no types
    """Every call of an ACP method, or of none, goes through one rule."""

    def __init__(self, rule: GrpcRule) -> None:
        self._rule = rule

    async def intercept_service(self, continuation: Any, details: Any) -> Any:
        handler = await continuation(details)
        path: str = details.method
        if handler is not None and not path.startswith("/acp.v1."):
            return handler
        if handler is not None and handler.response_streaming:
            return grpc.unary_stream_rpc_method_handler(self._stream(path, handler))
        return grpc.unary_unary_rpc_method_handler(self._unary(path, handler))

    def _unary(self, path: str, handler: Any) -> Callable[[bytes, Any], Awaitable[bytes]]:
        async def serve(data: bytes, context: Any) -> bytes:
            reply = await self._ruled(path, data, handler=handler, context=context)
            return reply.items[0] if reply.items else b""

        return serve

    def _stream(self, path: str, handler: Any) -> Callable[[bytes, Any], AsyncIterator[bytes]]:
        async def serve(data: bytes, context: Any) -> AsyncIterator[bytes]:
            reply = await self._ruled(path, data, handler=handler, context=context)
            for item in reply.items:
                yield item

        return serve

    async def _ruled(self, path: str, data: bytes, *, handler: Any, context: Any) -> GrpcReply:
        stated = {k: v for k, v in context.invocation_metadata() or () if isinstance(v, str)}
        request = GrpcRequest(path=path, data=data, metadata=stated)

        async def forward(changed: GrpcRequest) -> GrpcReply:
            return await _through(handler, changed, context=context)

        reply = await self._rule(request, forward)
        if reply.status != "OK":
            trailing = () if reply.trailer is None else ((ACP_ERROR_TRAILER, reply.trailer),)
            await context.abort(_STATUS[reply.status], reply.message, trailing)
        return reply


async def _through(handler: Any, request: GrpcRequest, *, context: Any) -> GrpcReply:
    if handler is None:
        return GrpcReply(status="UNIMPLEMENTED", message="no such method")
    held = _Context(context, request.metadata)
    try:
        if handler.response_streaming:
            items = [item async for item in handler.unary_stream(request.data, held)]
            return GrpcReply(items=tuple(items))
        return GrpcReply(items=(await handler.unary_unary(request.data, held),))
    except _Aborted as aborted:
        return aborted.reply
