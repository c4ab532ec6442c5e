"""The error that crosses every border (SPEC section 5): one shape on both bindings.

The table reason -> code, HTTP status, retryable, default side effect is `acp_spec.bindings`; here
are only the vocabulary and the value. A peer's failure is this value; our own mistake is an
assertion.
"""

import enum

import msgspec

from acp_spec.model.bounds import Count
from acp_spec.model.enums import Boundary, SideEffect
from acp_spec.model.payload import ABSENT, Payload


class Code(enum.Enum):
    """The 16 canonical gRPC codes (OK is not an error)."""

    CANCELLED = "CANCELLED"
    UNKNOWN = "UNKNOWN"
    INVALID_ARGUMENT = "INVALID_ARGUMENT"
    DEADLINE_EXCEEDED = "DEADLINE_EXCEEDED"
    NOT_FOUND = "NOT_FOUND"
    ALREADY_EXISTS = "ALREADY_EXISTS"
    PERMISSION_DENIED = "PERMISSION_DENIED"
    RESOURCE_EXHAUSTED = "RESOURCE_EXHAUSTED"
    FAILED_PRECONDITION = "FAILED_PRECONDITION"
    ABORTED = "ABORTED"
    OUT_OF_RANGE = "OUT_OF_RANGE"
    UNIMPLEMENTED = "UNIMPLEMENTED"
    INTERNAL = "INTERNAL"
    UNAVAILABLE = "UNAVAILABLE"
    DATA_LOSS = "DATA_LOSS"
    UNAUTHENTICATED = "UNAUTHENTICATED"


class Reason(enum.Enum):
    """Reasons the spec itself gives; a component may use others (`AcpError.reason` is text)."""

    INVALID_REQUEST = "INVALID_REQUEST"
    SEMANTIC_MISMATCH = "SEMANTIC_MISMATCH"
    CONTRACT_VIOLATION = "CONTRACT_VIOLATION"
    PLAN_REJECTED = "PLAN_REJECTED"
    LOOP_LIMIT = "LOOP_LIMIT"
    RETRY_UNSAFE = "RETRY_UNSAFE"
    STALE_STATE = "STALE_STATE"
    STALE_ATTEMPT = "STALE_ATTEMPT"
    CALL_IN_PROGRESS = "CALL_IN_PROGRESS"
    IDEMPOTENCY_CONFLICT = "IDEMPOTENCY_CONFLICT"
    RATE_LIMITED = "RATE_LIMITED"
    BUDGET_EXHAUSTED = "BUDGET_EXHAUSTED"
    SANDBOX_LIMIT = "SANDBOX_LIMIT"
    PAYLOAD_TOO_LARGE = "PAYLOAD_TOO_LARGE"
    BREAKER_OPEN = "BREAKER_OPEN"
    NO_COMPONENT = "NO_COMPONENT"
    OVERLOADED = "OVERLOADED"
    TIMEOUT = "TIMEOUT"
    EVENTS_EXPIRED = "EVENTS_EXPIRED"
    VERSION_UNSUPPORTED = "VERSION_UNSUPPORTED"
    LOOP = "LOOP"
    NOT_FOUND = "NOT_FOUND"
    METHOD_NOT_ALLOWED = "METHOD_NOT_ALLOWED"
    UNSUPPORTED_MEDIA_TYPE = "UNSUPPORTED_MEDIA_TYPE"
    UNAUTHENTICATED = "UNAUTHENTICATED"
    PERMISSION_DENIED = "PERMISSION_DENIED"
    ALREADY_EXISTS = "ALREADY_EXISTS"
    SESSION_ENDED = "SESSION_ENDED"
    CANCELLED = "CANCELLED"
    UNAVAILABLE = "UNAVAILABLE"
    UNIMPLEMENTED = "UNIMPLEMENTED"
    INTERNAL = "INTERNAL"
    DATA_LOSS = "DATA_LOSS"
    UNKNOWN = "UNKNOWN"


class AcpError(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What failed, who failed, and what it did before failing."""

    code: Code
    reason: str
    message: str
    retryable: bool = False
    retry_after_ms: Count | None = None
    side_effect: SideEffect | None = None
    boundary: Boundary = Boundary.COMPONENT
    details: Payload = ABSENT
    details_truncated: bool = False


class AcpFailure(Exception):
    """Carries an `AcpError` through Python code that raises; translated once at each border."""

    def __init__(self, error: AcpError) -> None:
        super().__init__(f"{error.reason}: {error.message}")
        self.error = error
