"""Who plays in a `Play`: what a component is sent and says, and how a session is opened.

Components are pure functions from what was sent to what is answered; None is silence.
"""

from collections.abc import Callable

import msgspec

from acp_spec.bindings.errors import effective_side_effect, error
from acp_spec.model.calls import OperationState
from acp_spec.model.enums import Effect, Mode, SideEffect
from acp_spec.model.errors import AcpError, Reason
from acp_spec.model.ids import lineage_id, session_id
from acp_spec.model.payload import payload
from acp_spec.model.trajectory import FallbackRow
from gateway.engine import pins
from gateway.engine.catalog import Catalog
from gateway.engine.definition import Workflow
from gateway.engine.events import BEHAVIOUR, CallCreated, Opened, OperationEnded
from gateway.engine.states import CallState
from gateway.governance.backoff import Backoff

START_MS = 1_700_000_000_000


class Sent(msgspec.Struct, frozen=True, kw_only=True):
    """What a component gets: one attempt of a call."""

    created: CallCreated
    attempt: int
    at_ms: int
    timeout_ms: int
    lease: int

    @property
    def body(self) -> bytes:
        return bytes(self.created.body)


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """What a component answers after `after_ms`; beyond the timeout it comes late, or never."""

    response: bytes = b""
    error: AcpError | None = None
    side_effect: SideEffect | None = None
    after_ms: int = 5
    retries_spent: int = 0
    poll_after_ms: int | None = None
    not_sent: bool = False


Component = Callable[[Sent], Said | None]
"""None is silence: the attempt times out and nobody ever learns what it did."""

Operation = Callable[[str, int], OperationState | AcpError | None]
"""`operation(call_id, nth poll)`: how it stands, an error such as NOT_FOUND, or silence."""

Gate = Callable[[CallState, int, int], AcpError | int | None]
"""`gate(call, attempt, now_ms)`: None admits, an error refuses, a number defers for so many ms."""


def _silent(sent: Sent) -> Said | None:
    return None


def _open_gate(call: CallState, attempt: int, now_ms: int) -> AcpError | int | None:
    return None


def _unknown(call_id: str, nth: int) -> OperationState | AcpError | None:
    return error(Reason.NOT_FOUND, "there is no such operation")


class Cast(msgspec.Struct, frozen=True, kw_only=True):
    """Who plays: the components, how they take a cancel, how operations go, who is admitted."""

    component: Component
    on_cancel: Component = _silent
    operation: Operation = _unknown
    gate: Gate = _open_gate


class Terms(msgspec.Struct, frozen=True, kw_only=True):
    """How the session is opened."""

    input: bytes = b'{"query":"hello"}'
    deadline_ms: int = 30_000
    mode: Mode = Mode.AUTOMATIC
    labels: dict[str, str] = {}
    retry_budget: int = 8
    cancel_grace_ms: int = 2_000
    seed: int = 1
    backoff: Backoff = Backoff()
    hedge_after_ms: int = 0
    fallback: FallbackRow | None = None
    fallback_output: bytes = b""
    traceparent: str = ""
    caller_span: str = ""


def effect_of(call: CallState, said: Said) -> SideEffect:
    """The side effect of this answer, as a connection reads it."""
    if said.side_effect is not None:
        return said.side_effect
    if said.error is not None:
        return effective_side_effect(said.error, call.created.effect)
    if said.poll_after_ms is not None:
        return SideEffect.UNKNOWN
    read = call.created.effect is Effect.READ
    return SideEffect.NONE if read else SideEffect.PERFORMED


def operation_ended(
    call: CallState,
    at_ms: int,
    *,
    output: bytes = b"",
    failure: AcpError | None = None,
    effect: SideEffect = SideEffect.PERFORMED,
) -> OperationEnded:
    """The end of an operation, as a poll or a call-back brings it."""
    response = b'{"output":' + output + b"}" if output else b"{}"
    return OperationEnded(
        at_ms=at_ms,
        call_id=call.created.call_id,
        attempt=call.number,
        response=payload(b"" if failure else response),
        error=failure,
        side_effect=effect,
    )


def opening(workflow: Workflow | None, catalog: Catalog, terms: Terms) -> Opened:
    """The opening of a session that begins now."""
    new_id = session_id(START_MS, 1, random_64=terms.seed)
    deadline_ms = terms.deadline_ms
    if workflow is not None and workflow.limits.deadline_ms:
        deadline_ms = workflow.limits.deadline_ms
    return Opened(
        at_ms=START_MS,
        session_id=new_id,
        lineage_id=lineage_id(new_id, b""),
        behaviour=BEHAVIOUR,
        tenant="t",
        workflow=f"{workflow.name}@{workflow.version}" if workflow else "",
        workflow_digest=workflow.source_digest if workflow else "",
        mode=terms.mode,
        input=payload(terms.input),
        deadline_ms=deadline_ms,
        labels=terms.labels,
        pins=pins.pins(workflow, catalog, labels=terms.labels),
        retry_budget=terms.retry_budget,
        cancel_grace_ms=terms.cancel_grace_ms,
        fallback=terms.fallback,
        fallback_output=payload(terms.fallback_output),
        traceparent=terms.traceparent,
        caller_span=terms.caller_span,
    )
