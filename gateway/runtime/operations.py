"""Long operations: a poll's or a call-back's answer as the event that ends the call (SPEC 9.5)."""

import hashlib

from acp_spec.bindings.errors import effective_side_effect, error, passed_on
from acp_spec.codec.json import encode
from acp_spec.codec.json_text import object_of
from acp_spec.model.calls import OperationState
from acp_spec.model.enums import OperationStatus, SideEffect
from acp_spec.model.errors import AcpError, Reason
from acp_spec.model.payload import ABSENT, Payload, is_absent, payload
from acp_spec.model.session import CompleteOperation
from gateway.engine.events import OperationEnded
from gateway.engine.states import CallState


def ended_from_state(call: CallState, found: OperationState, *, at_ms: int) -> OperationEnded:
    """The end that a poll found."""
    failure = found.error
    if found.status is OperationStatus.SUCCEEDED:
        effect = found.side_effect or SideEffect.PERFORMED
        return OperationEnded(
            at_ms=at_ms,
            call_id=call.created.call_id,
            attempt=call.number,
            response=_response(found.output),
            side_effect=effect,
            result_digest=_digest(found.output, None),
        )
    if failure is None:
        reason = Reason.CANCELLED if found.status is OperationStatus.CANCELLED else Reason.UNKNOWN
        message = f"the operation ended {found.status.value} and said no more"
        failure = error(reason, message, side_effect=found.side_effect)
    return OperationEnded(
        at_ms=at_ms,
        call_id=call.created.call_id,
        attempt=call.number,
        error=passed_on(failure),
        side_effect=found.side_effect or effective_side_effect(failure, call.created.effect),
        result_digest=_digest(ABSENT, failure),
    )


def ended_from_callback(
    call: CallState, result: CompleteOperation, *, at_ms: int
) -> OperationEnded:
    """The end that the component reported itself."""
    failure = result.error
    if failure is None:
        effect, response = SideEffect.PERFORMED, _response(result.output)
    else:
        effect, response = effective_side_effect(failure, call.created.effect), ABSENT
    return OperationEnded(
        at_ms=at_ms,
        call_id=call.created.call_id,
        attempt=call.number,
        response=response,
        error=passed_on(failure) if failure else None,
        side_effect=effect,
        by="callback",
        result_digest=result_digest(result),
    )


def result_digest(result: CompleteOperation) -> str:
    """What tells the same call-back, sent again, from another one."""
    return _digest(result.output, result.error)


def _digest(output: Payload, failure: AcpError | None) -> str:
    text = bytes(output) + b"\0" + (encode(failure) if failure else b"")
    return hashlib.sha256(text).hexdigest()[:32]


def _response(output: Payload) -> Payload:
    """An ExecuteResponse's text around the output, byte for byte."""
    if is_absent(output):
        return payload(b"{}")
    return payload(object_of([("output", bytes(output))]))


__all__ = ["ended_from_callback", "ended_from_state", "result_digest"]
