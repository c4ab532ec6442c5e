"""Bodies of the gateway's own API, `/v1` (SPEC section 6)."""

import msgspec

from acp_spec.model.bounds import Count, NonEmpty, Signed
from acp_spec.model.card import Card
from acp_spec.model.context import Signals
from acp_spec.model.enums import (
    FeedbackKind,
    Mode,
    SessionStatus,
    StepStatus,
    StepType,
    Transport,
)
from acp_spec.model.errors import AcpError
from acp_spec.model.payload import ABSENT, Payload


class RegisterRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    url: NonEmpty
    transport: Transport = Transport.HTTP
    lease_seconds: Count = 0
    labels: dict[str, str] = {}
    auth: str = ""


class Lease(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    lease_seconds: Count
    expires_at: str


class Component(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A registered instance. `state`: ACTIVE, DRAINING, EXPIRED or UNREACHABLE."""

    component_id: str
    card: Card
    lease: Lease
    url: str = ""
    transport: Transport = Transport.HTTP
    digest: str = ""
    labels: dict[str, str] = {}
    state: str = "ACTIVE"
    signals: Signals | None = None


class Heartbeat(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    signals: Signals | None = None


class Problem(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One fault of a workflow file; line and column count from 1."""

    line: Count
    column: Count
    path: str
    message: str


class Validation(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    valid: bool
    problems: tuple[Problem, ...] = ()


class OpenSession(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    workflow: NonEmpty
    input: Payload = ABSENT
    deadline_ms: Count = 0
    priority: Signed = 0
    labels: dict[str, str] = {}
    session_key: str = ""
    mode: Mode = Mode.AUTOMATIC


class Opened(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    session_id: str
    lineage_id: str
    state_version: str
    status: SessionStatus


class StepView(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    name: str
    status: StepStatus


class Deviation(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Something served otherwise than pinned at the opening."""

    step: str
    role: str
    intended: str
    served: str
    reason: str = ""


class RolloutMark(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A session's part in a rollout of a version: which one, in which stage, on which arm.

    `arm`: BASELINE or CANDIDATE. `twin`: the session that ran beside this one, on the candidate."""

    rollout: str
    stage: str
    arm: str
    twin: str = ""


class Times(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    opened_at: str
    deadline_at: str = ""
    ended_at: str = ""


class SessionView(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`erased_at` is there once the session was deleted: what it held is gone, and stays gone."""

    session_id: str
    lineage_id: str
    workflow: str
    status: SessionStatus
    state_version: str
    fell_back: bool = False
    output: Payload = ABSENT
    error: AcpError | None = None
    steps: tuple[StepView, ...] = ()
    deviations: tuple[Deviation, ...] = ()
    mode: Mode = Mode.AUTOMATIC
    labels: dict[str, str] = {}
    times: Times | None = None
    erased_at: str = ""


class SessionPage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One keyset page; `next` is the `after` of the following one, absent on the last."""

    sessions: tuple[SessionView, ...] = ()
    next: str = ""


class ManualStep(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    step_type: StepType
    payload: Payload = ABSENT
    step_key: str = ""
    component: str = ""


class StepResult(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Answer of a manual step: settled (200) or still running (202: poll `steps/{step_key}`)."""

    step_key: str
    call_id: str
    status: StepStatus
    state_version: str = ""
    response: Payload = ABSENT
    error: AcpError | None = None


class FinishRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    output: Payload = ABSENT


class FeedbackTarget(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is judged: a call, a step (with its loop), or with neither the whole session."""

    call_id: str = ""
    step: str = ""
    loop: Count = 0


class Feedback(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`time` is the author's, RFC 3339; absent = when the gateway received it.

    `sampling_probability`: with which this target was drawn to be judged; absent where nobody drew
    it (the author chose to speak). Rates count only what was drawn, each by its inverse.
    """

    kind: FeedbackKind
    score: float | None = None
    comment: str = ""
    target: FeedbackTarget = FeedbackTarget()
    author: str = ""
    time: str = ""
    feedback_id: str = ""
    sampling_probability: float | None = None


class FeedbackAccepted(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    feedback_id: str
    state_version: str


class CompleteOperation(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Call-back of a long operation: exactly one of `output` and `error`."""

    output: Payload = ABSENT
    error: AcpError | None = None
