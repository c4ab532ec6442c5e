"""The TypeScript component, over plain gRPC: the generated messages and nothing else of ours."""

from collections.abc import Callable, Iterator
from decimal import ROUND_HALF_EVEN, Decimal

import grpc
import pytest
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from acp_spec.proto.v1 import acp_pb2
from reference_components.launcher import Running
from reference_components.tests.wire_requests import call_id, context

EXECUTE = "/acp.v1.Executor/Execute"
Metadata = tuple[tuple[str, str], ...]


@pytest.fixture
def channel(start: Callable[..., Running]) -> Iterator[grpc.Channel]:
    running = start("rates")
    with grpc.insecure_channel(running.url.removeprefix("grpc://")) as opened:
        yield opened


def call(channel: grpc.Channel, method: str, request: bytes, metadata: Metadata = ()) -> bytes:
    answer: bytes = channel.unary_unary(method)(request, timeout=10, metadata=metadata)
    return answer


def request_of(action: str, arguments: str) -> acp_pb2.ExecuteRequest:
    return acp_pb2.ExecuteRequest(
        context=acp_pb2.Context(**context("c", action, arguments)),
        action=action,
        arguments=arguments.encode(),
    )


def output_of(channel: grpc.Channel, action: str, arguments: str) -> str:
    request = request_of(action, arguments).SerializeToString()
    answer = acp_pb2.ExecuteResponse.FromString(call(channel, EXECUTE, request))
    assert answer.side_effect == acp_pb2.SIDE_EFFECT_NONE
    return str(answer.output, "utf-8")


def error_of(
    channel: grpc.Channel, request: bytes, metadata: Metadata = ()
) -> tuple[grpc.StatusCode, str]:
    with pytest.raises(grpc.RpcError) as caught:
        call(channel, EXECUTE, request, metadata)
    trailers = dict(caught.value.trailing_metadata())
    error = acp_pb2.ErrorBody.FromString(trailers["acp-error-bin"]).error
    assert error.side_effect == acp_pb2.SIDE_EFFECT_NONE
    assert error.message == caught.value.details()
    assert error.code == caught.value.code().value[0]
    return caught.value.code(), error.reason


def test_a_tenth_stays_a_tenth_to_the_last_zero(channel: grpc.Channel) -> None:
    arguments = '{"amount": 0.10, "from": "EUR", "to": "EUR"}'
    assert output_of(channel, "rates.convert", arguments) == (
        '{"from":"EUR","to":"EUR","amount":0.10,"rate":1.000000,"converted":0.10,'
        '"as_of":"2026-11-27"}'
    )


def test_large_amounts_are_exact_and_yen_have_no_decimals(channel: grpc.Channel) -> None:
    arguments = '{"amount": 9007199254740993.10, "from": "EUR", "to": "JPY"}'
    output = output_of(channel, "rates.convert", arguments)
    assert '"amount":9007199254740993.10,' in output
    assert '"converted":1470425278336467124,' in output


def test_conversion_agrees_with_decimal_arithmetic(channel: grpc.Channel) -> None:
    @settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
    @given(st.decimals("0.01", "99999999999", places=2), st.sampled_from(["GBP", "USD", "SEK"]))
    def agree(amount: Decimal, target: str) -> None:
        quote = output_of(channel, "rates.quote", f'{{"from":"CHF","to":"{target}"}}')
        rate = Decimal(quote.split('"rate":')[1].split(",")[0])
        expected = (amount * rate).quantize(Decimal("0.01"), ROUND_HALF_EVEN)
        arguments = f'{{"amount":{amount},"from":"CHF","to":"{target}"}}'
        assert f'"converted":{expected},' in output_of(channel, "rates.convert", arguments)

    agree()


def test_the_card_has_its_schemas_as_text(channel: grpc.Channel) -> None:
    card = acp_pb2.Card.FromString(call(channel, "/acp.v1.Component/Describe", b""))
    assert (card.name, list(card.roles)) == ("rates", [acp_pb2.ROLE_EXECUTOR])
    assert {action.effect for action in card.actions} == {acp_pb2.EFFECT_READ}
    convert = next(action for action in card.actions if action.name == "rates.convert")
    assert b'"amount":0.10' in convert.examples[0].arguments


