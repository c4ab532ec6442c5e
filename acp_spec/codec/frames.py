"""The bytes of attach: lists of frames, and what each frame says (SPEC section 10).

A message is a list of frames of one stream and direction. Frames are written one by one, because
whoever sends them counts their bytes, and joined without copying them through protobuf again. What
is wrong in one frame is that frame's: only bytes that are no message at all are the stream's.
"""

from collections.abc import Iterable
from typing import Any, Final, TypeVar

import msgspec
from google.protobuf.message import DecodeError, Message

from acp_spec.bindings.errors import error
from acp_spec.codec import proto
from acp_spec.codec.refusals import Direction, refused
from acp_spec.codec.scan import PayloadProblem, PayloadRefused
from acp_spec.model.attach import (
    AttachHeartbeat,
    CancelOutcome,
    Drain,
    Hello,
    Key,
    OperationOutcome,
    Welcome,
)
from acp_spec.model.calls import (
    CancelRequest,
    ErrorBody,
    ExecuteRequest,
    ExecuteResponse,
    ObserveRequest,
    ObserveResponse,
    OperationRequest,
    PlanRequest,
    PlanResponse,
    Progress,
    ReflectRequest,
    ReflectResponse,
    Reply,
    Request,
)
from acp_spec.model.enums import StepRole
from acp_spec.model.errors import AcpError, AcpFailure, Reason
from acp_spec.proto.v1 import acp_pb2

FRAME_BYTES_MAX: Final = 256 * 1024
"""A frame carries at most this; a piece of a larger one leaves room for its own head."""
CHUNK_BYTES: Final = FRAME_BYTES_MAX - 1024
MESSAGE_BYTES_MAX: Final = 1024 * 1024
"""Of one list of frames: a quarter of what gRPC takes by default, four frames of full size."""

M = TypeVar("M", bound=Message)


class Called(msgspec.Struct, frozen=True, gc=False):
    """A call for the component."""

    key: Key
    request: Request


class Answered(msgspec.Struct, frozen=True, gc=False):
    """The answer of an attempt, or progress of one that goes on."""

    key: Key
    answer: Reply | Progress


class Granted(msgspec.Struct, frozen=True, gc=False):
    """Credits: so many more calls are taken."""

    count: int


class Acked(msgspec.Struct, frozen=True, gc=False):
    """The answer of this attempt is safe."""

    key: Key


class Piece(msgspec.Struct, frozen=True, gc=False):
    """A part of a frame that was too large for one."""

    key: Key
    index: int
    is_last: bool
    data: bytes


class Unreadable(msgspec.Struct, frozen=True, gc=False):
    """A frame that breaks the contract, with what it was about."""

    key: Key
    failure: AcpError


class Named(msgspec.Struct, frozen=True, gc=False):
    """An operation that is asked for: where it stands, or to stop it."""

    call_id: str
    stop: bool


FromComponent = Granted | Answered | Piece | Unreadable
FromGateway = Called | Acked | Piece | Unreadable
ControlFromComponent = Hello | AttachHeartbeat | CancelOutcome | Drain | OperationOutcome
ControlFromGateway = Welcome | CancelRequest | Drain | AttachHeartbeat | Named

_REQUESTS: Final[dict[str, type[Request]]] = {
    "plan": PlanRequest,
    "execute": ExecuteRequest,
    "observe": ObserveRequest,
    "reflect": ReflectRequest,
}
_ANSWERS: Final[dict[str, type[Reply] | type[Progress]]] = {
    "plan": PlanResponse,
    "execute": ExecuteResponse,
    "observe": ObserveResponse,
    "reflect": ReflectResponse,
    "error": ErrorBody,
    "progress": Progress,
}
_ANSWER_FIELD: Final = {type_: name for name, type_ in _ANSWERS.items()}
_ROLES: Final = {role: f"STEP_ROLE_{role.name}" for role in StepRole}
_COMPONENT_CONTROL: Final[dict[str, type[msgspec.Struct]]] = {
    "hello": Hello,
    "heartbeat": AttachHeartbeat,
    "cancelled": CancelOutcome,
    "drain": Drain,
    "operation": OperationOutcome,
}
_GATEWAY_CONTROL: Final[dict[str, type[msgspec.Struct]]] = {
    "welcome": Welcome,
    "cancel": CancelRequest,
    "drain": Drain,
    "heartbeat": AttachHeartbeat,
    "get_operation": OperationRequest,
    "cancel_operation": OperationRequest,
}
_CONTROL_FIELD: Final = {
    type_: name for table in (_COMPONENT_CONTROL, _GATEWAY_CONTROL) for name, type_ in table.items()
}


# ---- writing ----------------------------------------------------------------------------------


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def _wrap(tag: bytes, body: bytes) -> bytes:
    """`body` as a field of length-delimited kind."""
    size = len(body)
    if 0x80 <= size < 0x4000:  # nearly every length: its two bytes, without a step between
        return b"%b%c%c%b" % (tag, size & 0x7F | 0x80, size >> 7, body)
    return b"%b%b%b" % (tag, _varint(size), body)


