"""A component on real sockets, and a client of one binding, for the tests that run on both."""

import asyncio
import contextlib
import enum
import threading
from collections.abc import AsyncIterator, Awaitable, Callable

import msgspec

from acp_spec.model.calls import ErrorBody, ExecuteRequest, ExecuteResponse
from acp_spec.sdk.client import ComponentClient
from acp_spec.sdk.component import Component
from acp_spec.sdk.grpc_client import GrpcComponentClient
from acp_spec.sdk.http_client import HttpComponentClient
from acp_spec.sdk.serving import Address, Server
from acp_spec.sdk.testing import ContextOptions, InProcess, build_context
from acp_spec.sdk.values import JsonText, write

ANY_PORT = Address("127.0.0.1", 0)


class Binding(enum.Enum):
    HTTP = "http"
    GRPC = "grpc"
    IN_PROCESS = "in process"


Story = Callable[[ComponentClient], Awaitable[None]]


@contextlib.asynccontextmanager
async def serving(component: Component, *, token: str | None = None) -> AsyncIterator[Server]:
    """The component on free ports of loopback, both bindings."""
    server = Server(component, http=ANY_PORT, grpc=ANY_PORT, token=token)
    await server.start()
    try:
        yield server
    finally:
        await server.stop(drain_s=0.0)


class Background:
    """A server on a thread and loop of its own, for tests that share it and speak raw bytes."""

    def __init__(self, component: Component, *, token: str | None = None) -> None:
        self._component = component
        self._token = token
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> Server:
        self._thread.start()
        server = Server(self._component, http=ANY_PORT, grpc=ANY_PORT, token=self._token)
        asyncio.run_coroutine_threadsafe(server.start(), self._loop).result(10)
        self._server = server
        return server

    def __exit__(self, *failed: object) -> None:
        asyncio.run_coroutine_threadsafe(self._server.stop(drain_s=0), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()


def client_of(server: Server, binding: Binding, *, token: str | None = None) -> ComponentClient:
    if binding is Binding.HTTP:
        return HttpComponentClient(f"http://{server.http}", token=token)
    return GrpcComponentClient(f"grpc://{server.grpc}", token=token)


def tell(component: Component, binding: Binding, story: Story) -> None:
    """Run a story of one client against the component over one binding."""

    async def run() -> None:
        if binding is Binding.IN_PROCESS:
            async with InProcess(component) as near:
                await story(near)
            return
        async with serving(component) as server, client_of(server, binding) as client:
            await story(client)

    asyncio.run(run())


def execute(action: str, arguments: object = None, **stated: object) -> ExecuteRequest:
    """A request for one action; `stated` goes into the context."""
    options: ContextOptions = stated  # type: ignore[assignment]  # checked by build_context
    sent = {} if arguments is None else arguments
    return ExecuteRequest(
        context=build_context(action, sent, **options), action=action, arguments=write(sent)
    )


def again(request: ExecuteRequest, *, attempt: int) -> ExecuteRequest:
    """The same call as another attempt."""
    context = msgspec.structs.replace(request.context, attempt=attempt)
    return msgspec.structs.replace(request, context=context)


def output_of(answer: ExecuteResponse | ErrorBody) -> bytes:
    assert isinstance(answer, ExecuteResponse), answer
    return bytes(answer.output)


def reason_of(answer: object) -> str:
    assert isinstance(answer, ErrorBody), answer
    return answer.error.reason


def json_text(text: str) -> JsonText:
    return JsonText(text.encode())
