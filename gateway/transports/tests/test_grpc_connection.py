"""gRPC attempts against raw grpc.aio servers: what each status proves, times, TLS, late answers."""

import asyncio
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import msgspec
import pytest

from acp_spec.bindings.errors import error
from acp_spec.codec import proto
from acp_spec.model.calls import (
    CancelRequest,
    CancelResponse,
    ErrorBody,
    ExecuteRequest,
    ExecuteResponse,
    OperationState,
    PlanResponse,
    Usage,
)
from acp_spec.model.card import Card, Health, Limits
from acp_spec.model.enums import (
    Boundary,
    CancelState,
    Effect,
    HealthStatus,
    OperationStatus,
    SideEffect,
    StepRole,
)
from acp_spec.model.errors import AcpFailure, Reason
from acp_spec.model.payload import payload
from gateway.config.networks import LOOPBACK_NETWORKS
from gateway.runtime.connection import Answer, Connection, Outgoing
from gateway.transports.address_guard import GRPC_SCHEMES, AddressGuard, parse_component_url
from gateway.transports.grpc_connection import GrpcConnection
from gateway.transports.outbound import ConnectionOptions
from gateway.transports.tests.raw_grpc_peer import Handler, aborting, server
from gateway.transports.tests.raw_peer import (
    GUARD,
    PATIENT_MS,
    Answers,
    certificate,
    context,
    one_call,
    outgoing,
    run,
)

EXECUTE = "/acp.v1.Executor/Execute"
NUMBERS = b'{"n":9007199254740993, "x": 0.10}'
GOOD = proto.to_proto(
    ExecuteResponse(output=payload(NUMBERS), side_effect=SideEffect.PERFORMED, retries_spent=1)
)


def to(
    port: int, *, options: ConnectionOptions = ConnectionOptions(), guard: AddressGuard = GUARD
) -> GrpcConnection:
    return GrpcConnection(
        parse_component_url(f"grpc://127.0.0.1:{port}", GRPC_SCHEMES), guard, options=options
    )


def is_a_connection(connection: GrpcConnection) -> Connection:
    return connection  # checked by mypy


def answer_of(
    handler: Handler,
    call: Outgoing | None = None,
    *,
    options: ConnectionOptions = ConnectionOptions(),
    path: str = EXECUTE,
) -> Answer:
    async def story() -> Answer:
        async with server({path: handler}) as port:
            connection = to(port, options=options)
            answer = await one_call(connection, call)
            await connection.close()
            return answer

    return run(story())


async def good(data: bytes, call: Any) -> bytes:
    return GOOD


def reason(answer: Answer) -> str:
    assert answer.error is not None
    assert answer.error.side_effect is answer.side_effect
    return answer.error.reason


def test_payload_bytes_pass_exactly_both_ways() -> None:
    seen: list[tuple[bytes, dict[str, str], float]] = []

    async def handle(data: bytes, call: Any) -> bytes:
        seen.append((data, dict(call.invocation_metadata()), call.time_remaining()))
        return GOOD

    call = outgoing(
        context(traceparent="00-1-2-01"), body=b'{"action":"a","arguments":' + NUMBERS + b"}"
    )
    answer = answer_of(handle, call)
    data, metadata, left_s = seen[0]
    request = proto.decode_request(ExecuteRequest, data)
    assert bytes(request.arguments) == NUMBERS
    assert 0 < request.context.timeout_ms <= PATIENT_MS
    assert metadata["idempotency-key"] == "call-1"
    assert metadata["acp-version"] == "1.0"
    assert metadata["traceparent"] == "00-1-2-01"
    # gRPC writes a timeout of this length in tenths of a second, rounded up.
    assert PATIENT_MS / 2000 < left_s <= PATIENT_MS / 1000 + 1.1
    assert NUMBERS in bytes(answer.response)
    assert (answer.side_effect, answer.retries_spent) == (SideEffect.PERFORMED, 1)


def test_every_role_has_its_method() -> None:
    async def handle(data: bytes, call: Any) -> bytes:
        return proto.to_proto(PlanResponse(rationale="r", usage=Usage(tokens=3)))

    call = outgoing(role=StepRole.PLAN, body=b'{"goal":"g"}', effect=Effect.READ)
    answer = answer_of(handle, call, path="/acp.v1.Planner/Plan")
    assert bytes(answer.response) == b'{"usage":{"tokens":3},"rationale":"r"}'
    assert answer.side_effect is SideEffect.NONE


