"""The one table of errors (SPEC section 5): reason -> code, HTTP status, retryable, side effect.

HTTP follows the reason, else the code. Servers, clients and the engine read this table, so that a
failure looks the same on every binding. A test holds it complete; nothing here raises.
"""

import re
from dataclasses import dataclass
from typing import Final

import msgspec

from acp_spec.model.calls import CancelResponse, ExecuteResponse, Reply
from acp_spec.model.enums import Boundary, Effect, SideEffect
from acp_spec.model.errors import AcpError, AcpFailure, Code, Reason


@dataclass(frozen=True, slots=True)
class Row:
    """`side_effect`: what is true when the one who detects this says it (None: section 5 decides).

    A refusal says NONE because the check stands before the work; whoever knows better states it.
    """

    code: Code
    http: int
    retryable: bool
    side_effect: SideEffect | None
    boundary: Boundary


_NONE, _PERFORMED, _UNKNOWN = SideEffect.NONE, SideEffect.PERFORMED, SideEffect.UNKNOWN
_CLIENT, _GATEWAY, _COMPONENT = Boundary.CLIENT, Boundary.GATEWAY, Boundary.COMPONENT

ERRORS: Final[dict[Reason, Row]] = {
    # What the caller sent is wrong: nothing was done.
    Reason.INVALID_REQUEST: Row(Code.INVALID_ARGUMENT, 400, False, _NONE, _CLIENT),
    Reason.UNSUPPORTED_MEDIA_TYPE: Row(Code.INVALID_ARGUMENT, 415, False, _NONE, _CLIENT),
    Reason.METHOD_NOT_ALLOWED: Row(Code.UNIMPLEMENTED, 405, False, _NONE, _CLIENT),
    Reason.NOT_FOUND: Row(Code.NOT_FOUND, 404, False, _NONE, _CLIENT),
    Reason.UNAUTHENTICATED: Row(Code.UNAUTHENTICATED, 401, False, _NONE, _CLIENT),
    Reason.PERMISSION_DENIED: Row(Code.PERMISSION_DENIED, 403, False, _NONE, _CLIENT),
    Reason.ALREADY_EXISTS: Row(Code.ALREADY_EXISTS, 409, False, _NONE, _CLIENT),
    Reason.IDEMPOTENCY_CONFLICT: Row(Code.ALREADY_EXISTS, 409, False, _NONE, _CLIENT),
    Reason.STALE_STATE: Row(Code.ABORTED, 409, True, _NONE, _CLIENT),
    Reason.STALE_ATTEMPT: Row(Code.ABORTED, 409, False, _NONE, _CLIENT),
    Reason.CALL_IN_PROGRESS: Row(Code.ABORTED, 409, True, _NONE, _COMPONENT),
    Reason.SESSION_ENDED: Row(Code.FAILED_PRECONDITION, 409, False, _NONE, _CLIENT),
    Reason.VERSION_UNSUPPORTED: Row(Code.FAILED_PRECONDITION, 400, False, _NONE, _CLIENT),
    Reason.LOOP: Row(Code.FAILED_PRECONDITION, 400, False, _NONE, _GATEWAY),
    Reason.PAYLOAD_TOO_LARGE: Row(Code.RESOURCE_EXHAUSTED, 413, False, _NONE, _CLIENT),
    Reason.EVENTS_EXPIRED: Row(Code.OUT_OF_RANGE, 410, False, _NONE, _CLIENT),
    # What was said does not fit the contract.
    Reason.SEMANTIC_MISMATCH: Row(Code.INVALID_ARGUMENT, 422, False, None, _COMPONENT),
    Reason.CONTRACT_VIOLATION: Row(Code.INVALID_ARGUMENT, 422, False, None, _COMPONENT),
    # The gateway will not go on.
    Reason.PLAN_REJECTED: Row(Code.FAILED_PRECONDITION, 422, False, _NONE, _GATEWAY),
    Reason.LOOP_LIMIT: Row(Code.FAILED_PRECONDITION, 422, False, _NONE, _GATEWAY),
    Reason.RETRY_UNSAFE: Row(Code.FAILED_PRECONDITION, 422, False, _NONE, _GATEWAY),
    Reason.BUDGET_EXHAUSTED: Row(Code.RESOURCE_EXHAUSTED, 429, False, _NONE, _GATEWAY),
    # Not now: the same request may work later.
    Reason.RATE_LIMITED: Row(Code.RESOURCE_EXHAUSTED, 429, True, _NONE, _COMPONENT),
    Reason.BREAKER_OPEN: Row(Code.UNAVAILABLE, 503, True, _NONE, _GATEWAY),
    Reason.NO_COMPONENT: Row(Code.UNAVAILABLE, 503, True, _NONE, _GATEWAY),
    Reason.OVERLOADED: Row(Code.UNAVAILABLE, 503, True, _NONE, _COMPONENT),
    # It may have been done: nobody knows, unless the one who failed says so.
    Reason.UNAVAILABLE: Row(Code.UNAVAILABLE, 503, True, None, _COMPONENT),
    Reason.TIMEOUT: Row(Code.DEADLINE_EXCEEDED, 504, True, None, _COMPONENT),
    Reason.SANDBOX_LIMIT: Row(Code.RESOURCE_EXHAUSTED, 429, False, None, _COMPONENT),
    Reason.CANCELLED: Row(Code.CANCELLED, 499, False, None, _CLIENT),
    Reason.INTERNAL: Row(Code.INTERNAL, 500, False, None, _COMPONENT),
    Reason.DATA_LOSS: Row(Code.DATA_LOSS, 500, False, None, _COMPONENT),
    Reason.UNKNOWN: Row(Code.UNKNOWN, 500, False, None, _COMPONENT),
    # Proof that nothing was done: no such method there.
    Reason.UNIMPLEMENTED: Row(Code.UNIMPLEMENTED, 501, False, _NONE, _COMPONENT),
}

