"""Messages as JSON: strict for requests, lenient for responses, payloads byte for byte.

Every message is scanned once where it enters (SPEC section 1); an unknown field is ignored, an
unknown enum value is an error in a request and the safest value in a response. What cannot be read
is an `AcpFailure` that says where. This module never imports protobuf.
"""

from functools import cache
from typing import TypeVar

import msgspec

from acp_spec.bindings.errors import from_http
from acp_spec.bindings.fields import MAX_RESPONSE_BYTES
from acp_spec.codec import leniency
from acp_spec.codec.payloads import check_each
from acp_spec.codec.refusals import Direction, explain, refused, wrong
from acp_spec.codec.scan import PayloadProblem, PayloadRefused, check_payload
from acp_spec.codec.shapes import shape_of
from acp_spec.model.calls import ErrorBody
from acp_spec.model.errors import AcpFailure

T = TypeVar("T", bound=msgspec.Struct)

_encoder = msgspec.json.Encoder()
_NO_LINE_ENDS = bytes.maketrans(b"\r\n", b"  ")


def encode(message: msgspec.Struct) -> bytes:
    """The message as JSON text; payloads are written verbatim."""
    return _encoder.encode(message)


def encode_line(message: msgspec.Struct) -> bytes:
    """The message as one line without its end, for NDJSON and SSE.

    A raw line end in JSON can only be white space outside strings, so a space may stand for it.
    """
    return _encoder.encode(message).translate(_NO_LINE_ENDS)


def decode_request(
    type_: type[T],
    data: bytes,
    *,
    max_bytes: int = MAX_RESPONSE_BYTES,
    lower_case_enums: bool = False,
) -> T:
    """Read a request strictly. No bytes at all are `{}` where the type demands nothing.

    `lower_case_enums`: the gateway's /v1 bodies. Raises AcpFailure INVALID_REQUEST (or
    PAYLOAD_TOO_LARGE) naming the JSON path.
    """
    if not data and _demands_nothing(type_):
        data = b"{}"
    read_as = leniency.capitals if lower_case_enums else None
    return _decode(type_, data, direction=Direction.REQUEST, max_bytes=max_bytes, read_as=read_as)


def decode_response(type_: type[T], data: bytes, *, max_bytes: int = MAX_RESPONSE_BYTES) -> T:
    """Read a peer's response leniently; AcpFailure CONTRACT_VIOLATION where even that fails."""
    return _decode(
        type_,
        data,
        direction=Direction.RESPONSE,
        max_bytes=max_bytes,
        read_as=leniency.safest,
    )


def reread(type_: type[T], data: bytes) -> T:
    """Read a response again that `decode_response` has checked before, leniently, without a scan.

    For whoever keeps the text (a journal): what was refused once is refused again alike.
    """
    try:
        return _read(type_, data, read_as=leniency.safest)
    except msgspec.ValidationError as said:
        raise wrong(Direction.RESPONSE, explain(type_, said)) from None
    except (msgspec.DecodeError, RecursionError) as said:
        raise wrong(Direction.RESPONSE, f"$: {said}") from None


def decode_error(status: int, data: bytes, *, max_bytes: int = MAX_RESPONSE_BYTES) -> ErrorBody:
    """The error of an HTTP answer that is not a success, also when no ACP body came with it."""
    try:
        return decode_response(ErrorBody, data, max_bytes=max_bytes)
    except AcpFailure:
        said = data[:200].decode("utf-8", "replace").strip()
        text = f"HTTP status {status} without an ACP error body" + (f": {said}" if said else "")
        return ErrorBody(error=from_http(status, text))


def _decode(
    type_: type[T],
    data: bytes,
    *,
    direction: Direction,
    max_bytes: int,
    read_as: leniency.ReadAs | None,
) -> T:
    checked = _scan(data, direction, max_bytes=max_bytes)
    try:
        message = _read(type_, data, read_as=read_as)
    except msgspec.ValidationError as said:
        raise wrong(direction, explain(type_, said)) from None
    except (msgspec.DecodeError, RecursionError) as said:
        raise wrong(direction, f"$: {said}") from None
    if not checked:
        check_each(message, direction, max_bytes=max_bytes)
    return message


def _scan(data: bytes, direction: Direction, *, max_bytes: int) -> bool:
    """Check the whole message at once. False: it nests so deep that each payload must be looked at.

    A payload may nest 48 deep by itself, and the message around it adds its own levels.
    """
    try:
        check_payload(data, max_bytes=max_bytes)
    except PayloadRefused as problem:
        if problem.problem is PayloadProblem.TOO_DEEP:
            return False
        raise refused(direction, problem) from None
    return True


def _read(type_: type[T], data: bytes, *, read_as: leniency.ReadAs | None) -> T:
    decoder: msgspec.json.Decoder[T] = _decoder(type_)
    try:
        return decoder.decode(data)
    except msgspec.ValidationError:
        if read_as is None:
            raise
    return decoder.decode(leniency.rewrite(type_, data, read_as=read_as))


@cache
def _decoder(type_: type[T]) -> msgspec.json.Decoder[T]:
    return msgspec.json.Decoder(type_)


@cache
def _demands_nothing(type_: type[msgspec.Struct]) -> bool:
    return not any(field.required for field in shape_of(type_).fields)
