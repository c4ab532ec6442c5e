"""What happened: the only thing that changes a session, and the only thing the journal holds.

Every event carries its time (`at_ms` = max(clock, last event time)); what chance or a peer decided
rides on the event too. Expressions, governance and policies are run *before* an event is made and
never again in replay: a mapping is evaluated once, its bytes stand in `CallCreated` (SPEC 9.2).
A released event type keeps its fields for ever; new fields get defaults.
"""

import enum

import msgspec

from acp_spec.model.calls import LlmCall, Usage
from acp_spec.model.context import Signals
from acp_spec.model.enums import (
    Effect,
    Idempotency,
    Mode,
    SessionStatus,
    SideEffect,
    StepRole,
    StepStatus,
    StepType,
)
from acp_spec.model.errors import AcpError
from acp_spec.model.payload import ABSENT, Payload
from acp_spec.model.recovery import Decision
from acp_spec.model.semantics import MappedValue
from acp_spec.model.session import Deviation, Feedback, RolloutMark
from acp_spec.model.trajectory import FallbackRow

BEHAVIOUR = 3
"""Version of `step`; a change that alters commands is guarded by `Opened.behaviour`.

1: as released first. 2: an attempt may have a hedge beside it. 3: commands are hashed in blocks.
"""


class Event(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="event", gc=False
):
    at_ms: int


class Opened(Event, frozen=True, kw_only=True, omit_defaults=True, tag="Opened"):
    """The session exists. `pins`: step, role or action -> `name@version` intended (SPEC 9.6).

    `mapped`: values that were not in their domain as they came, `in_domain` how many were (R13); so
    in the other events. `fallback`: it was opened while the workflow's rules answer (R15);
    `fallback_trips`: how often they had taken over by then.
    `rollouts`: its parts in rollouts. `twin_of`: the session that this one runs beside, or replays.
    `recovery_params`: JSON of the recovery policy's defaults, where they are not the gateway's.
    """

    session_id: str
    lineage_id: str
    behaviour: int = 1
    """Of the opening; a journal without it is from before there was a second one."""
    tenant: str = ""
    workflow: str = ""
    workflow_digest: str = ""
    mode: Mode = Mode.AUTOMATIC
    input: Payload = ABSENT
    input_sha256: str = ""
    deadline_ms: int = 0
    priority: int = 0
    labels: dict[str, str] = {}
    session_key: str = ""
    request_digest: str = ""
    pins: dict[str, str] = {}
    policies: dict[str, str] = {}
    retry_budget: int = 8
    cancel_grace_ms: int = 2_000
    traceparent: str = ""
    tracestate: str = ""
    baggage: str = ""
    via: tuple[str, ...] = ()
    mapped: tuple[MappedValue, ...] = ()
    in_domain: int = 0
    fallback: FallbackRow | None = None
    fallback_output: Payload = ABSENT
    fallback_error: AcpError | None = None
    fallback_trips: int = 0
    rollouts: tuple[RolloutMark, ...] = ()
    twin_of: str = ""
    recovery_params: str = ""
    caller_span: str = ""
    """The client's own span: that of the session hangs below it (W3C Trace Context)."""


class CallCreated(Event, frozen=True, kw_only=True, omit_defaults=True, tag="CallCreated"):
    """One logical call with its exact request bytes (`body`: the request without `context`).

    `secret_paths`: where the card declares secrets, JSON Pointers into `{arguments, output}`.
    """

    call_id: str
    step: str
    role: StepRole
    sub_goal: str = ""
    loop: int = 0
    redo: int = 0
    component: str = ""
    version: str = ""
    action: str = ""
    step_type: StepType = StepType.TOOL
    effect: Effect = Effect.READ
    idempotency: Idempotency = Idempotency.NATURAL
    idempotency_ttl_ms: int = 0
    timeout_ms: int = 0
    operation_timeout_ms: int = 0
    body: Payload
    body_digest: str
    arguments: Payload = ABSENT
    reused_from: str = ""
    retry_of: str = ""
    manual_key: str = ""
    mapped: tuple[MappedValue, ...] = ()
    in_domain: int = 0
    secret_paths: tuple[str, ...] = ()


class SubGoalEnded(Event, frozen=True, kw_only=True, omit_defaults=True, tag="SubGoalEnded"):
    """A sub-goal that ended without a call: skipped, or its bindings did not resolve."""

    step: str
    sub_goal: str
    status: StepStatus
    error: AcpError
    mapped: tuple[MappedValue, ...] = ()


class StepEnded(Event, frozen=True, kw_only=True, omit_defaults=True, tag="StepEnded"):
    """A workflow step is over; `variables` is what its output mapping wrote (name, JSON text).

    `refused_retries`: calls that a verdict RETRY named and that may not be sent again (SPEC 9.1).
    `replan`: the plan was rejected, and its planner is asked once more.
    """

    step: str
    status: StepStatus
    variables: dict[str, Payload] = {}
    error: AcpError | None = None
    reason: str = ""
    refused_retries: tuple[str, ...] = ()
    replan: bool = False
    mapped: tuple[MappedValue, ...] = ()


