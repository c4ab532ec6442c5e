"""Frames say what was put into them; bytes from anywhere are frames, or one clear failure."""

import contextlib
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acp_spec.bindings.errors import error
from acp_spec.codec import frames
from acp_spec.model.attach import (
    AttachHeartbeat,
    AttemptKey,
    CancelOutcome,
    Drain,
    Hello,
    OperationOutcome,
    Welcome,
)
from acp_spec.model.calls import (
    CancelRequest,
    CancelResponse,
    ErrorBody,
    ExecuteRequest,
    ExecuteResponse,
    ObserveResponse,
    OperationState,
    PlanResponse,
    Progress,
    ReflectResponse,
    Reply,
)
from acp_spec.model.card import Card
from acp_spec.model.context import Context, Signals
from acp_spec.model.enums import CancelState, OperationStatus, SideEffect, StepRole, Verdict
from acp_spec.model.errors import AcpFailure, Reason
from acp_spec.model.payload import payload

KEY = ("call", 2)
NUMBERS = b'{"n":9007199254740993,"x":0.10}'
CONTEXT = Context(
    session_id="s", lineage_id="l", call_id="call", attempt=2, body_digest="d", timeout_ms=5
)
MIB = 1 << 20
STOPPED = CancelResponse(state=CancelState.STOPPED, side_effect=SideEffect.NONE)
CARD = Card(name="a", version="1")
ATTEMPT = AttemptKey(call_id="call", attempt=2)


def answered(*sent: bytes, max_bytes: int = MIB) -> list[frames.FromComponent]:
    return frames.read_component_calls(frames.component_calls(sent), max_bytes=max_bytes)[1]


@pytest.mark.parametrize(
    "said",
    [
        PlanResponse(output=payload(NUMBERS)),
        ExecuteResponse(output=payload(NUMBERS), side_effect=SideEffect.PERFORMED),
        ObserveResponse(stored=2),
        ReflectResponse(verdict=Verdict.ACCEPT),
        ErrorBody(error=error(Reason.OVERLOADED, "not now")),
        Progress(progress=payload(b"1"), message="half"),
    ],
)
def test_an_answer_comes_out_as_it_went_in(said: Reply | Progress) -> None:
    body = frames.answer_body(KEY, said)
    (whole,) = answered(frames.answer_frame(body))
    pieced = frames.read_answer(body, max_bytes=MIB)
    for read in (whole, pieced):
        assert isinstance(read, frames.Answered)
        assert (read.key, type(read.answer)) == (KEY, type(said))
        assert frames.answer_body(KEY, read.answer) == body


def test_a_call_comes_out_as_it_went_in() -> None:
    request = ExecuteRequest(context=CONTEXT, action="pay", arguments=payload(NUMBERS))
    body = frames.call_body(KEY, StepRole.EXECUTE, request=request)
    sent = frames.gateway_calls([frames.call_frame(body), frames.ack_frame(KEY)])
    called, acked = frames.read_gateway_calls(sent, max_bytes=MIB)
    assert acked == frames.Acked(KEY)
    assert isinstance(called, frames.Called)
    assert isinstance(called.request, ExecuteRequest)
    assert bytes(called.request.arguments) == NUMBERS
    assert called.request.context == CONTEXT


def test_credits_pieces_and_the_attachment_come_out_as_they_went_in() -> None:
    piece = frames.Piece(KEY, 3, True, b"\x00\xff")
    sent = [frames.credits_frame(7), frames.piece_frame(piece, of_gateway=False)]
    data = frames.component_calls(sent, attachment_id="a1")
    assert frames.read_component_calls(data, max_bytes=MIB) == ("a1", [frames.Granted(7), piece])
    back = frames.gateway_calls([frames.piece_frame(piece, of_gateway=True)])
    assert frames.read_gateway_calls(back, max_bytes=MIB) == [piece]


