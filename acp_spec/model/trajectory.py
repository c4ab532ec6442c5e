"""The trajectory: the whole record of one session (SPEC section 7). What training reads is this.

One row per attempt, one per decision; what is missing stands in `gaps`, never silently absent.
Times are RFC 3339 text (SPEC section 1), empty where there is none; `*_ms` properties give them as
milliseconds since the epoch for whoever computes.
"""

import msgspec

from acp_spec.model.calls import Claim, LlmCall, Reward
from acp_spec.model.context import Signals
from acp_spec.model.enums import Effect, SessionStatus, SideEffect
from acp_spec.model.errors import AcpError
from acp_spec.model.grounding import Grounding
from acp_spec.model.payload import ABSENT, Payload
from acp_spec.model.plan import Plan
from acp_spec.model.recovery import Option, PolicyRef, Trigger
from acp_spec.model.reward_vector import CommentReading, RaterSpread, RewardVector
from acp_spec.model.semantics import MappedValue
from acp_spec.model.session import Deviation, Feedback, RolloutMark
from acp_spec.model.times import parse_rfc3339

SCHEMA_VERSION = "1.0"


class Lineage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`intended`: role or action -> component name@version pinned at the opening."""

    intended: dict[str, str] = {}
    input_sha256: str = ""
    workflow_sha256: str = ""
    policies: dict[str, str] = {}
    deviations: tuple[Deviation, ...] = ()


class PlanVersion(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    generation: int
    step: str
    call_id: str
    plan: Plan
    rationale: str = ""
    confidence: float | None = None


class DecisionOption(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One option as recorded, `params` such as `wait_ms`; `masked_by` names who forbade it."""

    option: Option
    params: dict[str, int] = {}
    probability: float
    masked_by: str = ""


class DecisionRow(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One recovery decision: what was seen, what was possible, what was drawn."""

    decision_id: str
    index: int
    call_id: str
    after_attempt: int
    caused_attempt: int | None = None
    trigger: Trigger
    at: str
    features: dict[str, float | int | str | bool | None]
    feature_schema: str
    signals_age_ms: int | None = None
    options: tuple[DecisionOption, ...]
    chosen: Option
    draw: float
    policy: PolicyRef
    guardrails_digest: str
    override: str = ""
    ended_as: str = ""


class Attempt(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One attempt of one call. A call taken over or refused before sending has one row too.

    `service_ms`: from the moment its bytes were written, without any waiting in the gateway.
    `secret_paths`: where the card declares secrets, JSON Pointers into `{arguments, output}`.
    """

    call_id: str
    attempt: int
    loop: int = 0
    step: str
    sub_goal: str = ""
    role: str
    component: str = ""
    component_version: str = ""
    instance: str = ""
    action: str = ""
    effect: Effect = Effect.WRITE
    arguments: Payload = ABSENT
    output: Payload = ABSENT
    error: AcpError | None = None
    side_effect: SideEffect = SideEffect.UNKNOWN
    reused: bool = False
    reused_from: str = ""
    retry_of: str = ""
    queued_at: str = ""
    sent_at: str = ""
    ended_at: str = ""
    wait_ms: int = 0
    service_ms: int | None = None
    timeout_ms: int = 0
    breaker: str = ""
    signals: tuple[Signals, ...] = ()
    parameter_version: int = 0
    hedge: bool = False
    budget_left: int = 0
    retries_spent: int = 0
    late: bool = False
    arguments_mapped: tuple[MappedValue, ...] = ()
    output_mapped: tuple[MappedValue, ...] = ()
    secret_paths: tuple[str, ...] = ()

    @property
    def queued_at_ms(self) -> int:
        return _ms(self.queued_at) or 0

    @property
    def sent_at_ms(self) -> int | None:
        return _ms(self.sent_at)

    @property
    def ended_at_ms(self) -> int | None:
        return _ms(self.ended_at)


class FallbackRow(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """The session came while a business fallback answers (R15).

    `probe`: it still went by the components, to see whether they are well. Else `rule` of `version`
    answered, and no component was called.
    """

    probe: bool = False
    rule: str = ""
    version: str = ""


class ObservationRow(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    step: str
    call_id: str
    stored: int = 0
    memory: Payload = ABSENT


class ReflectionRow(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    step: str
    call_id: str
    verdict: str
    critique: str = ""
    loop: int = 0
    refused_retries: tuple[str, ...] = ()


class FeedbackRow(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`recorded_by`: who brought it, by the token shown, where its author has another name."""

    feedback: Feedback
    received_at: str
    state_version: str = ""
    recorded_by: str = ""


class QualityReward(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`value` is null, with `validity` and `reason`, when judging was prevented: never a 0."""

    name: str
    value: float | None = None
    validity: str = "VALID"
    reason: str = ""
    call_id: str = ""
    source: str = ""


class OperationalReward(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Never null for a session that opened."""

    succeeded: bool = False
    fell_back: bool = False
    failed: bool = False
    cancelled: bool = False
    attempts: int = 0
    calls: int = 0
    duration_ms: int = 0


class Rewards(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`raters`: where several people or programs scored the same thing, how far they are apart.
    `comments`: what was understood of them. `vector`: what the gateway's reward rules make of it
    all; absent without rules.
    """

    quality: tuple[QualityReward, ...] = ()
    operational: OperationalReward = OperationalReward()
    raters: tuple[RaterSpread, ...] = ()
    comments: tuple[CommentReading, ...] = ()
    vector: RewardVector | None = None


class Gap(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    what: str
    why: str


class LlmCallRow(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    call_id: str
    attempt: int
    llm_call: LlmCall


class Trajectory(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    schema_version: str
    session_id: str
    lineage_id: str
    lineage: Lineage = Lineage()
    tenant: str = ""
    workflow: str = ""
    labels: dict[str, str] = {}
    status: SessionStatus
    fell_back: bool = False
    fallback: FallbackRow | None = None
    input: Payload = ABSENT
    input_mapped: tuple[MappedValue, ...] = ()
    plan: tuple[PlanVersion, ...] = ()
    calls: tuple[Attempt, ...] = ()
    decisions: tuple[DecisionRow, ...] = ()
    llm_calls: tuple[LlmCallRow, ...] = ()
    observations: tuple[ObservationRow, ...] = ()
    reflections: tuple[ReflectionRow, ...] = ()
    feedback: tuple[FeedbackRow, ...] = ()
    rewards: Rewards = Rewards()
    reflector_rewards: tuple[Reward, ...] = ()
    output: Payload = ABSENT
    error: AcpError | None = None
    claims: tuple[Claim, ...] = ()
    grounding: Grounding | None = None
    gaps: tuple[Gap, ...] = ()
    opened_at: str = ""
    ended_at: str = ""
    sequence: int = 0
    state_version: str = ""
    rollouts: tuple[RolloutMark, ...] = ()
    twin_of: str = ""
    traceparent: str = ""

    @property
    def opened_at_ms(self) -> int:
        return _ms(self.opened_at) or 0

    @property
    def ended_at_ms(self) -> int | None:
        return _ms(self.ended_at)


def _ms(text: str) -> int | None:
    return parse_rfc3339(text) if text else None
