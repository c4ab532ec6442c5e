"""The gRPC front by its bytes: statuses, the trailer, metadata, health and reflection."""

import asyncio
from collections.abc import Iterator

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from acp_spec.codec import proto
from acp_spec.codec.error_trailer import decode_trailer
from acp_spec.model.calls import ErrorBody
from acp_spec.model.card import Limits
from acp_spec.sdk.call import Call
from acp_spec.sdk.component import Component
from acp_spec.sdk.serving import Server
from acp_spec.sdk.tests.served import Background, execute

EXECUTE = "/acp.v1.Executor/Execute"
Metadata = tuple[tuple[str, str], ...]


def component() -> Component:
    made = Component("raw", "1.0.0", limits=Limits(max_request_bytes=4000))

    @made.action("nothing")
    async def nothing(arguments: object, call: Call) -> object:
        return None

    return made


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Background(component()) as open_server:
        yield open_server


def failed(
    server: Server, data: bytes, *, metadata: Metadata = (), method: str = EXECUTE
) -> tuple[grpc.StatusCode, ErrorBody]:
    """Call with raw bytes; the status and the error of the trailer."""

    async def call() -> tuple[grpc.StatusCode, ErrorBody]:
        async with grpc.aio.insecure_channel(str(server.grpc)) as channel:
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await channel.unary_unary(method)(data, metadata=metadata, timeout=5)
            error = caught.value
            trailers = dict(error.trailing_metadata() or ())
            trailer = trailers.get("acp-error-bin")
            body = decode_trailer(error.code().value[0], error.details() or "", trailer=trailer)
            return error.code(), body

    return asyncio.run(call())


def test_bytes_that_are_no_message_are_an_invalid_argument(server: Server) -> None:
    status, body = failed(server, b"\xff\xff\xff")
    assert status is grpc.StatusCode.INVALID_ARGUMENT
    assert body.error.reason == "INVALID_REQUEST"


def test_a_payload_that_is_no_json_is_an_invalid_argument(server: Server) -> None:
    good = proto.to_proto(execute("nothing"))
    status, body = failed(server, good.replace(b"{}", b"{,"))
    assert status is grpc.StatusCode.INVALID_ARGUMENT
    assert "arguments" in body.error.message


def test_an_unknown_method_is_unimplemented(server: Server) -> None:
    status, _ = failed(server, b"", method="/acp.v1.Executor/Guess")
    assert status is grpc.StatusCode.UNIMPLEMENTED


def test_a_message_over_the_limit_has_its_own_reason(server: Server) -> None:
    data = proto.to_proto(execute("nothing", {"x": "y" * 5000}))
    status, body = failed(server, data)
    assert status is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert body.error.reason == "PAYLOAD_TOO_LARGE"


@pytest.mark.parametrize(
    ("metadata", "status"),
    [
        ((("acp-version", "2.0"),), grpc.StatusCode.FAILED_PRECONDITION),
        ((("acp-version", "x"),), grpc.StatusCode.INVALID_ARGUMENT),
        ((("idempotency-key", "another"),), grpc.StatusCode.INVALID_ARGUMENT),
    ],
)
def test_metadata_obeys_the_rules_of_headers(
    server: Server, metadata: Metadata, status: grpc.StatusCode
) -> None:
    found, body = failed(server, proto.to_proto(execute("nothing")), metadata=metadata)
    assert found is status
    assert body.error.side_effect is not None


def test_with_a_token_a_call_without_it_is_unauthenticated() -> None:
    with Background(component(), token="right") as guarded:
        data = proto.to_proto(execute("nothing"))
        status, _ = failed(guarded, data, metadata=(("authorization", "Bearer wrong"),))
        assert status is grpc.StatusCode.UNAUTHENTICATED


def test_health_and_reflection_are_served(server: Server) -> None:
    async def story() -> None:
        async with grpc.aio.insecure_channel(str(server.grpc)) as channel:
            health = health_pb2_grpc.HealthStub(channel)
            for service in ("", "acp.v1.Executor"):
                answer = await health.Check(health_pb2.HealthCheckRequest(service=service))
                assert answer.status == health_pb2.HealthCheckResponse.SERVING
            stub = reflection_pb2_grpc.ServerReflectionStub(channel)
            asked = reflection_pb2.ServerReflectionRequest(list_services="")
            async for answer in stub.ServerReflectionInfo(iter([asked])):
                names = {service.name for service in answer.list_services_response.service}
                assert {"acp.v1.Component", "acp.v1.Planner", "acp.v1.Executor"} <= names

    asyncio.run(story())