def test_a_stream_carries_the_response_alone(channel: grpc.Channel) -> None:
    stream = channel.unary_stream("/acp.v1.Executor/ExecuteStream")
    items = list(stream(request_of("rates.currencies", "{}").SerializeToString(), timeout=10))
    (item,) = [acp_pb2.ExecuteStreamItem.FromString(data) for data in items]
    assert b'"CHF"' in item.response.output


def test_cancel_tells_finished_calls_from_unknown_ones(channel: grpc.Channel) -> None:
    output_of(channel, "rates.currencies", "{}")
    states = []
    for name in ("c", "never"):
        request = acp_pb2.CancelRequest(call_id=call_id(name)).SerializeToString()
        answer = call(channel, "/acp.v1.Component/Cancel", request)
        states.append(acp_pb2.CancelResponse.FromString(answer).state)
    assert states == [acp_pb2.CANCEL_STATE_FINISHED, acp_pb2.CANCEL_STATE_UNKNOWN_CALL]


@pytest.mark.parametrize(
    ("action", "arguments", "expected"),
    [
        ("rates.quote", '{"from": "EUR", "to": "XXX"}', ("NOT_FOUND", "UNKNOWN_CURRENCY")),
        ("rates.quote", '{"from": "EUR"}', ("INVALID_ARGUMENT", "INVALID_REQUEST")),
        ("rates.quote", '{"from": "EUR", "from": "EUR"}', ("INVALID_ARGUMENT", "INVALID_REQUEST")),
        ("rates.quote", '{"from": "EUR"', ("INVALID_ARGUMENT", "INVALID_REQUEST")),
        ("rates.quote", "null", ("INVALID_ARGUMENT", "INVALID_REQUEST")),
        ("rates.quote", '{"a": ' + "[" * 5000, ("INVALID_ARGUMENT", "INVALID_REQUEST")),
        ("rates.convert", '{"amount": 1e99999999}', ("INVALID_ARGUMENT", "INVALID_REQUEST")),
        ("rates.convert", '{"amount": -1}', ("INVALID_ARGUMENT", "INVALID_REQUEST")),
        ("rates.guess", "{}", ("NOT_FOUND", "NOT_FOUND")),
        ("rates.quote", f'"{"x" * 70_000}"', ("RESOURCE_EXHAUSTED", "PAYLOAD_TOO_LARGE")),
    ],
)
def test_refusals_come_with_the_acp_trailer(
    channel: grpc.Channel, action: str, arguments: str, expected: tuple[str, str]
) -> None:
    code, reason = error_of(channel, request_of(action, arguments).SerializeToString())
    assert (code.name, reason) == expected


def test_what_is_no_message_is_refused_as_invalid(channel: grpc.Channel) -> None:
    assert error_of(channel, b"\xff\xff\xff")[1] == "INVALID_REQUEST"
    assert error_of(channel, b"")[1] == "INVALID_REQUEST"


def test_metadata_that_contradicts_is_refused(channel: grpc.Channel) -> None:
    request = request_of("rates.currencies", "{}").SerializeToString()
    code, reason = error_of(channel, request, (("acp-version", "2.0"),))
    assert (code, reason) == (grpc.StatusCode.FAILED_PRECONDITION, "VERSION_UNSUPPORTED")
    assert error_of(channel, request, (("idempotency-key", "other"),))[1] == "INVALID_REQUEST"
    call(channel, EXECUTE, request, (("acp-version", "1.7"), ("idempotency-key", call_id("c"))))


def test_a_planner_it_is_not(channel: grpc.Channel) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        call(channel, "/acp.v1.Planner/Plan", b"")
    assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED


def test_reflection_lists_the_services(channel: grpc.Channel) -> None:
    stub = reflection_pb2_grpc.ServerReflectionStub(channel)
    asked = reflection_pb2.ServerReflectionRequest(list_services="")
    (answer,) = stub.ServerReflectionInfo(iter([asked]))
    names = {service.name for service in answer.list_services_response.service}
    assert {"acp.v1.Component", "acp.v1.Executor"} <= names
