"""gRPC peers for tests: raw grpc.aio servers whose handlers take and give bytes."""

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import grpc

Handler = Callable[[bytes, Any], Awaitable[bytes]]


class _Raw(grpc.GenericRpcHandler):  # type: ignore[misc]  # grpc ships no types
    def __init__(self, handlers: dict[str, Handler]) -> None:
        self._handlers = handlers

    def service(self, details: Any) -> Any:
        handler = self._handlers.get(details.method)
        return handler and grpc.unary_unary_rpc_method_handler(handler)


@contextlib.asynccontextmanager
async def server(
    handlers: dict[str, Handler], *, tls: tuple[bytes, bytes] | None = None, port: int = 0
) -> AsyncIterator[int]:
    """A raw gRPC server on a free port."""
    running = grpc.aio.server(options=[("grpc.so_reuseport", 0)])
    running.add_generic_rpc_handlers((_Raw(handlers),))
    place = f"127.0.0.1:{port}"
    if tls:
        bound = running.add_secure_port(place, grpc.ssl_server_credentials([tls]))
    else:
        bound = running.add_insecure_port(place)
    await running.start()
    try:
        yield bound
    finally:
        await running.stop(0)


def aborting(status: Any, *trailer: tuple[str, bytes]) -> Handler:
    async def handle(data: bytes, call: Any) -> bytes:
        await call.abort(status, "said so", trailer)
        return b""

    return handle
