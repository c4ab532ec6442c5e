"""A grpc.aio server that no method path stops. Components and the gateway listen with it.

grpc.aio decodes the path of each call in the one task that accepts calls; bytes that are no UTF-8
end that task and with it the server, for everybody, without any token (seen with grpcio 1.80 to
1.85). Here every method that is served is registered by its path, each with its own accepting loop,
and whatever else comes is UNIMPLEMENTED without its path ever being read.

It must be given every method: a generic handler that is added later is not asked.
"""

import asyncio
import logging
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any, Final

import grpc
from grpc._cython import cygrpc
from grpc.aio._server import Server, _augment_channel_arguments

log = logging.getLogger(__name__)

Options = Sequence[tuple[str, int | str]]
# What this stands on beside the public API; a grpcio without one of them serves as it is.
_NEEDED: Final = ("_RequestCallError", "_handle_rpc", "_schedule_rpc_coro", "_MethodResolver")
_NEEDED_OF_SERVER: Final = (
    "_make_request_call_future",
    "_request_call",
    "_request_registered_call",
)


def steady_server(
    handlers: Mapping[str, grpc.RpcMethodHandler], *, options: Options = ()
) -> Server:
    """A server of these methods (path -> handler); services of libraries may be added to it."""
    logging.getLogger(cygrpc.__name__).addFilter(_of_ours)
    if is_steady():
        return _SteadyServer(handlers, options)
    log.warning("grpcio %s: a wrong method path can end the gRPC port", grpc.__version__)
    server = grpc.aio.server(options=options)
    server.add_generic_rpc_handlers((_ByPath(handlers),))
    return server


def is_steady() -> bool:
    """Whether this grpcio has what the protection needs."""
    return all(hasattr(cygrpc, name) for name in _NEEDED) and all(
        hasattr(cygrpc.AioServer, name) for name in _NEEDED_OF_SERVER
    )


def _of_ours(record: logging.LogRecord) -> bool:
    """Leaves out grpc's traceback for metadata that are no text: they are a caller's fault, and
    the line would hold what was sent, a token perhaps.
    """
    return not str(record.msg).startswith("Invalid encoding on")


class _SteadyServer(Server):  # type: ignore[misc]  # grpc ships no types
    """grpc.aio's own server around another accepting core; its constructor would make that."""

    def __init__(self, handlers: Mapping[str, grpc.RpcMethodHandler], options: Options) -> None:
        self._loop = cygrpc.get_working_loop()
        self._server = _Accepting(self._loop, None, (), None, _augmented(options), None)
        self._server.add_registered_method_handlers(dict(handlers))


class _Accepting(cygrpc.AioServer):  # type: ignore[misc]  # grpc ships no types
    """Accepts in one loop per method instead of one for all."""

    def __init__(self, loop: asyncio.AbstractEventLoop, *arguments: Any) -> None:
        super().__init__(loop, *arguments)
        self._accepting_loop = loop
        self._known: dict[str, grpc.RpcMethodHandler] = {}
        self._running: set[asyncio.Task[None]] = set()

    def add_registered_method_handlers(self, handlers: dict[str, grpc.RpcMethodHandler]) -> None:
        super().add_registered_method_handlers(handlers)
        self._known |= handlers

    def _make_request_call_future(self, method: bytes | None) -> "asyncio.Task[None]":
        """What grpc's own loop waits for: it ends only with the server."""
        accepting = self._accept_unknown() if method is None else self._accept(method)
        return self._accepting_loop.create_task(accepting)

    async def _accept(self, method: bytes) -> None:
        path = method.decode()
        resolver = cygrpc._MethodResolver([], {path: self._known[path]})
        while True:
            try:
                call = await self._request_registered_call(method)
            except cygrpc._RequestCallError:
                if self.is_running():
                    continue  # one call that could not be accepted is no reason to stop
                raise  # the server ends, and its own loop waits to hear it
            self._answer(call, path, resolver=resolver)

    async def _accept_unknown(self) -> None:
        nothing = cygrpc._MethodResolver([], {})
        while True:
            try:
                call = await self._request_call()
            except cygrpc._RequestCallError:
                if self.is_running():
                    continue  # one call that could not be accepted is no reason to stop
                raise  # the server ends, and its own loop waits to hear it
            self._answer(call, "", resolver=nothing)

    def _answer(self, call: object, path: str, *, resolver: object) -> None:
        loop = self._accepting_loop
        handling = cygrpc._handle_rpc(path, resolver, (), call, loop, False)
        work: Coroutine[Any, Any, None] = cygrpc._schedule_rpc_coro(handling, call, loop, path)
        task = loop.create_task(work)
        self._running.add(task)  # the loop alone would not keep it
        task.add_done_callback(self._running.discard)


class _ByPath(grpc.GenericRpcHandler):  # type: ignore[misc]  # grpc ships no types
    """The same methods for a server that has only grpc's own accepting loop."""

    def __init__(self, handlers: Mapping[str, grpc.RpcMethodHandler]) -> None:
        self._handlers = handlers

    def service(
        self, handler_call_details: grpc.HandlerCallDetails
    ) -> grpc.RpcMethodHandler | None:
        return self._handlers.get(handler_call_details.method)


def _augmented(options: Options) -> tuple[tuple[str, int | str], ...]:
    """The options as grpc.aio itself would pass them on: with the user agent and the like."""
    augmented: tuple[tuple[str, int | str], ...] = _augment_channel_arguments(options, None)
    return augmented
