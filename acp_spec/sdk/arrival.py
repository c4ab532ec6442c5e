"""What the transport tells about a request beside its body, and the checks that need only that.

Both fronts fill one `Arrival`, so header rules (SPEC sections 1, 2, 6) cannot differ between
bindings.
"""

import hmac
import re
from dataclasses import dataclass

from acp_spec.bindings.fields import MAX_VIA, SUPPORTED_VERSIONS, is_supported
from acp_spec.model.context import Context
from acp_spec.model.errors import Reason
from acp_spec.sdk.faults import refusal

_VERSION = re.compile(r"([0-9]{1,4})\.([0-9]{1,4})")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_TRACEPARENT = re.compile(r"[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}.*")
# Ids are keys of tables and parts of URLs; no real one is longer.
CALL_ID_LENGTH_MAX = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """`at_ms` by the dispatcher's monotonic clock. None = the transport carried no such thing."""

    at_ms: float
    timeout_ms: float | None = None
    acp_version: str | None = None
    idempotency_key: str | None = None
    authorization: str | None = None
    traceparent: str | None = None
    tracestate: str | None = None


def check_version(stated: str | None) -> None:
    """Refuse an unknown major version; a higher minor only adds (SPEC section 1)."""
    if stated is None:
        return
    if not _VERSION.fullmatch(stated):
        raise refusal(
            Reason.INVALID_REQUEST, f"acp-version must look like 1.0, not {stated[:40]!r}."
        )
    if not is_supported(stated):
        supported = ", ".join(SUPPORTED_VERSIONS)
        raise refusal(
            Reason.VERSION_UNSUPPORTED,
            f"This component does not speak ACP {stated}; it supports: {supported}.",
        )


def check_token(arrival: Arrival, token: str | None) -> None:
    """Refuse a call without the bearer token this component was given (None = loopback, no
    token).
    """
    if token is None:
        return
    scheme, _, given = (arrival.authorization or "").partition(" ")
    if scheme.lower() != "bearer" or not hmac.compare_digest(given.encode(), token.encode()):
        raise refusal(
            Reason.UNAUTHENTICATED,
            "Send `authorization: Bearer <token>` with the token this component was started with.",
        )


def check_context(context: Context, arrival: Arrival) -> None:
    """Refuse a context that cannot address an attempt, or that its headers contradict."""
    problem = _context_problem(context)
    if problem is None and arrival.idempotency_key not in (None, context.call_id):
        problem = (
            f"the idempotency-key header is {arrival.idempotency_key!r} "
            f"but context.call_id is {context.call_id!r}"
        )
    if problem is not None:
        raise refusal(Reason.INVALID_REQUEST, f"The request's context is not valid: {problem}.")
    if len(context.via) > MAX_VIA:
        raise refusal(
            Reason.LOOP,
            f"The call came through {len(context.via)} gateways, at most {MAX_VIA} are allowed: "
            "is there a circle among them?",
        )


def _context_problem(context: Context) -> str | None:
    call_id = context.call_id
    if not 1 <= len(call_id) <= CALL_ID_LENGTH_MAX or not call_id.isprintable():
        return f"call_id must have 1 to {CALL_ID_LENGTH_MAX} printable characters"
    if not context.session_id:
        return "session_id is missing"
    if context.attempt < 1:
        return f"attempt must be 1 or more, not {context.attempt}"
    if context.timeout_ms < 1:
        return f"timeout_ms must be more than 0, not {context.timeout_ms}"
    if not _DIGEST.fullmatch(context.body_digest):
        return "body_digest must be 64 lower-case hex digits (SHA-256 of action, NUL, arguments)"
    if context.retry_budget < 0:
        return f"retry_budget must not be negative, but is {context.retry_budget}"
    return None


def valid_traceparent(stated: str | None) -> bool:
    """Whether a traceparent header is well formed (W3C), so that it is the parent span."""
    return stated is not None and _TRACEPARENT.fullmatch(stated) is not None
