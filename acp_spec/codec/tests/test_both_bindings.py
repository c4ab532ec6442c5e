"""Whatever a message holds, it means the same over JSON and over protobuf, payloads to the byte."""

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from acp_spec.bindings.routes import messages_over_grpc, messages_over_http
from acp_spec.codec import json, proto
from acp_spec.codec.payloads import payloads_of
from acp_spec.codec.shapes import shape_of, structs_within
from acp_spec.codec.tests.strategies import NUMBERS, messages
from acp_spec.model.calls import ExecuteRequest, ExecuteResponse, PlanRequest
from acp_spec.model.context import Context
from acp_spec.model.payload import ABSENT, NULL, payload

ALL_TYPES = tuple(dict.fromkeys(messages_over_http() + messages_over_grpc()))
NAMES = [struct.__name__ for struct in ALL_TYPES]
THOROUGH = settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)

CONTEXT = Context(
    session_id="01JABCDEFGHJKMNPQRSTVWXYZ0",
    lineage_id="01JABCDEFGHJKMNPQRSTVWXYZ0.0123456789ab",
    call_id="0123456789abcdef0123456789abcdef",
    attempt=1,
    body_digest="0" * 64,
    timeout_ms=5000,
)


@pytest.mark.parametrize("struct", ALL_TYPES, ids=NAMES)
@given(data=st.data())
@THOROUGH
def test_a_message_survives_json(struct: type[msgspec.Struct], data: st.DataObject) -> None:
    message = data.draw(messages(struct))
    written = json.encode(message)
    for decode in (json.decode_request, json.decode_response):
        assert decode(struct, written) == message


@pytest.mark.parametrize("struct", ALL_TYPES, ids=NAMES)
@given(data=st.data())
@THOROUGH
def test_a_message_survives_protobuf(struct: type[msgspec.Struct], data: st.DataObject) -> None:
    message = data.draw(messages(struct))
    written = proto.to_proto(message)
    for decode in (proto.decode_request, proto.decode_response):
        assert decode(struct, written) == message


@given(message=messages(PlanRequest))
@THOROUGH
def test_payloads_are_the_same_bytes_on_both_bindings(message: PlanRequest) -> None:
    sent = list(payloads_of(message))
    over_json = json.decode_request(PlanRequest, json.encode(message))
    over_grpc = proto.decode_request(PlanRequest, proto.to_proto(message))
    assert list(payloads_of(over_json)) == sent
    assert list(payloads_of(over_grpc)) == sent


@pytest.mark.parametrize("number", NUMBERS)
def test_a_number_comes_out_as_it_went_in(number: str) -> None:
    text = f'{{"z": {number}, "a": [{number}]}}'.encode()
    message = ExecuteRequest(context=CONTEXT, action="pay", arguments=payload(text))
    assert text in json.encode(message)
    over_json = json.decode_request(ExecuteRequest, json.encode(message))
    over_grpc = proto.decode_request(ExecuteRequest, proto.to_proto(message))
    assert bytes(over_json.arguments) == bytes(over_grpc.arguments) == text


@pytest.mark.parametrize("output", [ABSENT, NULL], ids=["absent", "null"])
def test_absent_and_null_stay_apart(output: msgspec.Raw) -> None:
    message = ExecuteResponse(output=output)
    over_json = json.decode_response(ExecuteResponse, json.encode(message))
    over_grpc = proto.decode_response(ExecuteResponse, proto.to_proto(message))
    assert bytes(over_json.output) == bytes(over_grpc.output) == bytes(output)


def test_every_integer_on_the_wire_fits_int64() -> None:
    unbounded = [
        f"{held.__name__}.{field.attribute}"
        for struct in ALL_TYPES
        for held in structs_within(struct)
        for field in shape_of(held).fields
        if field.kind.value == "integer" and (field.bounds.maximum or 1 << 64) > (1 << 63) - 1
    ]
    assert unbounded == []
