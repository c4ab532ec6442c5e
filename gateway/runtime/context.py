"""The context of one attempt, stamped when it is written (SPEC section 2)."""

import hashlib
import hmac

from acp_spec.bindings.errors import error
from acp_spec.bindings.fields import MAX_VIA
from acp_spec.model.context import Callback, Context
from acp_spec.model.enums import StepRole
from acp_spec.model.errors import AcpError, Reason
from gateway.engine.events import AttemptStarted
from gateway.engine.states import CallState, SessionState
from gateway.telemetry.spans import TraceParent, parse_traceparent

TOKEN_BYTES = 16


class ContextMaker:
    """Contexts of one gateway: its id in `via`, its URL and secret for call-backs."""

    def __init__(self, *, gateway_id: str, secret: bytes) -> None:
        self.gateway_id = gateway_id
        self._secret = secret
        self.public_url = ""
        """Base URL that call-backs reach; known once the server is bound."""

    def make(
        self, state: SessionState, call: CallState, *, started: AttemptStarted, timeout_ms: int
    ) -> Context:
        """What the peer is told beside the request itself."""
        opened, created = state.opened, call.created
        span = attempt_span(opened.traceparent, created.call_id, attempt=started.attempt)
        return Context(
            session_id=opened.session_id,
            lineage_id=opened.lineage_id,
            call_id=created.call_id,
            attempt=started.attempt,
            body_digest=created.body_digest,
            timeout_ms=timeout_ms,
            retry_budget=started.lease,
            traceparent=span.header(),
            tracestate=opened.tracestate,
            baggage=opened.baggage,
            workflow=opened.workflow,
            step=created.step,
            state_version=state.version_text,
            priority=opened.priority,
            tenant=opened.tenant,
            labels=opened.labels,
            via=(*opened.via, self.gateway_id),
            callback=self._callback(state, call, started=started),
            signals=started.signals,
        )

    def beside(
        self, state: SessionState, call_id: str, *, step: str, body_digest: str, timeout_ms: int
    ) -> Context:
        """Of one call about a session that is none of its steps; it is tried once."""
        opened = state.opened
        return Context(
            session_id=opened.session_id,
            lineage_id=opened.lineage_id,
            call_id=call_id,
            attempt=1,
            body_digest=body_digest,
            timeout_ms=timeout_ms,
            traceparent=attempt_span(opened.traceparent, call_id, attempt=1).header(),
            workflow=opened.workflow,
            step=step,
            state_version=state.version_text,
            tenant=opened.tenant,
            labels=opened.labels,
            via=(*opened.via, self.gateway_id),
        )

    def loop(self, via: tuple[str, ...]) -> AcpError | None:
        """LOOP for a session that came through this gateway before, or through too many."""
        if self.gateway_id in via:
            return error(Reason.LOOP, "the call comes back to a gateway that it came through")
        if len(via) >= MAX_VIA:
            message = f"the call came through {len(via)} gateways; with this one, over {MAX_VIA}"
            return error(Reason.LOOP, message)
        return None

    def _callback(
        self, state: SessionState, call: CallState, *, started: AttemptStarted
    ) -> Callback | None:
        created = call.created
        if created.role is not StepRole.EXECUTE or not created.operation_timeout_ms:
            return None
        token = self.token(state.session_id, created.call_id)
        return Callback(
            url=f"{self.public_url}/v1/operations/{created.call_id}:complete", token=token
        )

    def token(self, session_id: str, call_id: str) -> str:
        """The call-back token of a call: names the session, and only this gateway can make it."""
        text = f"{session_id}.{call_id}".encode()
        digest = hmac.new(self._secret, text, hashlib.sha256).hexdigest()
        return f"{session_id}.{digest[: 2 * TOKEN_BYTES]}"

    def session_of(self, call_id: str, token: str) -> str | None:
        """The session that a call-back token belongs to; None when it is not ours or not for it."""
        session_id, _, _ = token.partition(".")
        expected = self.token(session_id, call_id).encode()
        # As bytes: text beyond ASCII is a wrong token, and compare_digest would not take it.
        return session_id if hmac.compare_digest(expected, token.encode()) else None


def attempt_span(session_traceparent: str, call_id: str, *, attempt: int) -> TraceParent:
    """The attempt's span below the session's; the same ids after a crash (W3C Trace Context)."""
    session = parse_traceparent(session_traceparent)
    assert session is not None, "the gateway wrote this header itself"
    return session.child(call_id, str(attempt))