def test_a_trailer_is_the_components_own_error() -> None:
    failure = error(Reason.RATE_LIMITED, "m", retry_after_ms=5)
    failure = msgspec.structs.replace(failure, details=payload(NUMBERS))
    body = ErrorBody(error=failure, retries_spent=2)
    trailer = ("acp-error-bin", proto.to_proto(body))
    answer = answer_of(aborting(grpc.StatusCode.RESOURCE_EXHAUSTED, trailer))
    assert answer.error is not None
    assert (reason(answer), answer.error.retry_after_ms) == ("RATE_LIMITED", 5)
    assert bytes(answer.error.details) == NUMBERS
    assert (answer.answered, answer.side_effect) == (True, SideEffect.NONE)
    assert answer.retries_spent == 2


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
def test_a_status_without_trailer_proves_little(status: Any, side_effect: SideEffect) -> None:
    for trailers in ((), (("acp-error-bin", b"\xff\xff"),)):
        answer = answer_of(aborting(status, *trailers))
        assert answer.error is not None
        assert (answer.side_effect, answer.answered) == (side_effect, False)
        assert answer.error.boundary is Boundary.COMPONENT
        assert "said so" in answer.error.message


def test_a_missing_method_proves_that_nothing_ran() -> None:
    answer = answer_of(good, path="/acp.v1.Planner/Plan")
    assert (reason(answer), answer.side_effect) == ("UNIMPLEMENTED", SideEffect.NONE)


@pytest.mark.parametrize(
    "data",
    [
        b"\xff\xff",
        proto.to_proto(ExecuteResponse(output=payload(b"{not json"))),
        proto.to_proto(ExecuteResponse(output=payload(b'{"a":1,"a":2}'))),
        proto.to_proto(ExecuteResponse(output=payload(b"[" * 60 + b"]" * 60))),
    ],
)
def test_an_answer_that_is_none_breaks_the_contract(data: bytes) -> None:
    async def handle(request: bytes, call: Any) -> bytes:
        return data

    answer = answer_of(handle)
    assert (reason(answer), answer.side_effect) == ("CONTRACT_VIOLATION", SideEffect.UNKNOWN)
    assert not answer.answered


@pytest.mark.parametrize("size", [2_000, 200_000])
def test_an_answer_over_the_limit_is_refused(size: int) -> None:
    async def handle(request: bytes, call: Any) -> bytes:
        return proto.to_proto(ExecuteResponse(output=payload(b'"' + b"a" * size + b'"')))

    answer = answer_of(handle, options=ConnectionOptions(max_response_bytes=1_000))
    assert (reason(answer), answer.side_effect) == ("PAYLOAD_TOO_LARGE", SideEffect.UNKNOWN)


def test_a_request_over_the_cards_limit_is_not_sent() -> None:
    answer = answer_of(good, options=ConnectionOptions(max_request_bytes=10))
    assert (reason(answer), answer.not_sent) == ("PAYLOAD_TOO_LARGE", True)


def test_a_refused_connection_proves_that_nothing_was_sent(free_port: Callable[[], int]) -> None:
    async def story() -> Answer:
        connection = to(free_port())
        answer = await one_call(connection)
        await connection.close()
        return answer

    answer = run(story())
    assert (reason(answer), answer.not_sent) == ("UNAVAILABLE", True)
    assert answer.side_effect is SideEffect.NONE


def test_a_component_that_comes_back_is_found_again(free_port: Callable[[], int]) -> None:
    async def story() -> list[bool]:
        found = []
        async with server({EXECUTE: good}, port=free_port()) as port:
            connection = to(port)
            found.append((await one_call(connection)).error is None)
        found.append((await one_call(connection)).error is None)
        async with server({EXECUTE: good}, port=port):
            found.append((await one_call(connection)).error is None)
            await connection.close()
        return found

    assert run(story()) == [True, False, True]


def test_a_peer_that_vanishes_during_the_call_leaves_the_effect_unknown() -> None:
    async def story() -> Answer:
        begun = asyncio.Event()

        async def hang(data: bytes, call: Any) -> bytes:
            begun.set()
            await asyncio.sleep(60)
            return b""

        answers = Answers()
        async with server({EXECUTE: hang}) as port:
            connection = to(port)
            connection.send(outgoing(), answers)
            await begun.wait()
        answer = await answers.wait()
        await connection.close()
        return answer

    answer = run(story())
    assert (answer.side_effect, answer.not_sent) == (SideEffect.UNKNOWN, False)


def test_a_peer_that_accepts_and_says_nothing_is_no_connection() -> None:
    async def story() -> Answer:
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            listener.listen()
            options = ConnectionOptions(connect_timeout_ms=100)
            connection = to(listener.getsockname()[1], options=options)
            answer = await one_call(connection)
            await connection.close()
            return answer

    answer = run(story())
    assert (answer.not_sent, answer.side_effect) == (True, SideEffect.NONE)


async def slow(data: bytes, call: Any) -> bytes:
    await asyncio.sleep(0.15)
    return GOOD


def test_a_late_answer_is_told_as_late() -> None:
    async def story() -> None:
        async with server({EXECUTE: slow}) as port:
            connection = to(port)
            answers = Answers()
            connection.send(outgoing(context(timeout_ms=50), late_grace_ms=PATIENT_MS), answers)
            assert reason(await answers.wait(1)) == "TIMEOUT"
            late = await answers.wait(2)
            assert [was_late for _, was_late in answers.got] == [False, True]
            assert late.side_effect is SideEffect.PERFORMED
            await connection.close()

    run(story())


