"""Recovery decisions: what a policy sees, what it may not do, and the record of what it chose.

A policy proposes options with probabilities; the guardrails mask what would be unsafe or useless
before the draw, so that no policy, learned or not, sends twice what must not be (SPEC section 4).
The draw is a hash of policy digest, session, call and index: it can be computed again.
"""

import hashlib
import math
from collections.abc import Callable
from typing import Protocol

import msgspec

from acp_spec.bindings.errors import error
from acp_spec.model.context import Signals
from acp_spec.model.enums import Boundary, Idempotency, SideEffect
from acp_spec.model.errors import AcpError, Reason
from acp_spec.model.ids import unit_interval
from acp_spec.model.recovery import (
    FEATURE_SCHEMA,
    Decision,
    Option,
    OptionChance,
    PolicyRef,
    RecoveryView,
    Trigger,
)
from gateway.engine.around import Around
from gateway.engine.outcomes import last_error
from gateway.engine.states import RETRIES_PER_CALL, AttemptState, CallState, SessionState

FOREVER_MS = 365 * 24 * 60 * 60 * 1000
"""Deadline left of a session without one; a year, so that the feature stays a number."""

GUARDRAILS_VERSION = 2
"""Raised with every change of what a guard forbids; a test holds the two together."""

_UNKNOWN_LOAD = Signals()


class Policy(Protocol):
    """A recovery policy: pure, versioned, the same interface for a rule and for a learned one."""

    @property
    def ref(self) -> PolicyRef: ...

    def options(self, view: RecoveryView) -> tuple[OptionChance, ...]:
        """Options with probabilities that sum to 1, before the guardrails."""


def view(state: SessionState, call: CallState, *, trigger: Trigger, around: Around) -> RecoveryView:
    """The features of this decision, as they are now; they are recorded and never recomputed."""
    created, attempt, at_ms = call.created, call.attempt, around.at_ms
    load = around.signals or _UNKNOWN_LOAD
    failure = last_error(call)
    deadline_ms = state.deadline_at(at_ms) or at_ms + FOREVER_MS
    return RecoveryView(
        session_id=state.session_id,
        call_id=created.call_id,
        index=call.decisions,
        trigger=trigger,
        role=created.role.value,
        component=created.component,
        action=created.action,
        effect=created.effect,
        idempotency=created.idempotency,
        attempt=call.number,
        reason=failure.reason,
        code=failure.code.value,
        boundary=failure.boundary.value,
        retryable=failure.retryable,
        retry_after_ms=failure.retry_after_ms,
        side_effect=attempt.side_effect if attempt else SideEffect.NONE,
        elapsed_ms=at_ms - created.at_ms,
        deadline_left_ms=deadline_ms - at_ms,
        budget_left=state.budget_left,
        call_retries_left=call.retries_left,
        not_sent=_not_sent(attempt),
        last_wait_ms=_wait_ms(attempt),
        last_service_ms=_service_ms(attempt),
        breaker=around.breaker,
        breaker_open_ms=around.breaker_open_ms,
        retry_tokens=around.retry_tokens,
        may_retry=around.may_retry,
        queue_length=load.queue_length,
        queue_ms=load.queue_ms,
        service_ms=load.service_ms,
        cpu_percent=load.cpu_percent,
        gpu_queue_length=load.gpu_queue_length,
        inflight=load.inflight,
        signals_age_ms=around.signals_age_ms,
    )


def _not_sent(attempt: AttemptState | None) -> bool:
    if attempt is None or attempt.refused is not None:
        return True
    return attempt.ended is not None and attempt.ended.not_sent


def _service_ms(attempt: AttemptState | None) -> int:
    if attempt is None or attempt.started is None or attempt.ended is None:
        return 0
    if attempt.ended.service_ms is not None:
        return attempt.ended.service_ms
    return attempt.ended.at_ms - attempt.started.at_ms


def _wait_ms(attempt: AttemptState | None) -> int:
    """All its waiting in the gateway: for its turn, and for a connection to be written to."""
    if attempt is None or attempt.started is None:
        return 0
    if attempt.ended is None:
        return attempt.started.wait_ms
    away_ms = attempt.ended.at_ms - attempt.started.at_ms
    return attempt.started.wait_ms + max(0, away_ms - _service_ms(attempt))


def _unsafe(view: RecoveryView, call: CallState) -> bool:
    """A NONE action is never sent again unless it is proven that nothing was sent or done."""
    if call.created.idempotency is not Idempotency.NONE:
        return False
    return any(
        attempt.side_effect is not SideEffect.NONE
        for attempt in call.attempts
        if not _not_sent(attempt)
    )


def outlived(call: CallState, at_ms: int) -> bool:
    """Would an attempt at this time come after the key's TTL? Then it is not sent (IDM-009)."""
    created = call.created
    if created.idempotency is not Idempotency.BY_KEY or call.first_sent_ms is None:
        return False
    ttl_ms = created.idempotency_ttl_ms
    return bool(ttl_ms) and at_ms - call.first_sent_ms >= ttl_ms