def _tag(message: Any, field: str) -> bytes:
    return _varint(message.DESCRIPTOR.fields_by_name[field].number << 3 | 2)


_CALL_TAG: Final = _tag(acp_pb2.GatewayCallsFrame, "call")
_ANSWER_TAG: Final = _tag(acp_pb2.ComponentCallsFrame, "answer")
_GATEWAY_FRAMES: Final = _tag(acp_pb2.GatewayCalls, "frames")
_COMPONENT_FRAMES: Final = _tag(acp_pb2.ComponentCalls, "frames")
_CONTROL_FRAMES: Final = _tag(acp_pb2.GatewayControl, "frames")
_ATTACHMENT: Final = _tag(acp_pb2.ComponentCalls, "attachment_id")


def call_body(key: Key, role: StepRole, *, request: msgspec.Struct) -> bytes:
    """A CallFrame."""
    call_id, attempt = key
    frame = acp_pb2.CallFrame(
        key={"call_id": call_id, "attempt": attempt},
        role=_ROLES[role],
        **{role.value.lower(): proto.tree_of(request)},
    )
    return bytes(frame.SerializeToString())


def answer_body(key: Key, answer: Reply | Progress) -> bytes:
    """An AnswerFrame."""
    call_id, attempt = key
    frame = acp_pb2.AnswerFrame(
        key={"call_id": call_id, "attempt": attempt},
        **{_ANSWER_FIELD[type(answer)]: proto.tree_of(answer)},
    )
    return bytes(frame.SerializeToString())


def call_frame(body: bytes) -> bytes:
    """A whole CallFrame as a frame of the calls stream."""
    return _wrap(_CALL_TAG, body)


def answer_frame(body: bytes) -> bytes:
    """A whole AnswerFrame as a frame of the calls stream."""
    return _wrap(_ANSWER_TAG, body)


def piece_frame(piece: Piece, *, of_gateway: bool) -> bytes:
    """A piece as a frame of the calls stream of that side."""
    kind: Any = acp_pb2.GatewayCallsFrame if of_gateway else acp_pb2.ComponentCallsFrame
    call_id, attempt = piece.key
    chunk = {
        "key": {"call_id": call_id, "attempt": attempt},
        "index": piece.index,
        "last": piece.is_last,
        "data": piece.data,
    }
    return bytes(kind(chunk=chunk).SerializeToString())


def credits_frame(count: int) -> bytes:
    return bytes(acp_pb2.ComponentCallsFrame(credits={"granted": count}).SerializeToString())


def ack_frame(key: Key) -> bytes:
    call_id, attempt = key
    acknowledged = {"key": {"call_id": call_id, "attempt": attempt}}
    return bytes(acp_pb2.GatewayCallsFrame(acknowledged=acknowledged).SerializeToString())


def component_control_frame(said: ControlFromComponent) -> bytes:
    frame = acp_pb2.ComponentControlFrame(**{_CONTROL_FIELD[type(said)]: proto.tree_of(said)})
    return bytes(frame.SerializeToString())


def gateway_control_frame(said: ControlFromGateway) -> bytes:
    if isinstance(said, Named):
        name = "cancel_operation" if said.stop else "get_operation"
        tree = {"call_id": said.call_id}
    else:
        name, tree = _CONTROL_FIELD[type(said)], proto.tree_of(said)
    return bytes(acp_pb2.GatewayControlFrame(**{name: tree}).SerializeToString())


def component_calls(frames: Iterable[bytes], *, attachment_id: str = "") -> bytes:
    """One message of the component on the calls stream."""
    head = _wrap(_ATTACHMENT, attachment_id.encode()) if attachment_id else b""
    return head + b"".join([_wrap(_COMPONENT_FRAMES, frame) for frame in frames])


def gateway_calls(frames: Iterable[bytes]) -> bytes:
    """One message of the gateway on the calls stream."""
    return b"".join([_wrap(_GATEWAY_FRAMES, frame) for frame in frames])


def control(frames: Iterable[bytes]) -> bytes:
    """One message on the control stream, of either side."""
    return b"".join([_wrap(_CONTROL_FRAMES, frame) for frame in frames])


# ---- reading ----------------------------------------------------------------------------------


def read_component_calls(data: bytes, *, max_bytes: int) -> tuple[str, list[FromComponent]]:
    """The attachment's id (of a first message) and the frames; AcpFailure: no message at all."""
    message = _parsed(acp_pb2.ComponentCalls, data)
    check_size = len(data) > max_bytes
    frames: list[FromComponent] = []
    for frame in message.frames:
        match frame.WhichOneof("frame"):
            case "answer":
                frames.append(_answer(frame.answer, max_bytes=max_bytes, check_size=check_size))
            case "credits":
                frames.append(Granted(frame.credits.granted))
            case "chunk":
                frames.append(_piece(frame.chunk))
            case _:
                pass  # of a later minor version
    return message.attachment_id, frames


