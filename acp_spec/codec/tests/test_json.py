"""JSON is strict inwards and lenient with answers; what cannot be read says where it is wrong."""

import subprocess
import sys

import pytest

from acp_spec.codec import json
from acp_spec.model.calls import (
    CancelRequest,
    ErrorBody,
    ExecuteRequest,
    ExecuteResponse,
    Progress,
    ReflectResponse,
)
from acp_spec.model.card import Card
from acp_spec.model.enums import Boundary, Effect, Idempotency, Kind, Mode, SideEffect
from acp_spec.model.errors import AcpError, AcpFailure, Code, Reason
from acp_spec.model.payload import payload
from acp_spec.model.session import OpenSession

CONTEXT = (
    b'{"session_id":"s","lineage_id":"l","call_id":"c","attempt":1,'
    b'"body_digest":"d","timeout_ms":100}'
)


def _execute(context: bytes = CONTEXT, rest: bytes = b'"action":"pay"') -> bytes:
    return b'{"context":' + context + b"," + rest + b"}"


def _refused(data: bytes) -> AcpError:
    with pytest.raises(AcpFailure) as caught:
        json.decode_request(ExecuteRequest, data)
    return caught.value.error


@pytest.mark.parametrize(
    ("data", "place"),
    [
        (b'{"action":"pay"}', "$: Object missing required field `context`"),
        (_execute(CONTEXT.replace(b":100}", b":0}")), "$.context.timeout_ms: Expected `int` >= 1"),
        (_execute(CONTEXT.replace(b'"attempt":1', b'"attempt":0')), "$.context.attempt"),
        (_execute(CONTEXT.replace(b'"c"', b'""')), "$.context.call_id"),
        (_execute(CONTEXT.replace(b'"s"', b"7")), "$.context.session_id: Expected `str`, got"),
        (_execute(rest=b'"action":""'), "$.action"),
        (_execute(rest=b'"action":null'), "$.action"),
        (_execute(rest=b'"action":"a","action":"b"'), "same key twice"),
        (_execute(rest=b'"action":"pay","arguments":"\xff"'), "UTF-8"),
        (_execute(rest=b'"action":"pay","arguments":"\\ud800"'), "surrogate"),
        (_execute(rest=b'"action":"pay","arguments":nul'), "not JSON"),
        (b"", "not JSON"),
        (b"[]", "$: Expected `object`, got `array`"),
    ],
)
def test_a_wrong_request_says_where_and_what(data: bytes, place: str) -> None:
    failure = _refused(data)
    assert place in failure.message
    assert failure.reason == Reason.INVALID_REQUEST.value
    assert failure.side_effect is SideEffect.NONE
    assert failure.boundary is Boundary.CLIENT


def test_unknown_fields_are_ignored() -> None:
    data = _execute(rest=b'"action":"pay","from_the_future":{"x":[1]}')
    assert json.decode_request(ExecuteRequest, data).action == "pay"


def test_too_many_bytes_have_a_reason_of_their_own() -> None:
    with pytest.raises(AcpFailure) as caught:
        json.decode_request(ExecuteRequest, _execute(), max_bytes=20)
    assert caught.value.error.reason == Reason.PAYLOAD_TOO_LARGE.value


def test_no_body_is_an_empty_one_where_nothing_is_demanded() -> None:
    assert json.decode_request(CancelRequest, b"") == CancelRequest()


@pytest.mark.parametrize(("depth", "fits"), [(48, True), (49, False), (150_000, False)])
def test_a_payload_may_nest_48_deep_whatever_stands_around_it(depth: int, fits: bool) -> None:
    data = b'{"output":' + b"[" * depth + b"]" * depth + b"}"
    if fits:
        assert len(bytes(json.decode_response(ExecuteResponse, data).output)) == 96
        return
    with pytest.raises(AcpFailure) as caught:
        json.decode_response(ExecuteResponse, data)
    assert caught.value.error.reason == Reason.CONTRACT_VIOLATION.value


def test_enums_are_capitals_except_in_the_gateways_own_api() -> None:
    data = b'{"workflow":"hotline","mode":"manual","input":{"n":0.10}}'
    opened = json.decode_request(OpenSession, data, lower_case_enums=True)
    assert opened.mode is Mode.MANUAL
    assert bytes(opened.input) == b'{"n":0.10}'
    with pytest.raises(AcpFailure, match="known: AUTOMATIC, MANUAL"):
        json.decode_request(OpenSession, data)


def test_an_unknown_enum_value_in_an_answer_reads_as_the_safest() -> None:
    data = (
        b'{"name":"a","version":"1.0.0","kind":"ORACLE","actions":[{"name":"x","effect":"MAYBE",'
        b'"idempotency":"TWICE","input_schema":{"multipleOf":0.10}}]}'
    )
    card = json.decode_response(Card, data)
    action = card.actions[0]
    assert (action.effect, action.idempotency) == (Effect.WRITE, Idempotency.NONE)
    assert card.kind is Kind.TOOL
    assert bytes(action.input_schema) == b'{"multipleOf":0.10}'


def test_an_unknown_verdict_breaks_the_contract() -> None:
    with pytest.raises(AcpFailure) as caught:
        json.decode_response(ReflectResponse, b'{"verdict":"MAYBE"}')
    failure = caught.value.error
    assert failure.reason == Reason.CONTRACT_VIOLATION.value
    assert failure.boundary is Boundary.COMPONENT
    assert failure.side_effect is SideEffect.UNKNOWN


def test_an_unknown_code_of_an_error_reads_as_unknown() -> None:
    data = b'{"error":{"code":"TEAPOT","reason":"SHORT","message":"","details":{"n":1e400}}}'
    body = json.decode_response(ErrorBody, data)
    assert body.error.code is Code.UNKNOWN
    assert bytes(body.error.details) == b'{"n":1e400}'


def test_a_proxys_page_is_an_error_too() -> None:
    failure = json.decode_error(502, b"<html>Bad Gateway</html>").error
    assert failure.reason == Reason.UNAVAILABLE.value
    assert failure.side_effect is SideEffect.UNKNOWN
    assert "Bad Gateway" in failure.message


def test_a_line_has_no_line_end_inside() -> None:
    line = json.encode_line(Progress(progress=payload(b'{"a":\n1,\r\n"b":"\\n"}')))
    assert line == b'{"progress":{"a": 1,  "b":"\\n"}}'


def test_reading_json_loads_no_protobuf() -> None:
    program = "import sys, acp_spec.codec.json; sys.exit('google.protobuf' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