def forgotten(call: CallState) -> AcpError:
    """Why an attempt that waited beyond its key's TTL is refused."""
    message = (
        f"the component may have forgotten the call: it remembers outcomes for"
        f" {call.created.idempotency_ttl_ms} ms, so it is not sent again"
    )
    return error(Reason.RETRY_UNSAFE, message, boundary=Boundary.GATEWAY)


def _outlived(view: RecoveryView, call: CallState) -> bool:
    return outlived(call, _at_ms(view, call))


def _at_ms(view: RecoveryView, call: CallState) -> int:
    return call.created.at_ms + view.elapsed_ms


Guard = Callable[[RecoveryView, CallState], bool]

GUARDS: tuple[tuple[str, Guard], ...] = (
    ("not_retryable", lambda view, call: not view.retryable),
    ("idempotency", _unsafe),
    ("idempotency_ttl", _outlived),
    ("call_retries", lambda view, call: view.call_retries_left <= 0),
    ("session_budget", lambda view, call: view.budget_left <= 0),
    ("retry_tokens", lambda view, call: not view.may_retry),
)
"""Why a RETRY may be masked; the first that holds is named in the record."""

GUARDRAILS_DIGEST = hashlib.sha256(
    msgspec.json.encode(
        [GUARDRAILS_VERSION, FEATURE_SCHEMA, RETRIES_PER_CALL, [name for name, _ in GUARDS]]
    )
).hexdigest()[:16]
"""What stood around the policy when it decided: which guards, which versions, which bounds."""


def masked(
    view: RecoveryView, call: CallState, *, options: tuple[OptionChance, ...]
) -> tuple[OptionChance, ...]:
    """The options with the forbidden ones at probability 0 and the rest scaled to sum to 1."""
    blocked = next((name for name, holds in GUARDS if holds(view, call)), "")
    marked = [_mask(option, view, call=call, blocked=blocked) for option in options]
    total = sum(option.probability for option in marked)
    if total <= 0:
        given_up = OptionChance(option=Option.GIVE_UP, probability=1.0)
        return (*(o for o in marked if o.option is not Option.GIVE_UP), given_up)
    return tuple(
        msgspec.structs.replace(option, probability=option.probability / total) for option in marked
    )


def _mask(
    option: OptionChance, view: RecoveryView, *, call: CallState, blocked: str
) -> OptionChance:
    """The option as the draw may use it: a policy's odd number is no chance, its past is now."""
    likely = 0.0 < option.probability < math.inf  # not so for NaN
    chance = min(1.0, option.probability) if likely else 0.0
    option = msgspec.structs.replace(option, probability=chance, wait_ms=max(0, option.wait_ms))
    if option.option is not Option.RETRY:
        return option
    why = blocked
    if not why and option.wait_ms >= view.deadline_left_ms:
        why = "deadline"
    if not why and outlived(call, _at_ms(view, call) + option.wait_ms):
        why = "idempotency_ttl"
    return msgspec.structs.replace(option, probability=0.0, masked_by=why) if why else option


def decide(
    state: SessionState, call: CallState, *, policy: Policy, trigger: Trigger, around: Around
) -> Decision:
    """One decision, complete: what was seen, what was possible, what was drawn."""
    seen = view(state, call, trigger=trigger, around=around)
    options = masked(seen, call, options=policy.options(seen))
    draw = unit_interval(policy.ref.digest, seen.session_id, seen.call_id, str(seen.index))
    taken = _drawn(options, draw).option
    retries = taken is Option.RETRY
    return Decision(
        decision_id=f"{seen.call_id}.{seen.index}",
        index=seen.index,
        call_id=seen.call_id,
        after_attempt=call.number,
        caused_attempt=call.number + 1 if retries else None,
        trigger=trigger,
        at_ms=around.at_ms,
        features=features(seen),
        signals_age_ms=around.signals_age_ms,
        options=options,
        chosen=taken,
        draw=draw,
        policy=policy.ref,
        guardrails_digest=GUARDRAILS_DIGEST,
    )


def _drawn(options: tuple[OptionChance, ...], draw: float) -> OptionChance:
    reached = 0.0
    for option in options:
        reached += option.probability
        if draw < reached:
            return option
    return next(option for option in reversed(options) if option.probability > 0)


def chosen(decision: Decision) -> OptionChance:
    """The option that was drawn: of several retries the one whose turn it was, with its wait."""
    drawn = _drawn(decision.options, decision.draw)
    if drawn.option is decision.chosen:
        return drawn
    return next(option for option in decision.options if option.option is decision.chosen)


def features(seen: RecoveryView) -> dict[str, float | int | str | bool | None]:
    """The view as plain values under the names of FEATURE_SCHEMA."""
    plain: dict[str, float | int | str | bool | None] = msgspec.to_builtins(seen)
    return plain
