"""`acp.v1.Gateway` over a real channel: the same operations, the same errors, an end that comes."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import grpc
import msgspec
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from acp_spec.bindings.fields import ACP_ERROR_TRAILER
from acp_spec.bindings.routes import GATEWAY
from acp_spec.codec import proto
from acp_spec.codec.error_trailer import decode_trailer
from acp_spec.model import gateway_calls as calls
from acp_spec.model.enums import StepType
from acp_spec.model.errors import AcpError
from acp_spec.model.payload import payload
from acp_spec.model.session import (
    CompleteOperation,
    ManualStep,
    Opened,
    OpenSession,
    RegisterRequest,
    SessionPage,
    SessionView,
    StepResult,
    Validation,
)
from gateway.runtime.tokens import TokenRequest
from gateway.stores.errors import StoreFailed
from gateway.transports.tests.in_memory import CALL_BACK_TOKEN, PAYLOAD, WORKFLOW, House
from gateway.transports.tests.listening import grpc_server, run, settings

REQUIRED = {"mode": "required"}
OPEN = calls.OpenSessionRequest(session=OpenSession(workflow="w", input=PAYLOAD))


class Caller:
    """Calls routes by their name on one channel."""

    def __init__(self, channel: grpc.aio.Channel, token: str = "") -> None:
        self.channel = channel
        self._metadata = (("authorization", f"Bearer {token}"),) if token else ()

    async def ask(
        self, name: str, request: msgspec.Struct, *more: tuple[str, str]
    ) -> msgspec.Struct:
        route = GATEWAY[name]
        method = self.channel.unary_unary(route.rpc)
        data = await method(proto.to_proto(request), metadata=(*self._metadata, *more))
        return proto.decode_response(route.rpc_out, data)

    async def fails(self, name: str, request: msgspec.Struct) -> AcpError:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await self.ask(name, request)
        return read_error(caught.value)

    def stream(self, request: calls.StreamEventsRequest) -> grpc.aio.UnaryStreamCall:
        method = self.channel.unary_stream(GATEWAY["stream_events"].rpc)
        return method(proto.to_proto(request), metadata=self._metadata)


def read_error(failed: grpc.aio.AioRpcError) -> AcpError:
    trailers = dict(failed.trailing_metadata() or ())
    trailer = trailers[ACP_ERROR_TRAILER]
    found = decode_trailer(failed.code().value[0], failed.details() or "", trailer=trailer).error
    assert found.code.name == failed.code().name
    return found


@asynccontextmanager
async def calling(house: House, token: str = "", **more: object) -> AsyncIterator[Caller]:
    async with (
        grpc_server(house, settings(**more)) as server,
        grpc.aio.insecure_channel(server.address) as channel,
    ):
        yield Caller(channel, token)


def test_a_sessions_life_over_grpc(house: House) -> None:
    async def story() -> None:
        async with calling(house) as caller:
            opened = await caller.ask("open_session", OPEN, ("traceparent", "00-a-b-01"))
            assert isinstance(opened, calls.OpenSessionResponse)
            assert isinstance(opened.opened, Opened)
            session_id = opened.opened.session_id
            assert house.sessions.kept[session_id].trace.traceparent == "00-a-b-01"
            one = calls.SessionIdRequest(session_id=session_id)
            view = await caller.ask("get_session", calls.GetSessionRequest(session_id=session_id))
            assert isinstance(view, SessionView)
            assert view.output == PAYLOAD
            page = await caller.ask("list_sessions", calls.ListSessionsRequest(status="running"))
            assert isinstance(page, SessionPage)
            assert [one.session_id for one in page.sessions] == [session_id]
            step = ManualStep(step_type=StepType.PLAN, payload=payload(b"{}"), step_key="k")
            asked = calls.ExecuteStepRequest(session_id=session_id, step=step)
            result = await caller.ask("execute_step", asked)
            assert isinstance(result, StepResult)
            document = await caller.ask("get_trajectory", one)
            assert isinstance(document, calls.Document)
            assert session_id.encode() in bytes(document.json)
            await caller.ask("cancel_session", one)
            await caller.ask("delete_session", one)
            assert (await caller.fails("cancel_session", one)).reason == "NOT_FOUND"

    run(story)


def test_waiting_is_capped_as_over_http(house: House) -> None:
    async def story() -> None:
        async with calling(house) as caller:
            await caller.ask("open_session", msgspec.structs.replace(OPEN, wait_s=9999))
            assert house.sessions.waits == [60]

    run(story)


def test_components_and_workflows_over_grpc(house: House) -> None:
    async def story() -> None:
        async with calling(house) as caller:
            await caller.ask("register_component", RegisterRequest(url="http://ledger:1"))
            page = await caller.ask("list_components", calls.Empty())
            assert isinstance(page, calls.ComponentPage)
            assert page.components[0].card.name == "ledger"
            put = calls.PutWorkflowRequest(
                name="hotline", version="1.0.0", source=WORKFLOW.decode()
            )
            stored = await caller.ask("put_workflow", put)
            assert isinstance(stored, calls.WorkflowVersion)
            assert stored.active
            wrong = calls.ValidateWorkflowRequest(source="steps: []")
            checked = await caller.ask("validate_workflow", wrong)
            assert isinstance(checked, Validation)
            assert not checked.valid
            other = msgspec.structs.replace(put, source=put.source + "# changed\n")
            assert (await caller.fails("put_workflow", other)).reason == "ALREADY_EXISTS"

    run(story)


def test_events_come_as_messages_and_the_stream_ends_with_the_session(house: House) -> None:
    async def story() -> None:
        async with calling(house) as caller:
            await caller.ask("open_session", OPEN)
            (session_id,) = house.sessions.kept
            house.sessions.happen(session_id, "Opened")
            call = caller.stream(calls.StreamEventsRequest(session_id=session_id))
            events: list[calls.SessionEvent] = []
            async for data in call:
                events.append(proto.decode_response(calls.SessionEvent, data))
                if len(events) == 1:
                    house.sessions.happen(session_id, "Ended", b'{"status": "SUCCEEDED"}')
            assert [(event.id, event.type) for event in events] == [(1, "Opened"), (2, "Ended")]
            assert bytes(events[1].data) == b'{"status": "SUCCEEDED"}'
            resumed = calls.StreamEventsRequest(session_id=session_id, last_event_id=2)
            assert [data async for data in caller.stream(resumed)] == []

    run(story)


def test_a_stream_fails_with_the_same_errors(house: House) -> None:
    async def story() -> None:
        async with calling(house) as caller:
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await caller.stream(calls.StreamEventsRequest(session_id="NOPE")).read()
            assert read_error(caught.value).reason == "NOT_FOUND"
            await caller.ask("open_session", OPEN)
            (session_id,) = house.sessions.kept
            house.sessions.kept[session_id].forgotten = 5
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await caller.stream(calls.StreamEventsRequest(session_id=session_id)).read()
            assert read_error(caught.value).reason == "EVENTS_EXPIRED"

    run(story)


def test_tokens_and_scopes_hold_over_grpc_too(house: House) -> None:
    async def story() -> None:
        tokens = house.services.tokens
        submit = (await tokens.create(TokenRequest(scopes=("submit",)))).token
        async with calling(house, auth=REQUIRED) as nobody:
            failure = await nobody.fails("open_session", OPEN)
            assert failure.reason == "UNAUTHENTICATED"
        async with calling(house, submit, auth=REQUIRED) as caller:
            await caller.ask("open_session", OPEN)
            failure = await caller.fails("list_components", calls.Empty())
            assert failure.reason == "PERMISSION_DENIED"
        async with calling(house, submit, auth=REQUIRED) as caller:
            done = calls.CompleteOperationRequest(
                call_id="c", token=CALL_BACK_TOKEN, result=CompleteOperation(output=PAYLOAD)
            )
            await caller.ask("complete_operation", done)
            assert "c" in house.sessions.completed

    run(story)


def test_bytes_that_are_no_message_are_the_callers_fault(house: House) -> None:
    async def story() -> None:
        async with calling(house) as caller:
            method = caller.channel.unary_unary(GATEWAY["open_session"].rpc)
            for data in (b"\xff\xff", b"", b"\x0a\x02\x0a\x00", b"x" * 15_000):
                with pytest.raises(grpc.aio.AioRpcError) as caught:
                    await method(data)
                found = read_error(caught.value)
                assert found.reason in ("INVALID_REQUEST", "PAYLOAD_TOO_LARGE")
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await caller.channel.unary_unary("/acp.v1.Gateway/Nothing")(b"")
            assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED

    run(story)


def test_the_gateways_own_failures_are_told_apart_and_leak_nothing(house: House) -> None:
    async def story() -> None:
        async with calling(house) as caller:
            house.sessions.breaks = RuntimeError("secret")
            failure = await caller.fails("open_session", OPEN)
            assert failure.reason == "INTERNAL"
            assert "secret" not in failure.message
            house.sessions.breaks = StoreFailed("secret")
            assert (await caller.fails("open_session", OPEN)).reason == "UNAVAILABLE"

    run(story)


def test_health_and_reflection_stand_beside_it(house: House) -> None:
    async def story() -> None:
        async with (
            grpc_server(house) as server,
            grpc.aio.insecure_channel(server.address) as channel,
        ):
            health = health_pb2_grpc.HealthStub(channel)
            asked = health_pb2.HealthCheckRequest(service="acp.v1.Gateway")
            assert (await health.Check(asked)).status == health_pb2.HealthCheckResponse.SERVING
            await server.set_ready(False)
            assert (await health.Check(asked)).status == health_pb2.HealthCheckResponse.NOT_SERVING
            reflection = reflection_pb2_grpc.ServerReflectionStub(channel)
            question = reflection_pb2.ServerReflectionRequest(list_services="")
            async for answer in reflection.ServerReflectionInfo(iter([question])):
                names = {service.name for service in answer.list_services_response.service}
                assert "acp.v1.Gateway" in names
                break

    run(story)


def test_the_server_ends_with_a_stream_open(house: House) -> None:
    async def story() -> None:
        async with (
            grpc_server(house) as server,
            grpc.aio.insecure_channel(server.address) as channel,
        ):
            caller = Caller(channel)
            await caller.ask("open_session", OPEN)
            (session_id,) = house.sessions.kept
            house.sessions.happen(session_id, "Opened")
            call = caller.stream(calls.StreamEventsRequest(session_id=session_id))
            assert await call.read() is not grpc.aio.EOF
            await server.drain()
            assert await asyncio.wait_for(call.read(), 10) is grpc.aio.EOF
            async with asyncio.timeout(10):
                await server.stop(1.0)

    run(story)


def test_the_server_ends_with_a_call_that_never_would(house: House) -> None:
    async def story() -> None:
        started = asyncio.Event()

        async def forever(*_: object, **__: object) -> tuple[Opened, bool]:
            started.set()
            await asyncio.Event().wait()
            raise AssertionError("not reached")

        house.sessions.open = forever  # type: ignore[method-assign]
        async with (
            grpc_server(house) as server,
            grpc.aio.insecure_channel(server.address) as channel,
        ):
            call = asyncio.create_task(Caller(channel).fails("open_session", OPEN))
            await started.wait()
            async with asyncio.timeout(10):
                await server.stop(0.1)
            call.cancel()
            await asyncio.wait({call})

    run(story)


def test_a_taken_port_is_named(house: House) -> None:
    async def story() -> None:
        async with grpc_server(house) as first:
            with pytest.raises(OSError, match="cannot listen on 127.0.0.1"):
                async with grpc_server(house, settings(grpc={"bind": first.address})):
                    raise AssertionError("two servers on one port")

    run(story)
