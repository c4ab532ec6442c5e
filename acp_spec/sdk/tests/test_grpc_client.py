"""What a failure over gRPC proves, and that the client speaks to servers that know no ACP."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import grpc
import pytest

from acp_spec.codec import proto
from acp_spec.model.calls import ErrorBody, ExecuteResponse, ExecuteStreamItem, Progress
from acp_spec.model.enums import Boundary, SideEffect
from acp_spec.model.errors import Code
from acp_spec.sdk.grpc_client import GrpcComponentClient
from acp_spec.sdk.tests.scripted import closed_port, scripted
from acp_spec.sdk.tests.served import execute


class Foreign(grpc.GenericRpcHandler):  # type: ignore[misc]  # grpc ships no types
    """A server that fails every call with one status and no ACP trailer."""

    def __init__(self, status: grpc.StatusCode) -> None:
        self.calls = 0
        self._status = status

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler:
        if handler_call_details.method.endswith("ExecuteStream"):
            return grpc.unary_stream_rpc_method_handler(self._stream)
        return grpc.unary_unary_rpc_method_handler(self._fail)

    async def _fail(self, data: bytes, context: grpc.aio.ServicerContext) -> bytes:
        self.calls += 1
        await context.abort(self._status, "as the test says")
        raise AssertionError("abort raises")

    async def _stream(self, data: bytes, context: grpc.aio.ServicerContext) -> AsyncIterator[bytes]:
        yield proto.to_proto(ExecuteStreamItem(progress=Progress(message="one")))


@contextlib.asynccontextmanager
async def foreign(handler: Foreign) -> AsyncIterator[GrpcComponentClient]:
    server = grpc.aio.server()
    server.add_generic_rpc_handlers((handler,))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    async with GrpcComponentClient(f"127.0.0.1:{port}") as client:
        yield client
    await server.stop(0)


def called(target: str) -> ErrorBody | ExecuteResponse:
    async def call() -> ErrorBody | ExecuteResponse:
        async with GrpcComponentClient(target) as client:
            return await client.execute(execute("a", timeout_ms=1000))

    return asyncio.run(call())


def test_a_refused_connection_proves_that_nothing_was_sent() -> None:
    answer = called(f"127.0.0.1:{closed_port()}")
    assert isinstance(answer, ErrorBody)
    assert answer.error.code is Code.UNAVAILABLE
    assert answer.error.side_effect is SideEffect.NONE


def test_a_server_that_speaks_no_http2_proves_that_nothing_was_sent() -> None:
    with scripted(b"HTTP/1.1 400 Bad Request\r\n\r\n", None, None, None) as server:
        answer = called(f"127.0.0.1:{server.port}")
    assert isinstance(answer, ErrorBody)
    assert answer.error.code is Code.UNAVAILABLE


@pytest.mark.parametrize(
    ("status", "side_effect"),
    [
        (grpc.StatusCode.UNIMPLEMENTED, SideEffect.NONE),
        (grpc.StatusCode.UNAUTHENTICATED, SideEffect.NONE),
        (grpc.StatusCode.UNAVAILABLE, SideEffect.UNKNOWN),
        (grpc.StatusCode.INTERNAL, SideEffect.UNKNOWN),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, SideEffect.UNKNOWN),
    ],
)
def test_a_status_without_an_acp_trailer_is_read_by_the_table_and_not_repeated(
    status: grpc.StatusCode, side_effect: SideEffect
) -> None:
    handler = Foreign(status)

    async def story() -> None:
        async with foreign(handler) as client:
            answer = await client.execute(execute("a"))
            assert isinstance(answer, ErrorBody)
            assert answer.error.code.value == status.name
            assert answer.error.side_effect is side_effect
            assert answer.error.boundary is Boundary.COMPONENT

    asyncio.run(story())
    assert handler.calls == 1


def test_a_stream_that_ends_before_the_response_leaves_the_effect_unknown() -> None:
    async def story() -> None:
        async with foreign(Foreign(grpc.StatusCode.INTERNAL)) as client:
            items = [item async for item in client.execute_stream(execute("a"))]
            assert isinstance(items[0], Progress)
            assert isinstance(items[-1], ErrorBody)
            assert items[-1].error.side_effect is SideEffect.UNKNOWN

    asyncio.run(story())
