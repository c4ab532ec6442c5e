"""How failures are made on the component's side: the SDK's own refusals and a handler's failures.

A refusal happened before anything ran, so its side effect is NONE and it says so. What a handler
raises without stating a side effect reads as UNKNOWN unless its action is READ (SPEC section 5).
"""

from typing import TypedDict, Unpack

import msgspec

from acp_spec.bindings.errors import error
from acp_spec.model.enums import Boundary, Effect, SideEffect
from acp_spec.model.errors import AcpError, AcpFailure, Code, Reason
from acp_spec.model.payload import ABSENT
from acp_spec.sdk.values import write


class ErrorOptions(TypedDict, total=False):
    code: Code
    retryable: bool
    retry_after_ms: int
    boundary: Boundary
    details: object


def refusal(reason: Reason, message: str, *, retry_after_ms: int | None = None) -> AcpFailure:
    """The component refuses before anything ran, whoever is to blame."""
    return AcpFailure(
        error(reason, message, side_effect=SideEffect.NONE, retry_after_ms=retry_after_ms)
    )


def handler_failure(
    reason: Reason | str,
    message: str,
    *,
    side_effect: SideEffect | None = None,
    **options: Unpack[ErrorOptions],
) -> AcpFailure:
    """A failure a handler raises; a reason outside the table gets a code, FAILED_PRECONDITION if
    unsaid.
    """
    known = next((entry for entry in Reason if reason in (entry, entry.value)), None)
    made = (
        error(known, message)
        if known is not None
        else AcpError(code=Code.FAILED_PRECONDITION, reason=str(reason), message=message)
    )
    return AcpFailure(
        AcpError(
            code=options.get("code", made.code),
            reason=made.reason,
            message=message,
            retryable=options.get("retryable", made.retryable),
            retry_after_ms=options.get("retry_after_ms"),
            # Not the table's: a handler may have worked before it refused (SPEC section 5).
            side_effect=side_effect,
            boundary=options.get("boundary", made.boundary),
            details=write(options["details"]) if "details" in options else ABSENT,
        )
    )


def settled_error(failed: AcpError, effect: Effect) -> AcpError:
    """A handler's error with its side effect settled: what it said, else NONE for READ, else
    UNKNOWN.
    """
    if failed.side_effect is not None:
        return failed
    settled = SideEffect.NONE if effect is Effect.READ else SideEffect.UNKNOWN
    return msgspec.structs.replace(failed, side_effect=settled)
