"""Reading a component's HTTP answer: success, error, NDJSON, or something that is none of them.

Nothing but a whole, well-formed ACP response is ever a success. Pure: bytes in, `Answer` out.
"""

from typing import Final

import msgspec

from acp_spec.bindings.errors import error, from_http
from acp_spec.bindings.fields import JSON, NDJSON
from acp_spec.codec.json import decode_response
from acp_spec.model.calls import ErrorBody
from acp_spec.model.enums import Boundary, Effect, SideEffect, StepRole
from acp_spec.model.errors import AcpError, AcpFailure, Reason
from gateway.runtime.connection import Answer
from gateway.transports.answers import (
    RESPONSE_OF,
    lost,
    not_sent,
    stated_error,
    success,
    unreadable,
    unstated_error,
    violation,
)
from gateway.transports.http_link import NOTHING_SENT, Fault, Response

# What a person needs of a foreign error page to recognise it.
_QUOTED_BYTES: Final = 200
# A peer that asks for more patience than a day means "never".
_RETRY_AFTER_S_MAX: Final = 86_400

_FAULTS: Final[dict[Fault, tuple[Reason, Boundary]]] = {
    Fault.REFUSED_ADDRESS: (Reason.UNAVAILABLE, Boundary.GATEWAY),
    Fault.NOT_CONNECTED: (Reason.UNAVAILABLE, Boundary.COMPONENT),
    Fault.TLS_FAILED: (Reason.UNAVAILABLE, Boundary.COMPONENT),
    Fault.OVERLOADED: (Reason.OVERLOADED, Boundary.GATEWAY),
    Fault.NOT_SENT: (Reason.UNAVAILABLE, Boundary.GATEWAY),
    Fault.CUT: (Reason.UNAVAILABLE, Boundary.COMPONENT),
    Fault.MALFORMED: (Reason.CONTRACT_VIOLATION, Boundary.COMPONENT),
    Fault.TOO_LARGE: (Reason.PAYLOAD_TOO_LARGE, Boundary.COMPONENT),
}

_JSON_TYPE: Final = JSON.encode()
_members: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
_PROGRESS: Final = frozenset({"progress", "message"})
_OF_RESPONSE: Final = frozenset({"output", "side_effect", "operation", "error"})


def faulty(fault: Fault, message: str, *, effect: Effect) -> Answer:
    """No response at all: what the fault says of it."""
    reason, boundary = _FAULTS[fault]
    if fault in NOTHING_SENT:
        return not_sent(reason, message, boundary=boundary)
    return lost(reason, message, effect=effect)


def fault_error(fault: Fault, message: str) -> AcpError:
    """The same for a question (describe, health, cancel), which does nothing.

    An address outside the allow-list is what whoever registered it must change, so it is no 503.
    """
    reason, boundary = _FAULTS[fault]
    if fault is Fault.REFUSED_ADDRESS:
        reason = Reason.PERMISSION_DENIED
    return error(reason, message, side_effect=SideEffect.NONE, boundary=boundary)


def read_reply(response: Response, role: StepRole, *, effect: Effect, max_bytes: int) -> Answer:
    """The answer to a call."""
    if response.content_encoding not in (b"", b"identity"):
        return violation("the response is compressed, which nobody asked for", effect)
    if 300 <= response.status < 400:
        text = f"HTTP status {response.status}: redirects are not followed, register the new url"
        return violation(text, effect)
    if response.status >= 400:
        return _read_error(response, effect, max_bytes=max_bytes)
    kind = media_type(response)
    if kind == JSON:
        return _read_success(response.body, role, effect=effect, max_bytes=max_bytes)
    if kind == NDJSON and role is StepRole.EXECUTE:
        return _read_lines(response.body, effect, max_bytes=max_bytes)
    text = f"HTTP status {response.status} with content type {kind or 'none'!r}, not {JSON}"
    return violation(text, effect)


def media_type(response: Response) -> str:
    """The content type in lower case, without parameters."""
    if response.content_type == _JSON_TYPE:
        return JSON  # nearly every answer
    return response.content_type.partition(b";")[0].strip().lower().decode("latin-1")


def error_of(response: Response, *, max_bytes: int) -> tuple[ErrorBody, bool]:
    """The error of a response that is no success; True if the peer stated it as ACP does."""
    try:
        return decode_response(ErrorBody, response.body, max_bytes=max_bytes), True
    except AcpFailure:
        said = response.body[:_QUOTED_BYTES].decode("utf-8", "replace").strip()
        text = f"HTTP status {response.status} without an ACP error" + (f": {said}" if said else "")
        failure = from_http(response.status, text)
        after_ms = _retry_after_ms(response.retry_after)
        return ErrorBody(error=msgspec.structs.replace(failure, retry_after_ms=after_ms)), False


def _read_error(response: Response, effect: Effect, *, max_bytes: int) -> Answer:
    body, is_stated = error_of(response, max_bytes=max_bytes)
    return stated_error(body, effect) if is_stated else unstated_error(body.error)


def _read_success(body: bytes, role: StepRole, *, effect: Effect, max_bytes: int) -> Answer:
    try:
        response = decode_response(RESPONSE_OF[role], body, max_bytes=max_bytes)
    except AcpFailure as failure:
        return unreadable(failure.error, effect)
    if b'"error"' in body and (stated := _error_in_success(body, max_bytes)) is not None:
        return stated_error(stated, effect)
    return success(response, body, effect=effect)


def _error_in_success(body: bytes, max_bytes: int) -> ErrorBody | None:
    """An ACP error under a success status: the peer failed, whatever its status line says."""
    try:
        members = _members.decode(body)
        if members.keys() & {"output", "operation", "plan", "verdict", "stored"}:
            return None  # a response with an unknown field of that name
        return decode_response(ErrorBody, body, max_bytes=max_bytes)
    except (AcpFailure, msgspec.MsgspecError):
        return None


def _read_lines(body: bytes, effect: Effect, *, max_bytes: int) -> Answer:
    """Progress lines are skipped; the last line is the response, or the stream was cut."""
    last = body.rstrip(b" \t\r\n").rpartition(b"\n")[2]
    if not last:
        return lost(Reason.UNAVAILABLE, "the stream ended without a response", effect=effect)
    try:
        names = _members.decode(last).keys()
    except msgspec.MsgspecError as said:
        return violation(f"the last line of the stream is no JSON object: {said}", effect)
    if names & _PROGRESS and not names & _OF_RESPONSE:
        return lost(Reason.UNAVAILABLE, "the stream ended after a progress line", effect=effect)
    return _read_success(last, StepRole.EXECUTE, effect=effect, max_bytes=max_bytes)


def _retry_after_ms(header: bytes) -> int | None:
    """Seconds of a Retry-After; its form as a date is not read (it needs an agreed clock)."""
    if not header.isdigit() or len(header) > 9:
        return None
    return min(int(header), _RETRY_AFTER_S_MAX) * 1000
