"""gRPC with messages as bytes: any method path, any message, status and trailers as they came.

It never retries (the channel's own retries are off), so what the peer sees is what a case sent.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass

import grpc

from acp_spec.bindings.fields import ACP_ERROR_TRAILER

MESSAGE_MAX_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class GrpcAnswer:
    """`status` is the canonical name (`OK`, `NOT_FOUND`); `items` are the messages that came."""

    status: str
    message: str
    trailers: dict[str, str]
    error_trailer: bytes | None
    items: tuple[bytes, ...]
    elapsed_ms: float


class GrpcBytes:
    """One channel to one target `grpc(s)://host:port`."""

    def __init__(self, url: str) -> None:
        scheme, _, address = url.partition("://")
        options = [
            ("grpc.enable_retries", 0),
            ("grpc.max_receive_message_length", MESSAGE_MAX_BYTES),
            ("grpc.max_send_message_length", -1),
            ("grpc.use_local_subchannel_pool", 1),
        ]
        if scheme == "grpcs":
            credentials = grpc.ssl_channel_credentials()
            self._channel = grpc.aio.secure_channel(address, credentials, options=options)
        else:
            self._channel = grpc.aio.insecure_channel(address, options=options)

    async def close(self) -> None:
        await self._channel.close()

    async def unary(
        self, path: str, data: bytes, *, metadata: Mapping[str, str], timeout_s: float
    ) -> GrpcAnswer:
        """One call of a unary method."""
        call = self._channel.unary_unary(path)(
            data, metadata=tuple(metadata.items()), timeout=timeout_s
        )
        return await _collect(call, streaming=False)

    async def stream(
        self, path: str, data: bytes, *, metadata: Mapping[str, str], timeout_s: float
    ) -> GrpcAnswer:
        """One call of a method that answers with a stream."""
        call = self._channel.unary_stream(path)(
            data, metadata=tuple(metadata.items()), timeout=timeout_s
        )
        return await _collect(call, streaming=True)


async def _collect(call: grpc.aio.Call, *, streaming: bool) -> GrpcAnswer:
    begun = time.monotonic()
    items: list[bytes] = []
    try:
        if streaming:
            items += [item async for item in call]
        else:
            items.append(await call)
    except grpc.aio.AioRpcError:
        pass  # status and trailers below say it
    status = await call.code()
    trailing = await call.trailing_metadata()
    trailers = {k: v for k, v in trailing or () if isinstance(v, str)}
    error = next((v for k, v in trailing or () if k == ACP_ERROR_TRAILER), None)
    return GrpcAnswer(
        status=str(status.name),
        message=str(await call.details() or ""),
        trailers=trailers,
        error_trailer=error if isinstance(error, bytes) or error is None else error.encode(),
        items=tuple(items),
        elapsed_ms=(time.monotonic() - begun) * 1000,
    )