@pytest.mark.parametrize(
    "said",
    [
        Hello(
            instance_id="i", incarnation=5, card=Card(name="a", version="1"), in_flight=(ATTEMPT,)
        ),
        AttachHeartbeat(signals=Signals(queue_length=3)),
        CancelOutcome(key=ATTEMPT, response=STOPPED),
        Drain(grace_ms=5),
        OperationOutcome(call_id="o", state=OperationState(status=OperationStatus.RUNNING)),
        OperationOutcome(call_id="o", cancelled=STOPPED),
        OperationOutcome(call_id="o", error=error(Reason.NOT_FOUND, "never heard of it")),
    ],
)
def test_what_a_component_says_on_control(said: frames.ControlFromComponent) -> None:
    data = frames.control([frames.component_control_frame(said)])
    assert frames.read_component_control(data) == [said]


@pytest.mark.parametrize(
    "said",
    [
        Welcome(component_id="c", reattach_grace_ms=1, attachment_id="a"),
        CancelRequest(call_id="c", attempt=1),
        Drain(grace_ms=5),
        AttachHeartbeat(),
        frames.Named("o", stop=False),
        frames.Named("o", stop=True),
    ],
)
def test_what_the_gateway_says_on_control(said: frames.ControlFromGateway) -> None:
    data = frames.control([frames.gateway_control_frame(said)])
    assert frames.read_gateway_control(data) == [said]


def test_what_is_wrong_in_one_frame_is_that_frames_alone() -> None:
    wrong = ExecuteResponse(output=payload(b'{"a":'))
    good = ExecuteResponse(output=payload(b"1"))
    bad, fine = answered(
        frames.answer_frame(frames.answer_body(("bad", 1), wrong)),
        frames.answer_frame(frames.answer_body(("good", 1), good)),
    )
    assert isinstance(bad, frames.Unreadable)
    assert (bad.key, bad.failure.reason) == (("bad", 1), Reason.CONTRACT_VIOLATION.value)
    assert isinstance(fine, frames.Answered)


def test_a_message_over_the_limit_is_that_frames_alone() -> None:
    large = ExecuteResponse(output=payload(b'"%b"' % (b"x" * 2_000)))
    bad, fine = answered(
        frames.answer_frame(frames.answer_body(("large", 1), large)),
        frames.answer_frame(frames.answer_body(("small", 1), ExecuteResponse())),
        max_bytes=1_000,
    )
    assert isinstance(bad, frames.Unreadable)
    assert bad.failure.reason == Reason.PAYLOAD_TOO_LARGE.value
    assert isinstance(fine, frames.Answered)


def test_frames_of_a_later_minor_version_are_skipped() -> None:
    unknown = b"\x12\x03\xfa\x01\x00"  # a frame whose only field has a number nobody knows yet
    assert answered() == []
    read = frames.read_component_calls(unknown + b"\x12\x00", max_bytes=MIB)
    assert read == ("", [])


READERS: list[Callable[[bytes], object]] = [
    lambda data: frames.read_component_calls(data, max_bytes=MIB),
    lambda data: frames.read_gateway_calls(data, max_bytes=MIB),
    lambda data: frames.read_answer(data, max_bytes=MIB),
    lambda data: frames.read_call(data, max_bytes=MIB),
    frames.read_component_control,
    frames.read_gateway_control,
]


@given(st.sampled_from(READERS), st.binary(max_size=60))
def test_any_bytes_are_frames_or_one_failure(read: Callable[[bytes], object], data: bytes) -> None:
    with contextlib.suppress(AcpFailure):
        read(data)


@given(st.sampled_from(READERS), st.integers(0, 200), st.integers(0, 255))
def test_one_wrong_byte_is_no_crash(read: Callable[[bytes], object], at: int, byte: int) -> None:
    request = ExecuteRequest(context=CONTEXT, action="pay", arguments=payload(NUMBERS))
    body = frames.call_body(KEY, StepRole.EXECUTE, request=request)
    data = bytearray(frames.gateway_calls([frames.call_frame(body)]))
    data[at % len(data)] = byte
    with contextlib.suppress(AcpFailure):
        read(bytes(data))
