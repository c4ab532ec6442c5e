"""The `acp-error-bin` trailer: an ErrorBody that fits beside a gRPC status (SPEC section 5).

Peers cut or refuse large header blocks, so the whole stays within 4 KiB: first what is kept for
training goes, then the details, then the end of the message. Code, reason and side effect stay.
"""

from typing import Final

import msgspec

from acp_spec.bindings.errors import from_grpc
from acp_spec.bindings.fields import ERROR_TRAILER_BYTES
from acp_spec.codec.proto import decode_response, to_proto
from acp_spec.model.calls import ErrorBody
from acp_spec.model.errors import AcpError, AcpFailure
from acp_spec.model.payload import ABSENT

_CUT: Final = "..."
# What is left for the texts of an error once its fixed fields are written (they take < 100 bytes).
_TEXT_BYTES: Final = ERROR_TRAILER_BYTES - 512
_REASON_BYTES: Final = 256


def encode_trailer(body: ErrorBody) -> bytes:
    """The trailer's bytes, at most 4 KiB, whatever the error holds."""
    data = to_proto(body)
    if len(data) <= ERROR_TRAILER_BYTES:
        return data
    body = msgspec.structs.replace(body, llm_calls=())
    data = to_proto(body)
    if len(data) <= ERROR_TRAILER_BYTES:
        return data
    cut = msgspec.structs.replace(body.error, details=ABSENT, details_truncated=True)
    data = to_proto(msgspec.structs.replace(body, error=cut))
    if len(data) <= ERROR_TRAILER_BYTES:
        return data
    return to_proto(ErrorBody(error=_with_short_texts(cut), retries_spent=body.retries_spent))


def decode_trailer(status: int, message: str, *, trailer: bytes | None) -> ErrorBody:
    """The error of a gRPC call that failed, also when no (readable) ACP trailer came with it."""
    if trailer:
        try:
            return decode_response(ErrorBody, trailer)
        except AcpFailure:
            message = f"{message} (its {len(trailer)} byte ACP trailer could not be read)"
    return ErrorBody(error=from_grpc(status, message))


def _with_short_texts(error: AcpError) -> AcpError:
    return msgspec.structs.replace(
        error,
        reason=_first_bytes(error.reason, _REASON_BYTES),
        message=_first_bytes(error.message, _TEXT_BYTES - _REASON_BYTES),
    )


def _first_bytes(text: str, length: int) -> str:
    data = text.encode()
    if len(data) <= length:
        return text
    return data[: length - len(_CUT)].decode("utf-8", "ignore") + _CUT
