"""Requests and responses of Plan, Execute, Observe, Reflect, Cancel, operations (SPEC section 3).

Response types carry the reply's envelope fields (`component`, `usage`, ...) flat, as on the wire.
An error answer is `ErrorBody`: the same envelope around an `AcpError`.
"""

import msgspec

from acp_spec.model.bounds import AtLeastOne, Count, NonEmpty
from acp_spec.model.card import Action, ComponentRef
from acp_spec.model.context import Context
from acp_spec.model.enums import CancelState, OperationStatus, SideEffect, StepStatus, Verdict
from acp_spec.model.errors import AcpError
from acp_spec.model.payload import ABSENT, Payload
from acp_spec.model.plan import Plan


class Usage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    tokens: Count = 0
    cost_micros: Count = 0


class LlmCall(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One call a component made to a language model, kept for training (token ids are exact)."""

    id: str
    model: str = ""
    prompt: Payload = ABSENT
    response: Payload = ABSENT
    prompt_token_ids: tuple[Count, ...] = ()
    response_token_ids: tuple[Count, ...] = ()
    logprobs: tuple[float, ...] = ()
    tokens: Count = 0
    latency_ms: float = 0.0


class Reply(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """What every response, errors too, may carry beside its own fields."""

    component: ComponentRef | None = None
    retries_spent: Count = 0
    usage: Usage | None = None
    llm_calls: tuple[LlmCall, ...] = ()


class Memory(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    id: str
    data: Payload = ABSENT
    score: float = 0.0
    source: str = ""


class SettledCall(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A call as a planner or reflector sees it: its settled attempt. `truncated`: over 64 KiB."""

    call_id: str
    step: str = ""
    sub_goal: str = ""
    action: str = ""
    status: StepStatus = StepStatus.SUCCEEDED
    arguments: Payload = ABSENT
    output: Payload = ABSENT
    error: AcpError | None = None
    side_effect: SideEffect = SideEffect.UNKNOWN
    attempt: AtLeastOne = 1
    truncated: bool = False


class PlanLimits(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    max_sub_goals: Count = 10


class PlanRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    context: Context
    goal: str = ""
    input: Payload = ABSENT
    actions: tuple[Action, ...] = ()
    memory: tuple[Memory, ...] = ()
    calls: tuple[SettledCall, ...] = ()
    previous_plan: Plan | None = None
    critique: str = ""
    limits: PlanLimits = PlanLimits()


class PlanResponse(Reply, frozen=True, kw_only=True, omit_defaults=True):
    plan: Plan = Plan()
    output: Payload = ABSENT
    confidence: float | None = None
    rationale: str = ""


class ExecuteRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    context: Context
    action: NonEmpty
    arguments: Payload = ABSENT


class Operation(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Accepted, not finished: poll `operations/{call_id}` or wait for the call-back."""

    poll_after_ms: Count = 1000


class ExecuteResponse(Reply, frozen=True, kw_only=True, omit_defaults=True):
    """Either `output` with `side_effect`, or `operation`."""

    output: Payload = ABSENT
    side_effect: SideEffect | None = None
    operation: Operation | None = None


class Progress(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One partial line of ExecuteStream / NDJSON; the last line is the response."""

    progress: Payload = ABSENT
    message: str = ""


class ExecuteStreamItem(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One message of gRPC's ExecuteStream: progress, or (the last one) the response."""

    progress: Progress | None = None
    response: ExecuteResponse | None = None


class Observation(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    step: str = ""
    call_id: str = ""
    kind: str = ""
    data: Payload = ABSENT
    time: str = ""


class Recall(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    query: str = ""
    limit: Count = 5


class ObserveRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    context: Context
    observations: tuple[Observation, ...] = ()
    recall: Recall | None = None


class ObserveResponse(Reply, frozen=True, kw_only=True, omit_defaults=True):
    stored: Count = 0
    memory: tuple[Memory, ...] = ()


class Reward(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    name: NonEmpty
    value: float
    call_id: str = ""


class Claim(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """A sentence of the output with its sources: JSON Pointers into `{calls: {<call_id>: ...}}`."""

    text: str
    value: Payload = ABSENT
    unit: str = ""
    derivation: str = ""
    sources: tuple[str, ...] = ()


class ReflectRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    context: Context
    goal: str = ""
    plan: Plan | None = None
    calls: tuple[SettledCall, ...] = ()
    draft: Payload = ABSENT


class ReflectResponse(Reply, frozen=True, kw_only=True, omit_defaults=True):
    verdict: Verdict
    critique: str = ""
    retry_call_ids: tuple[str, ...] = ()
    rewards: tuple[Reward, ...] = ()
    output: Payload = ABSENT
    claims: tuple[Claim, ...] = ()


class CancelRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`attempt` 0 = every attempt of the call."""

    call_id: str = ""
    attempt: Count = 0


class CancelResponse(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    state: CancelState
    side_effect: SideEffect | None = None


class OperationRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """GetOperation and CancelOperation over gRPC; over HTTP the id stands in the path."""

    call_id: NonEmpty


class OperationState(Reply, frozen=True, kw_only=True, omit_defaults=True):
    """Answer of `GET operations/{call_id}`."""

    status: OperationStatus
    poll_after_ms: Count = 1000
    output: Payload = ABSENT
    side_effect: SideEffect | None = None
    error: AcpError | None = None


class ErrorBody(Reply, frozen=True, kw_only=True, omit_defaults=True):
    error: AcpError


Request = PlanRequest | ExecuteRequest | ObserveRequest | ReflectRequest
Response = PlanResponse | ExecuteResponse | ObserveResponse | ReflectResponse