def read_answer(data: bytes, *, max_bytes: int) -> Answered | Unreadable:
    """An AnswerFrame put together from pieces; AcpFailure: it is none."""
    return _answer(_parsed(acp_pb2.AnswerFrame, data), max_bytes=max_bytes, check_size=True)


def read_gateway_calls(data: bytes, *, max_bytes: int) -> list[FromGateway]:
    """The frames of a message of the gateway; AcpFailure: it is none."""
    check_size = len(data) > max_bytes
    frames: list[FromGateway] = []
    for frame in _parsed(acp_pb2.GatewayCalls, data).frames:
        match frame.WhichOneof("frame"):
            case "call":
                frames.append(_call(frame.call, max_bytes=max_bytes, check_size=check_size))
            case "acknowledged":
                frames.append(Acked(_key(frame.acknowledged)))
            case "chunk":
                frames.append(_piece(frame.chunk))
            case _:
                pass
    return frames


def read_call(data: bytes, *, max_bytes: int) -> Called | Unreadable:
    """A CallFrame put together from pieces; AcpFailure: it is none."""
    return _call(_parsed(acp_pb2.CallFrame, data), max_bytes=max_bytes, check_size=True)


def read_component_control(data: bytes) -> list[ControlFromComponent]:
    """What the component says on the control stream; AcpFailure for a frame that is none."""
    said: list[Any] = []
    for frame in _parsed(acp_pb2.ComponentControl, data).frames:
        name = frame.WhichOneof("frame")
        if name is not None:
            type_ = _COMPONENT_CONTROL[name]
            direction = Direction.REQUEST if type_ is Hello else Direction.RESPONSE
            said.append(proto.from_message(type_, getattr(frame, name), direction=direction))
    return said


def read_gateway_control(data: bytes) -> list[ControlFromGateway]:
    """What the gateway says on the control stream; AcpFailure for a frame that is none."""
    said: list[Any] = []
    for frame in _parsed(acp_pb2.GatewayControl, data).frames:
        name = frame.WhichOneof("frame")
        if name is None:
            continue
        type_, found = _GATEWAY_CONTROL[name], getattr(frame, name)
        if type_ is OperationRequest:
            said.append(Named(found.call_id, stop=name == "cancel_operation"))
        else:
            said.append(proto.from_message(type_, found, direction=Direction.RESPONSE))
    return said


def too_large(size: int, max_bytes: int, *, direction: Direction) -> AcpError:
    """The failure of one call whose message is over the limit."""
    detail = f"{size} bytes, at most {max_bytes} are allowed"
    problem = PayloadRefused(PayloadProblem.TOO_LARGE, max_bytes, detail=detail)
    return refused(direction, problem).error


def _parsed(kind: type[M], data: bytes) -> M:
    try:
        parsed: M = kind.FromString(data)
    except DecodeError:
        text = f"the bytes are not a message {kind.DESCRIPTOR.name}"
        raise AcpFailure(error(Reason.INVALID_REQUEST, text)) from None
    return parsed


def _key(found: Any) -> Key:
    return (found.key.call_id, found.key.attempt)


def _piece(found: Any) -> Piece:
    return Piece(_key(found), found.index, found.last, found.data)


def _answer(found: Any, *, max_bytes: int, check_size: bool) -> Answered | Unreadable:
    key, name = _key(found), found.WhichOneof("answer")
    if name is None:
        return Unreadable(key, _empty("answer"))
    read = _checked(
        _ANSWERS[name],
        getattr(found, name),
        direction=Direction.RESPONSE,
        max_bytes=max_bytes,
        check_size=check_size,
    )
    return Unreadable(key, read) if isinstance(read, AcpError) else Answered(key, read)


def _call(found: Any, *, max_bytes: int, check_size: bool) -> Called | Unreadable:
    key, name = _key(found), found.WhichOneof("request")
    if name is None:
        return Unreadable(key, _empty("call"))
    read = _checked(
        _REQUESTS[name],
        getattr(found, name),
        direction=Direction.REQUEST,
        max_bytes=max_bytes,
        check_size=check_size,
    )
    return Unreadable(key, read) if isinstance(read, AcpError) else Called(key, read)


T = TypeVar("T", bound=msgspec.Struct)


def _checked(
    type_: type[T], found: Message, *, direction: Direction, max_bytes: int, check_size: bool
) -> T | AcpError:
    size = found.ByteSize() if check_size else 0
    if size > max_bytes:
        return too_large(size, max_bytes, direction=direction)
    try:
        return proto.from_message(type_, found, direction=direction, max_bytes=max_bytes)
    except AcpFailure as failure:
        return failure.error


def _empty(what: str) -> AcpError:
    return error(Reason.CONTRACT_VIOLATION, f"the {what} frame is empty, or of a later version")