class Deferred(Event, frozen=True, kw_only=True, omit_defaults=True, tag="Deferred"):
    """Admission put the attempt off: by whom, until when (0 = until something frees)."""

    call_id: str
    attempt: int
    policy: str
    until_ms: int = 0


class Refused(Event, frozen=True, kw_only=True, omit_defaults=True, tag="Refused"):
    """The gateway itself refused the attempt: nothing was sent.

    `fall_back`: the session does not go on without it, but ends with its fallback.
    """

    call_id: str
    attempt: int
    error: AcpError
    policy: str = ""
    fall_back: bool = False


class AttemptStarted(Event, frozen=True, kw_only=True, omit_defaults=True, tag="AttemptStarted"):
    """Admitted, journaled, about to be written to the peer. Without this nothing was sent.

    `hedge_after_ms`: no answer by then, and a second attempt may begin elsewhere; that one is a
    `hedge`.
    """

    call_id: str
    attempt: int
    component: str
    version: str
    instance: str
    timeout_ms: int
    lease: int = 0
    wait_ms: int = 0
    queued_at_ms: int = 0
    breaker: str = ""
    signals: tuple[Signals, ...] = ()
    parameter_version: int = 0
    callback_hash: str = ""
    deviation: Deviation | None = None
    hedge_after_ms: int = 0
    hedge: bool = False


class AttemptEnded(Event, frozen=True, kw_only=True, omit_defaults=True, tag="AttemptEnded"):
    """The one terminal event of an attempt (SPEC 9.3). `response`: the response's JSON text.

    `service_ms`: from the moment its bytes were written, without any waiting in the gateway.
    `superseded_by`: the attempt beside this one that answered first; this one is cancelled.
    """

    call_id: str
    attempt: int
    response: Payload = ABSENT
    error: AcpError | None = None
    side_effect: SideEffect = SideEffect.UNKNOWN
    answered: bool = True
    not_sent: bool = False
    retries_spent: int = 0
    usage: Usage | None = None
    llm_calls: tuple[LlmCall, ...] = ()
    served_version: str = ""
    operation_poll_after_ms: int | None = None
    service_ms: int | None = None
    mapped: tuple[MappedValue, ...] = ()
    in_domain: int = 0
    superseded_by: int = 0


class OperationEnded(Event, frozen=True, kw_only=True, omit_defaults=True, tag="OperationEnded"):
    """The first terminal result of a long operation, by poll or call-back (SPEC 9.5)."""

    call_id: str
    attempt: int
    response: Payload = ABSENT
    error: AcpError | None = None
    side_effect: SideEffect = SideEffect.UNKNOWN
    by: str = "poll"
    result_digest: str = ""
    mapped: tuple[MappedValue, ...] = ()
    in_domain: int = 0


class Late(Event, frozen=True, kw_only=True, omit_defaults=True, tag="Late"):
    """An answer after the terminal event: may sharpen the side effect, never the outcome."""

    call_id: str
    attempt: int
    response: Payload = ABSENT
    error: AcpError | None = None
    side_effect: SideEffect = SideEffect.UNKNOWN


class Decided(Event, frozen=True, kw_only=True, omit_defaults=True, tag="Decided"):
    call_id: str
    decision: Decision


class Timer(enum.Enum):
    DEADLINE = "DEADLINE"
    BACKOFF = "BACKOFF"
    POLL = "POLL"
    OPERATION = "OPERATION"
    GRACE = "GRACE"
    HEDGE = "HEDGE"


class TimerFired(Event, frozen=True, kw_only=True, omit_defaults=True, tag="TimerFired"):
    timer: Timer
    call_id: str = ""
    attempt: int = 0


class CancelRequested(Event, frozen=True, kw_only=True, omit_defaults=True, tag="CancelRequested"):
    by: str = ""


class FeedbackGiven(Event, frozen=True, kw_only=True, omit_defaults=True, tag="FeedbackGiven"):
    """`recorded_by`: the subject of the token that brought it, where the author is another name."""

    feedback: Feedback
    feedback_id: str
    recorded_by: str = ""


class FinishRequested(Event, frozen=True, kw_only=True, omit_defaults=True, tag="FinishRequested"):
    """A MANUAL session is ended by its client."""

    output: Payload = ABSENT


class SessionEnded(Event, frozen=True, kw_only=True, omit_defaults=True, tag="SessionEnded"):
    """The end. `commands_digest`: of all commands before it; a replay must come to the same."""

    status: SessionStatus
    output: Payload = ABSENT
    error: AcpError | None = None
    fell_back: bool = False
    commands_digest: str = ""


class SessionErased(Event, frozen=True, kw_only=True, omit_defaults=True, tag="SessionErased"):
    """Payloads are gone; the tombstone stays (who, when)."""

    by: str = ""


AnyEvent = (
    Opened
    | CallCreated
    | SubGoalEnded
    | StepEnded
    | Deferred
    | Refused
    | AttemptStarted
    | AttemptEnded
    | OperationEnded
    | Late
    | Decided
    | TimerFired
    | CancelRequested
    | FeedbackGiven
    | FinishRequested
    | SessionEnded
    | SessionErased
)
