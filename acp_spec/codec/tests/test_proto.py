"""Protobuf refuses and forgives exactly what JSON does, with the same places in its texts."""

from typing import Any

import pytest

from acp_spec.codec import proto
from acp_spec.codec.refusals import Direction
from acp_spec.model.calls import ExecuteRequest, ExecuteResponse, ReflectResponse, SettledCall
from acp_spec.model.card import Card
from acp_spec.model.context import Signals
from acp_spec.model.enums import Effect, Idempotency
from acp_spec.model.errors import AcpFailure, Reason
from acp_spec.proto.v1 import acp_pb2

CONTEXT = {
    "session_id": "s",
    "lineage_id": "l",
    "call_id": "c",
    "attempt": 1,
    "body_digest": "d",
    "timeout_ms": 100,
}


def _bytes(**fields: Any) -> bytes:
    return bytes(acp_pb2.ExecuteRequest(**fields).SerializeToString())


@pytest.mark.parametrize(
    ("data", "place"),
    [
        (b"", "$.action: Expected `str` of length >= 1"),
        (_bytes(action="pay"), "$: Object missing required field `context`"),
        (_bytes(action="pay", context=CONTEXT | {"timeout_ms": 0}), "$.context.timeout_ms"),
        (_bytes(action="pay", context=CONTEXT | {"attempt": -1}), "$.context.attempt"),
        (_bytes(action="pay", context=CONTEXT | {"call_id": ""}), "$.context.call_id"),
        (_bytes(action="pay", context=CONTEXT, arguments=b"{"), "$.arguments"),
        (b"\xff\xff", "not a protobuf message ExecuteRequest"),
        (
            _bytes(action="pay", context=CONTEXT | {"signals": [{}, {"queue_ms": float("inf")}]}),
            "$.context.signals[1].queue_ms: Expected a finite number",
        ),
    ],
)
def test_a_wrong_request_says_where_and_what(data: bytes, place: str) -> None:
    with pytest.raises(AcpFailure) as caught:
        proto.decode_request(ExecuteRequest, data)
    assert place in caught.value.error.message
    assert caught.value.error.reason == Reason.INVALID_REQUEST.value


def test_an_unknown_enum_number_is_an_error_in_a_request_and_the_safest_in_an_answer() -> None:
    card = acp_pb2.Card(name="a", version="1.0.0", actions=[{"name": "x", "effect": 9}])
    card.actions[0].idempotency = 77
    data = card.SerializeToString()
    action = proto.decode_response(Card, data).actions[0]
    assert (action.effect, action.idempotency) == (Effect.WRITE, Idempotency.NONE)
    with pytest.raises(AcpFailure, match=r"\$.actions\[0\].effect: Invalid enum value 9"):
        proto.from_proto(Card, data, direction=Direction.REQUEST)


@pytest.mark.parametrize("verdict", [0, 9])
def test_an_unknown_or_missing_verdict_breaks_the_contract(verdict: Any) -> None:
    data = acp_pb2.ReflectResponse(verdict=verdict).SerializeToString()
    with pytest.raises(AcpFailure) as caught:
        proto.decode_response(ReflectResponse, data)
    assert caught.value.error.reason == Reason.CONTRACT_VIOLATION.value


def test_unknown_fields_are_ignored() -> None:
    data = acp_pb2.ExecuteResponse(output=b"1").SerializeToString() + b"\xfa\x3f\x01x"
    assert bytes(proto.decode_response(ExecuteResponse, data).output) == b"1"


def test_a_number_that_is_not_reported_is_not_zero() -> None:
    data = proto.to_proto(Signals(queue_length=0))
    read = proto.decode_request(Signals, data)
    assert (read.queue_length, read.inflight) == (0, None)


def test_an_absent_number_with_a_default_reads_as_that() -> None:
    data = acp_pb2.SettledCall(call_id="c").SerializeToString()
    assert proto.decode_request(SettledCall, data).attempt == 1


def test_too_many_bytes_have_a_reason_of_their_own() -> None:
    with pytest.raises(AcpFailure) as caught:
        proto.decode_request(ExecuteRequest, _bytes(action="pay", context=CONTEXT), max_bytes=9)
    assert caught.value.error.reason == Reason.PAYLOAD_TOO_LARGE.value