def test_a_reset_call_is_lost_and_the_peer_is_told() -> None:
    async def story() -> None:
        begun, ended = asyncio.Event(), asyncio.Event()

        async def hang(data: bytes, call: Any) -> bytes:
            begun.set()
            try:
                await asyncio.sleep(60)
            finally:
                ended.set()
            return b""

        async with server({EXECUTE: hang}) as port:
            connection = to(port)
            answers = Answers()
            connection.send(outgoing(), answers)
            await begun.wait()
            connection.reset("call-1", 1)
            answer = await answers.wait()
            assert (reason(answer), answer.side_effect) == ("CANCELLED", SideEffect.UNKNOWN)
            await ended.wait()
            await connection.close()
            assert len(answers.got) == 1

    run(story())


def test_tls_checks_the_name_of_the_url_while_the_checked_address_is_dialled(
    tmp_path: Path,
) -> None:
    certificate(tmp_path, "ledger.bank")
    chain, key = (tmp_path / "cert.pem").read_bytes(), (tmp_path / "key.pem").read_bytes()

    async def at_home(host: str, port: int) -> tuple[str, ...]:
        return ("127.0.0.1",)

    async def story(name: str) -> Answer:
        guard = AddressGuard(LOOPBACK_NETWORKS, resolve=at_home)
        async with server({EXECUTE: good}, tls=(key, chain)) as port:
            target = parse_component_url(f"grpcs://{name}:{port}", GRPC_SCHEMES)
            connection = GrpcConnection(target, guard, ca_pem=chain)
            answer = await one_call(connection)
            await connection.close()
            return answer

    assert run(story("ledger.bank")).error is None
    assert run(story("cards.bank")).not_sent


def test_a_name_that_moves_to_a_forbidden_address_is_not_dialled() -> None:
    async def story() -> Answer:
        async def away(host: str, port: int) -> tuple[str, ...]:
            return ("10.0.0.1",)

        guard = AddressGuard(LOOPBACK_NETWORKS, resolve=away)
        target = parse_component_url("grpc://moving.example:80", GRPC_SCHEMES)
        connection = GrpcConnection(target, guard)
        answer = await one_call(connection)
        with pytest.raises(AcpFailure, match="PERMISSION_DENIED"):
            await connection.describe(PATIENT_MS)
        await connection.close()
        return answer

    answer = run(story())
    assert answer.error is not None
    assert (answer.not_sent, answer.error.boundary) == (True, Boundary.GATEWAY)


def answering(message: Any) -> Handler:
    async def handle(data: bytes, call: Any) -> bytes:
        return proto.to_proto(message)

    return handle


def test_questions_are_asked_and_answered() -> None:
    asked: list[CancelRequest] = []

    async def cancel(data: bytes, call: Any) -> bytes:
        asked.append(proto.decode_request(CancelRequest, data))
        return proto.to_proto(CancelResponse(state=CancelState.RUNNING))

    card = Card(name="a", version="1.0.0", limits=Limits(max_request_bytes=9))
    handlers = {
        "/acp.v1.Component/Describe": answering(card),
        "/acp.v1.Component/Health": answering(Health(status=HealthStatus.SERVING)),
        "/acp.v1.Component/Cancel": cancel,
        "/acp.v1.Component/GetOperation": answering(OperationState(status=OperationStatus.FAILED)),
        "/acp.v1.Component/CancelOperation": answering(
            CancelResponse(state=CancelState.UNKNOWN_CALL)
        ),
    }

    async def story() -> None:
        async with server(handlers) as port:
            connection = to(port)
            assert (await connection.describe(PATIENT_MS)).name == "a"
            assert connection.max_request_bytes == 9
            assert (await connection.health(PATIENT_MS)).status is HealthStatus.SERVING
            told = await connection.cancel("c", 2, timeout_ms=PATIENT_MS)
            assert told.state is CancelState.RUNNING
            assert (asked[0].call_id, asked[0].attempt) == ("c", 2)
            state = await connection.operation("c", PATIENT_MS)
            assert state.status is OperationStatus.FAILED
            stopped = await connection.cancel_operation("c", PATIENT_MS)
            assert stopped.state is CancelState.UNKNOWN_CALL
            await connection.close()

    run(story())


def test_health_falls_back_to_grpcs_own() -> None:
    async def check(data: bytes, call: Any) -> bytes:
        return b"\x08\x01"  # status: SERVING

    async def story() -> Health:
        async with server({"/grpc.health.v1.Health/Check": check}) as port:
            connection = to(port)
            health = await connection.health(PATIENT_MS)
            await connection.close()
            return health

    assert run(story()).status is HealthStatus.SERVING


def test_a_question_nobody_answers_raises() -> None:
    async def hang(data: bytes, call: Any) -> bytes:
        await asyncio.sleep(60)
        return b""

    async def story() -> str:
        async with server({"/acp.v1.Component/Describe": hang}) as port:
            connection = to(port)
            with pytest.raises(AcpFailure) as raised:
                await connection.describe(100)
            await connection.close()
            return raised.value.error.reason

    assert run(story()) == "TIMEOUT"
