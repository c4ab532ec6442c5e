"""What a recovery policy sees and says (architecture idea 5): the only place these names live.

`gateway/engine/recovery` computes the features; a learned policy reads them from trajectories under
exactly these names, types and units. Changing one is a new `FEATURE_SCHEMA`.
"""

import enum

import msgspec

from acp_spec.model.enums import Effect, Idempotency, SideEffect

FEATURE_SCHEMA = "recovery-2"
"""2 added the breaker, the retry tokens, and the load of the instance asked next."""


class Trigger(enum.Enum):
    FAILED = "FAILED"
    LATE = "LATE"
    REFUSED = "REFUSED"


class Option(enum.Enum):
    """What can be done about a failed call."""

    RETRY = "RETRY"
    GIVE_UP = "GIVE_UP"


class RecoveryView(msgspec.Struct, frozen=True, kw_only=True):
    """Everything known at decision time; features are recorded as computed, never recomputed.

    `last_wait_ms` was spent in the gateway, `last_service_ms` at the component. The load figures
    are those the component reported `signals_age_ms` ago; None: not reported. `retry_tokens` is
    the share of them that is left.
    """

    session_id: str
    call_id: str
    index: int
    trigger: Trigger
    role: str
    component: str
    action: str
    effect: Effect
    idempotency: Idempotency
    attempt: int
    reason: str
    code: str
    boundary: str
    retryable: bool
    retry_after_ms: int | None
    side_effect: SideEffect
    elapsed_ms: int
    deadline_left_ms: int
    budget_left: int
    call_retries_left: int
    not_sent: bool
    last_wait_ms: int
    last_service_ms: int
    breaker: str = "closed"
    breaker_open_ms: int = 0
    retry_tokens: float = 1.0
    may_retry: bool = True
    queue_length: int | None = None
    queue_ms: float | None = None
    service_ms: float | None = None
    cpu_percent: float | None = None
    gpu_queue_length: int | None = None
    inflight: int | None = None
    signals_age_ms: int | None = None


class OptionChance(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One option with its probability; `masked_by` names the guard that forbade it (then 0.0)."""

    option: Option
    wait_ms: int = 0
    probability: float = 0.0
    masked_by: str = ""


class PolicyRef(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    version: str
    digest: str


class Decision(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One recovery decision as recorded (protocol section 7)."""

    decision_id: str
    index: int
    call_id: str
    after_attempt: int
    caused_attempt: int | None = None
    trigger: Trigger
    at_ms: int
    features: dict[str, float | int | str | bool | None]
    feature_schema: str = FEATURE_SCHEMA
    signals_age_ms: int | None = None
    options: tuple[OptionChance, ...]
    chosen: Option
    draw: float
    policy: PolicyRef
    guardrails_digest: str
    override: str = ""
    ended_as: str = ""