HTTP_OF_CODE: Final[dict[Code, int]] = {
    Code.CANCELLED: 499,
    Code.UNKNOWN: 500,
    Code.INVALID_ARGUMENT: 400,
    Code.DEADLINE_EXCEEDED: 504,
    Code.NOT_FOUND: 404,
    Code.ALREADY_EXISTS: 409,
    Code.PERMISSION_DENIED: 403,
    Code.RESOURCE_EXHAUSTED: 429,
    Code.FAILED_PRECONDITION: 400,
    Code.ABORTED: 409,
    Code.OUT_OF_RANGE: 400,
    Code.UNIMPLEMENTED: 501,
    Code.INTERNAL: 500,
    Code.UNAVAILABLE: 503,
    Code.DATA_LOSS: 500,
    Code.UNAUTHENTICATED: 401,
}

GRPC_OF_CODE: Final[dict[Code, int]] = {code: number for number, code in enumerate(Code, 1)}
"""Canonical gRPC status numbers; `Code` is declared in their order, 0 is OK."""

CODE_OF_GRPC: Final[dict[int, Code]] = {number: code for code, number in GRPC_OF_CODE.items()}

# An HTTP answer without an ACP body (a proxy's page): which reason it is read as.
REASON_OF_HTTP: Final[dict[int, Reason]] = {
    400: Reason.INVALID_REQUEST,
    401: Reason.UNAUTHENTICATED,
    403: Reason.PERMISSION_DENIED,
    404: Reason.NOT_FOUND,
    405: Reason.METHOD_NOT_ALLOWED,
    408: Reason.TIMEOUT,
    409: Reason.CALL_IN_PROGRESS,
    410: Reason.NOT_FOUND,
    413: Reason.PAYLOAD_TOO_LARGE,
    415: Reason.UNSUPPORTED_MEDIA_TYPE,
    429: Reason.RATE_LIMITED,
    499: Reason.CANCELLED,
    501: Reason.UNIMPLEMENTED,
    502: Reason.UNAVAILABLE,
    503: Reason.UNAVAILABLE,
    504: Reason.TIMEOUT,
}

# A gRPC status without `acp-error-bin`.
REASON_OF_CODE: Final[dict[Code, Reason]] = {
    Code.CANCELLED: Reason.CANCELLED,
    Code.UNKNOWN: Reason.UNKNOWN,
    Code.INVALID_ARGUMENT: Reason.INVALID_REQUEST,
    Code.DEADLINE_EXCEEDED: Reason.TIMEOUT,
    Code.NOT_FOUND: Reason.NOT_FOUND,
    Code.ALREADY_EXISTS: Reason.ALREADY_EXISTS,
    Code.PERMISSION_DENIED: Reason.PERMISSION_DENIED,
    Code.RESOURCE_EXHAUSTED: Reason.RATE_LIMITED,
    Code.FAILED_PRECONDITION: Reason.INVALID_REQUEST,
    Code.ABORTED: Reason.CALL_IN_PROGRESS,
    Code.OUT_OF_RANGE: Reason.INVALID_REQUEST,
    Code.UNIMPLEMENTED: Reason.UNIMPLEMENTED,
    Code.INTERNAL: Reason.INTERNAL,
    Code.UNAVAILABLE: Reason.UNAVAILABLE,
    Code.DATA_LOSS: Reason.DATA_LOSS,
    Code.UNAUTHENTICATED: Reason.UNAUTHENTICATED,
}

