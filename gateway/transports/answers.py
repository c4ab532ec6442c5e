"""What an attempt came to, as the `Answer` that every transport hands on (SPEC section 5).

Here stands which side effect is true when the peer did not state one, and which failures prove that
nothing was sent. Values in, values out: nothing here knows a socket.
"""

import msgspec

from acp_spec.bindings.errors import effective_side_effect, error, passed_on
from acp_spec.model.calls import (
    ErrorBody,
    ExecuteResponse,
    ObserveResponse,
    PlanResponse,
    ReflectResponse,
    Reply,
)
from acp_spec.model.enums import Boundary, Effect, SideEffect, StepRole
from acp_spec.model.errors import AcpError, Reason
from acp_spec.model.payload import payload
from gateway.runtime.connection import Answer

RESPONSE_OF: dict[StepRole, type[Reply]] = {
    StepRole.PLAN: PlanResponse,
    StepRole.EXECUTE: ExecuteResponse,
    StepRole.OBSERVE: ObserveResponse,
    StepRole.REFLECT: ReflectResponse,
}


def success(response: Reply, text: bytes, *, effect: Effect) -> Answer:
    """The peer's response; `text` is its JSON, handed on byte for byte."""
    operation = response.operation if isinstance(response, ExecuteResponse) else None
    if operation is not None and isinstance(response, ExecuteResponse) and bytes(response.output):
        return violation("the response has both `output` and `operation`", effect)
    component = response.component
    return Answer(
        response=payload(text),
        side_effect=effective_side_effect(response, effect),
        retries_spent=response.retries_spent,
        usage=response.usage,
        llm_calls=response.llm_calls,
        served_version=component.version if component is not None else "",
        operation_poll_after_ms=operation.poll_after_ms if operation is not None else None,
    )


def stated_error(body: ErrorBody, effect: Effect) -> Answer:
    """The peer's own error, with the side effect filled in where it states none."""
    side_effect = effective_side_effect(body.error, effect)
    return Answer(
        error=msgspec.structs.replace(passed_on(body.error), side_effect=side_effect),
        side_effect=side_effect,
        retries_spent=body.retries_spent,
        usage=body.usage,
        llm_calls=body.llm_calls,
        served_version=body.component.version if body.component is not None else "",
    )


def unstated_error(failure: AcpError) -> Answer:
    """An error that no ACP component stated: `failure` says what is known of the side effect."""
    side_effect = failure.side_effect or SideEffect.UNKNOWN
    return Answer(
        error=msgspec.structs.replace(failure, side_effect=side_effect),
        side_effect=side_effect,
        answered=False,
    )


def lost(reason: Reason, message: str, *, effect: Effect) -> Answer:
    """It was sent and nobody can say what came of it; a READ did nothing in any case."""
    side_effect = SideEffect.NONE if effect is Effect.READ else SideEffect.UNKNOWN
    return unstated_error(
        error(reason, message, side_effect=side_effect, boundary=Boundary.COMPONENT)
    )


def violation(message: str, effect: Effect) -> Answer:
    """What came back breaks the contract."""
    return lost(Reason.CONTRACT_VIOLATION, message, effect=effect)


def unreadable(failure: AcpError, effect: Effect) -> Answer:
    """A response that the codec refused; its error says why."""
    return lost(Reason(failure.reason), failure.message, effect=effect)


def not_sent(reason: Reason, message: str, *, boundary: Boundary) -> Answer:
    """Proof that nothing reached the peer."""
    failure = error(reason, message, side_effect=SideEffect.NONE, boundary=boundary)
    return Answer(error=failure, side_effect=SideEffect.NONE, answered=False, not_sent=True)
