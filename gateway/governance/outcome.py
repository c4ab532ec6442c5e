"""What an attempt came to, as the policies of a row see it: who is to blame, and was it sent.

Only what the target is to blame for counts against it (architecture idea 4). The gateway's own
refusals, a cancelled call and a caller's mistake say nothing about the target's health. One table
says it for every reason; a test holds it complete.
"""

from typing import Final

import msgspec

from acp_spec.model.enums import Boundary, Word
from acp_spec.model.errors import AcpError, Code, Reason


class Outcome(Word):
    """How a permit is closed. Exactly one of them, exactly once."""

    SUCCEEDED = "SUCCEEDED"
    ANSWERED = "ANSWERED"
    """An error that shows the target at work: the caller's mistake, a conflict, a refusal."""
    FAILED = "FAILED"
    """The target's own failure, or silence."""
    UNREACHED = "UNREACHED"
    """The target's failure too, and proof that nothing was sent: nobody was there."""
    DOWNSTREAM = "DOWNSTREAM"
    """Somebody behind the target failed; another instance of it would fail alike."""
    THROTTLED = "THROTTLED"
    """The target asked for fewer calls (429)."""
    ACCEPTED = "ACCEPTED"
    """A long operation has begun: its slot is free, its outcome is still to come."""
    CANCELLED = "CANCELLED"
    """The gateway broke it off, or gave it too little time: nobody's failure."""
    NOT_SENT = "NOT_SENT"
    """Admitted, and not sent after all: everything taken goes back."""


_ANSWERED, _FAILED, _THROTTLED = Outcome.ANSWERED, Outcome.FAILED, Outcome.THROTTLED

OF_REASON: Final[dict[Reason, Outcome]] = {
    Reason.INVALID_REQUEST: _ANSWERED,
    Reason.UNSUPPORTED_MEDIA_TYPE: _ANSWERED,
    Reason.METHOD_NOT_ALLOWED: _ANSWERED,
    Reason.NOT_FOUND: _ANSWERED,
    Reason.UNAUTHENTICATED: _ANSWERED,
    Reason.PERMISSION_DENIED: _ANSWERED,
    Reason.ALREADY_EXISTS: _ANSWERED,
    Reason.IDEMPOTENCY_CONFLICT: _ANSWERED,
    Reason.STALE_STATE: _ANSWERED,
    Reason.STALE_ATTEMPT: _ANSWERED,
    Reason.CALL_IN_PROGRESS: _ANSWERED,
    Reason.SESSION_ENDED: _ANSWERED,
    Reason.VERSION_UNSUPPORTED: _ANSWERED,
    Reason.LOOP: _ANSWERED,
    Reason.PAYLOAD_TOO_LARGE: _ANSWERED,
    Reason.EVENTS_EXPIRED: _ANSWERED,
    Reason.SEMANTIC_MISMATCH: _ANSWERED,
    # A component that says it judges the request; found by the gateway it is a broken answer.
    Reason.CONTRACT_VIOLATION: _ANSWERED,
    Reason.PLAN_REJECTED: _ANSWERED,
    Reason.LOOP_LIMIT: _ANSWERED,
    Reason.RETRY_UNSAFE: _ANSWERED,
    Reason.BUDGET_EXHAUSTED: _ANSWERED,
    Reason.RATE_LIMITED: _THROTTLED,
    # A component that is a gateway itself: what it says of those behind it.
    Reason.BREAKER_OPEN: Outcome.DOWNSTREAM,
    Reason.NO_COMPONENT: Outcome.DOWNSTREAM,
    Reason.OVERLOADED: _FAILED,
    Reason.UNAVAILABLE: _FAILED,
    Reason.TIMEOUT: _FAILED,
    Reason.SANDBOX_LIMIT: _ANSWERED,
    Reason.CANCELLED: Outcome.CANCELLED,
    Reason.INTERNAL: _FAILED,
    Reason.DATA_LOSS: _FAILED,
    Reason.UNKNOWN: _FAILED,
    Reason.UNIMPLEMENTED: _ANSWERED,
}

OF_CODE: Final[dict[Code, Outcome]] = {
    Code.CANCELLED: Outcome.CANCELLED,
    Code.UNKNOWN: _FAILED,
    Code.INVALID_ARGUMENT: _ANSWERED,
    Code.DEADLINE_EXCEEDED: _FAILED,
    Code.NOT_FOUND: _ANSWERED,
    Code.ALREADY_EXISTS: _ANSWERED,
    Code.PERMISSION_DENIED: _ANSWERED,
    Code.RESOURCE_EXHAUSTED: _THROTTLED,
    Code.FAILED_PRECONDITION: _ANSWERED,
    Code.ABORTED: _ANSWERED,
    Code.OUT_OF_RANGE: _ANSWERED,
    Code.UNIMPLEMENTED: _ANSWERED,
    Code.INTERNAL: _FAILED,
    Code.UNAVAILABLE: _FAILED,
    Code.DATA_LOSS: _FAILED,
    Code.UNAUTHENTICATED: _ANSWERED,
}
"""For the reasons of a component's own: by their code."""

_BY_TEXT: Final = {reason.value: outcome for reason, outcome in OF_REASON.items()}


class Ending(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What is known of an attempt's end. `stated`: the peer itself said it (an ACP answer)."""

    error: AcpError | None = None
    stated: bool = True
    not_sent: bool = False
    accepted: bool = False
    is_cancelled: bool = False
    is_short_of_time: bool = False
    """It was sent with so little of its own time that being late is not the target's fault."""


def without_error(*, accepted: bool) -> Outcome:
    """Which outcome an end without an error is; `accepted`: a long operation has begun."""
    return Outcome.ACCEPTED if accepted else Outcome.SUCCEEDED


def outcome_of(ending: Ending) -> Outcome:
    """Which outcome an end is."""
    failure = ending.error
    if failure is None:
        return without_error(accepted=ending.accepted)
    if ending.not_sent:
        is_theirs = failure.boundary is Boundary.COMPONENT
        return Outcome.UNREACHED if is_theirs else Outcome.NOT_SENT
    found = _BY_TEXT.get(failure.reason) or OF_CODE[failure.code]
    if not ending.stated:
        return _unstated(failure, found, ending=ending)
    if found is Outcome.FAILED and failure.boundary is Boundary.DOWNSTREAM:
        return Outcome.DOWNSTREAM
    return found


def _unstated(failure: AcpError, found: Outcome, *, ending: Ending) -> Outcome:
    """No ACP answer: silence, a cut, a proxy's page, or an answer that breaks the contract."""
    if ending.is_cancelled or failure.boundary is not Boundary.COMPONENT:
        return Outcome.CANCELLED
    if ending.is_short_of_time and failure.reason == Reason.TIMEOUT.value:
        return Outcome.CANCELLED
    if failure.reason == Reason.CONTRACT_VIOLATION.value:
        return Outcome.FAILED
    return found