_PROOF_NOTHING_RAN: Final = frozenset({Code.UNIMPLEMENTED, Code.UNAUTHENTICATED})


def error(
    reason: Reason,
    message: str,
    *,
    side_effect: SideEffect | None = None,
    boundary: Boundary | None = None,
    retry_after_ms: int | None = None,
) -> AcpError:
    """The error of this reason, with what the table says where nothing else is said."""
    row = ERRORS[reason]
    return AcpError(
        code=row.code,
        reason=reason.value,
        message=message,
        retryable=row.retryable,
        retry_after_ms=retry_after_ms,
        side_effect=row.side_effect if side_effect is None else side_effect,
        boundary=row.boundary if boundary is None else boundary,
    )


def invalid_request(message: str) -> AcpFailure:
    """What the caller has to change, to be raised; `message` begins with the place."""
    return AcpFailure(error(Reason.INVALID_REQUEST, message))


def refused_by_state(reason: str, message: str) -> AcpError:
    """The request is well made; it is the state of things that forbids it.

    `reason`: one's own, which the tables here do not know.
    """
    return AcpError(
        code=Code.FAILED_PRECONDITION,
        reason=reason,
        message=message,
        side_effect=SideEffect.NONE,
        boundary=Boundary.CLIENT,
    )


def http_status(failure: AcpError) -> int:
    """The status an HTTP answer carries for this error: by its reason, else by its code."""
    try:
        return ERRORS[Reason(failure.reason)].http
    except ValueError:
        return HTTP_OF_CODE[failure.code]


def grpc_status(failure: AcpError) -> int:
    """The gRPC status number of this error."""
    return GRPC_OF_CODE[failure.code]


def effective_side_effect(answer: AcpError | Reply | CancelResponse, effect: Effect) -> SideEffect:
    """What an answer to an action of this effect did (SPEC section 5).

    As the answer states, else NONE for READ, PERFORMED on success; an error, or an operation that
    is only accepted, is UNKNOWN.
    """
    stated = getattr(answer, "side_effect", None)
    if isinstance(stated, SideEffect):
        return stated
    if effect is Effect.READ:
        return _NONE
    accepted = isinstance(answer, ExecuteResponse) and answer.operation is not None
    return _UNKNOWN if accepted or isinstance(answer, AcpError) else _PERFORMED


def from_http(status: int, message: str) -> AcpError:
    """An HTTP answer with no ACP body: boundary COMPONENT, and nobody knows what was done."""
    fallback = Reason.INVALID_REQUEST if 400 <= status < 500 else Reason.UNKNOWN
    reason = REASON_OF_HTTP.get(status, fallback)
    return error(reason, message, side_effect=_UNKNOWN, boundary=_COMPONENT)


def from_grpc(status: int, message: str) -> AcpError:
    """A gRPC status with no ACP trailer; UNIMPLEMENTED and UNAUTHENTICATED prove nothing ran."""
    code = CODE_OF_GRPC.get(status, Code.UNKNOWN)
    side_effect = _NONE if code in _PROOF_NOTHING_RAN else _UNKNOWN
    return error(REASON_OF_CODE[code], message, side_effect=side_effect, boundary=_COMPONENT)


# As much as gRPC's trailer holds: an error's text is for a person, and stands in every record.
MESSAGE_CHARACTERS_MAX: Final = 4_096
# Reasons are words that people write into policies, and labels of metrics.
REASON_CHARACTERS_MAX: Final = 128
_UPPER_SNAKE: Final = re.compile(r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)*")


def passed_on(failure: AcpError) -> AcpError:
    """A peer's own error as a gateway tells it: its reason a word (ERR-003), its message bounded.

    What is no word, such as a sentence with an order's number in it, becomes the reason of its code
    and is told in the message instead.
    """
    reason, message = failure.reason, failure.message
    if len(reason) > REASON_CHARACTERS_MAX or not _UPPER_SNAKE.fullmatch(reason):
        message = f"(stated reason {reason[:REASON_CHARACTERS_MAX]!r}) {message}"
        reason = REASON_OF_CODE[failure.code].value
    if len(message) > MESSAGE_CHARACTERS_MAX:
        message = message[:MESSAGE_CHARACTERS_MAX] + "..."
    return msgspec.structs.replace(failure, reason=reason, message=message)
