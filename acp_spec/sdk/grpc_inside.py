"""What the steady server stands on: grpc's own server, from inside. Private API of grpcio.

Only `steady_grpc` imports this, and serves without it where a grpcio has it no more.
"""

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any

import grpc
from grpc._cython import cygrpc
from grpc.aio._server import Server, _augment_channel_arguments

Options = Sequence[tuple[str, int | str]]


class SteadyServer(Server):  # type: ignore[misc]  # grpc ships no types
    """grpc.aio's own server around another accepting core; its constructor would make that."""

    def __init__(self, handlers: Mapping[str, grpc.RpcMethodHandler], options: Options) -> None:
        self._loop = cygrpc.get_working_loop()
        self._server = Accepting(self._loop, None, (), None, _augmented(options), None)
        self._server.add_registered_method_handlers(dict(handlers))


class Accepting(cygrpc.AioServer):  # type: ignore[misc]  # grpc ships no types
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


def _augmented(options: Options) -> tuple[tuple[str, int | str], ...]:
    """The options as grpc.aio itself would pass them on: with the user agent and the like."""
    augmented: tuple[tuple[str, int | str], ...] = _augment_channel_arguments(options, None)
    return augmented
