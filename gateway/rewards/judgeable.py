"""Whether an error says something of what is judged, or only prevented judging.

A component that says "no such account" has answered; one that was never reached has not. What is
not known to be an answer counts as not judged: a wrong null costs a sample, a wrong 0 teaches.
"""

from typing import Final

from acp_spec.model.enums import Boundary
from acp_spec.model.errors import AcpError, Code, Reason

ANSWER_CODES: Final = frozenset(
    {
        Code.INVALID_ARGUMENT,
        Code.NOT_FOUND,
        Code.ALREADY_EXISTS,
        Code.FAILED_PRECONDITION,
        Code.OUT_OF_RANGE,
    }
)
"""With these a component speaks of what it was asked; all others are about itself or the way."""

WIRE_REASONS: Final = frozenset(
    {
        Reason.VERSION_UNSUPPORTED.value,
        Reason.LOOP.value,
        Reason.EVENTS_EXPIRED.value,
        Reason.METHOD_NOT_ALLOWED.value,
        Reason.UNSUPPORTED_MEDIA_TYPE.value,
        Reason.SESSION_ENDED.value,
        Reason.RETRY_UNSAFE.value,
    }
)
"""Answers about the protocol, not about the question."""

VERDICTS: Final = frozenset({Reason.PLAN_REJECTED.value, Reason.LOOP_LIMIT.value})
"""What the gateway says of a plan after looking at it: a judgement, whoever's boundary it names."""


def prevented(error: AcpError | None) -> str:
    """Why this error keeps its call or session from being judged; empty when it does not."""
    if error is None or error.reason in VERDICTS:
        return ""
    if (
        error.boundary is Boundary.COMPONENT
        and error.code in ANSWER_CODES
        and error.reason not in WIRE_REASONS
    ):
        return ""
    return f"{error.boundary.value}: {error.reason}"
