"""What each table says of its subject: a part of a trajectory as names and values. Pure.

Names are those of the columns in `migrations/`; a test holds the two against each other. Numbers
that came from outside are 64 bits wide there, so that no value of a peer's can refuse a batch.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Final

from acp_spec.model.calls import Claim, Reward
from acp_spec.model.grounding import GroundedClaim, Grounding
from acp_spec.model.payload import Payload
from acp_spec.model.reward_vector import CommentReading, PartReward, Quality, StepReward
from acp_spec.model.times import parse_rfc3339, rfc3339
from acp_spec.model.trajectory import (
    Attempt,
    DecisionRow,
    FeedbackRow,
    Gap,
    LlmCallRow,
    ObservationRow,
    QualityReward,
    ReflectionRow,
    Trajectory,
)
from gateway.engine.plan_order import plan_order
from gateway.engine.record_blame import of_record
from gateway.stores.masked import MaskedAttempt
from gateway.stores.row_hash import hash_of

Scalar = str | int | float | bool | None
Value = Scalar | Sequence[Scalar] | Mapping[str, str]
Columns = dict[str, Value]

PAYLOAD_BYTES_MAX: Final = 64 * 1024
"""A bigger payload is not kept here (its size is): the log has it, and a scan need not read it."""

TEXT_CHARACTERS_MAX: Final = 16 * 1024
"""Comments, critiques and messages: longer ones are cut."""

TAGS_MAX: Final = 32
_TAG = re.compile(r"(?<![\w#])#([^\W_][\w-]{0,63})")
_LAST_MS = parse_rfc3339("2200-01-01T00:00:00Z") or 0


def tags_of(comment: str) -> tuple[str, ...]:
    """The tags a comment names, `#late` as `late`: in lower case, each once, in order."""
    return tuple(dict.fromkeys(tag.lower() for tag in _TAG.findall(comment)))[:TAGS_MAX]


def session(one: Trajectory) -> Columns:
    """The session's own row, with arrays that answer most questions without a join."""
    went, failed = one.rewards.operational, one.error
    return {
        "lineage_id": one.lineage_id,
        "status": one.status.value,
        "ended_at": one.ended_at or None,
        "duration_ms": max(0, (one.ended_at_ms or one.opened_at_ms) - one.opened_at_ms),
        "succeeded": went.succeeded,
        "fell_back": one.fell_back,
        "fallback_rule": one.fallback.rule if one.fallback is not None else "",
        "attempts": len(one.calls),
        "calls": len({row.call_id for row in one.calls}),
        "error_code": failed.code.value if failed is not None else "",
        "error_reason": failed.reason if failed is not None else "",
        "labels": one.labels,
        "intended": one.lineage.intended,
        "policies": one.lineage.policies,
        "input_sha256": one.lineage.input_sha256,
        "workflow_sha256": one.lineage.workflow_sha256,
        "deviations": tuple(f"{d.role}:{d.intended}>{d.served}" for d in one.lineage.deviations),
        "rollouts": tuple(mark.rollout for mark in one.rollouts),
        "arms": tuple(mark.arm for mark in one.rollouts),
        "twin_of": one.twin_of,
        "state_version": one.state_version,
        "trace_id": _trace_id(one.traceparent),
        "sub_goals": tuple(plan_order(one.plan)),
        **_call_arrays(one.calls),
        **_blame(one),
        **_judged(one),
        "decision_options": tuple(row.chosen.value for row in one.decisions),
        "gap_count": len(one.gaps),
        **_grounding(one.grounding),
        "input": _kept(one.input),
        "output": _kept(one.output),
    }


def _trace_id(traceparent: str) -> str:
    """The gateway wrote the header itself: version, trace, span, flags."""
    parts = traceparent.split("-")
    return parts[1] if len(parts) == 4 else ""


def _grounding(found: Grounding | None) -> Columns:
    """What the hallucination guard makes of it; empty where it did not look."""
    return {
        "review": found.review.value if found is not None else "",
        "grounding_penalties": found.penalties if found is not None else 0,
        "grounding_risk": found.risk if found is not None else None,
    }


def _call_arrays(done: Sequence[Attempt]) -> Columns:
    """What the attempts were, as arrays of one length."""
    return {
        "call_actions": tuple(row.action for row in done),
        "call_components": tuple(row.component for row in done),
        "call_versions": tuple(row.component_version for row in done),
        "call_steps": tuple(row.step for row in done),
        "call_errors": tuple(row.error.reason if row.error else "" for row in done),
        "call_ms": tuple(row.service_ms for row in done),
        "call_roles": tuple(row.role for row in done),
        "call_waits_ms": tuple(row.wait_ms for row in done),
        "call_reused": tuple(row.reused for row in done),
    }


def _blame(one: Trajectory) -> Columns:
    """Who took part, and whose fault it is that the session fell back: as the metric counts it."""
    found = tuple(of_record(one))
    return {
        "took_part": tuple(name for name, _ in found),
        "blamed": tuple(name for name, is_blamed in found if is_blamed),
    }


def _judged(one: Trajectory) -> Columns:
    """What people and rules said: `scores` and `score_kinds` are of one length."""
    scored = [row.feedback for row in one.feedback if row.feedback.score is not None]
    tags = dict.fromkeys(
        (
            *(tag for row in one.feedback for tag in tags_of(row.feedback.comment)),
            *(tag for read in one.rewards.comments for tag in read.tags),
        )
    )
    return {
        "comment_tags": tuple(tags),
        "feedback_count": len(one.feedback),
        "score_kinds": tuple(given.kind.value for given in scored),
        "scores": tuple(given.score for given in scored),
        "reward_names": tuple(row.name for row in one.rewards.quality),
        "reward_values": tuple(row.value for row in one.rewards.quality),
    }


def call(one: Attempt, position: int) -> Columns:
    """One attempt of one call; `position`: its place among all of the session's."""
    return {
        "call_id": one.call_id,
        "attempt": one.attempt,
        "position": position,
        "loop": one.loop,
        "step": one.step,
        "sub_goal": one.sub_goal,
        "role": one.role,
        "component": one.component,
        "component_version": one.component_version,
        "instance": one.instance,
        "action": one.action,
        "effect": one.effect.value,
        "error_code": one.error.code.value if one.error else "",
        "error_reason": one.error.reason if one.error else "",
        "error_message": _cut(one.error.message) if one.error else "",
        "error_boundary": one.error.boundary.value if one.error else "",
        "side_effect": one.side_effect.value,
        "reused": one.reused,
        "reused_from": one.reused_from,
        "retry_of": one.retry_of,
        "queued_at": one.queued_at or None,
        "sent_at": one.sent_at or None,
        "ended_at": one.ended_at or None,
        "wait_ms": one.wait_ms,
        "service_ms": one.service_ms,
        **_governed(one),
        "late": one.late,
        **_payloads(one),
    }


def _payloads(one: Attempt) -> Columns:
    """As people may see them; sizes and hash are those of the originals."""
    was = one if isinstance(one, MaskedAttempt) else None
    arguments, output = bytes(one.arguments), bytes(one.output)
    return {
        "arguments": _kept(one.arguments),
        "arguments_bytes": len(arguments) if was is None else was.arguments_bytes,
        "arguments_hash": hash_of(arguments) if was is None else was.arguments_hash,
        "output": _kept(one.output),
        "output_bytes": len(output) if was is None else was.output_bytes,
    }


def _governed(one: Attempt) -> Columns:
    """What the gateway itself did about it."""
    return {
        "timeout_ms": one.timeout_ms,
        "breaker": one.breaker,
        "parameter_version": one.parameter_version,
        "hedge": one.hedge,
        "budget_left": one.budget_left,
        "retries_spent": one.retries_spent,
    }


def decision(one: DecisionRow) -> Columns:
    """One recovery decision; options, chances and masks are arrays of one length."""
    return {
        "decision_id": one.decision_id,
        "position": one.index,
        "call_id": one.call_id,
        "after_attempt": one.after_attempt,
        "caused_attempt": one.caused_attempt,
        "trigger": one.trigger.value,
        "decided_at": one.at or None,
        "features": {name: str(value) for name, value in one.features.items()},
        "feature_schema": one.feature_schema,
        "options": tuple(option.option.value for option in one.options),
        "option_waits_ms": tuple(option.params.get("wait_ms", 0) for option in one.options),
        "probabilities": tuple(option.probability for option in one.options),
        "masked_by": tuple(option.masked_by for option in one.options),
        "chosen": one.chosen.value,
        "draw": one.draw,
        "policy": one.policy.name,
        "policy_version": one.policy.version,
        "guardrails_digest": one.guardrails_digest,
        "overridden_by": one.override,
        "ended_as": one.ended_as,
    }


def llm_call(one: LlmCallRow) -> Columns:
    """One call of a component to a language model; the exact token ids stay in the log."""
    said = one.llm_call
    return {
        "call_id": one.call_id,
        "attempt": one.attempt,
        "llm_call_id": said.id,
        "model": said.model,
        "prompt": _kept(said.prompt),
        "response": _kept(said.response),
        "prompt_tokens": len(said.prompt_token_ids),
        "response_tokens": len(said.response_token_ids),
        "tokens": said.tokens,
        "latency_ms": said.latency_ms,
    }


def observation(one: ObservationRow) -> Columns:
    """What a memory was given, and gave."""
    return {
        "step": one.step,
        "call_id": one.call_id,
        "stored": one.stored,
        "memory": _kept(one.memory),
    }


def reflection(one: ReflectionRow) -> Columns:
    """What a reflector judged."""
    return {
        "step": one.step,
        "call_id": one.call_id,
        "loop": one.loop,
        "verdict": one.verdict,
        "critique": _cut(one.critique),
        "refused_retries": one.refused_retries,
    }


def feedback(one: FeedbackRow, read: CommentReading | None) -> Columns:
    """One judgement, as it was given; its author's time only where it is one.

    `read`: what was understood of its comment. Older rows have no `recorded_by`, and an empty one
    is left out: what was said stays what was hashed.
    """
    given = one.feedback
    given_ms = parse_rfc3339(given.time) if given.time else None
    is_usable = given_ms is not None and 0 <= given_ms < _LAST_MS
    return {
        "feedback_id": given.feedback_id,
        "kind": given.kind.value,
        "score": given.score,
        "comment": _cut(given.comment),
        "tags": tuple(
            dict.fromkeys((*tags_of(given.comment), *(read.tags if read is not None else ())))
        ),
        "corrections": {
            change.wrong: change.right for change in (read.corrections if read is not None else ())
        },
        "target_call_id": given.target.call_id,
        "target_step": given.target.step,
        "target_loop": given.target.loop,
        "author": given.author,
        **({"recorded_by": one.recorded_by} if one.recorded_by else {}),
        "sampling_probability": given.sampling_probability,
        "given_at": rfc3339(given_ms) if given_ms is not None and is_usable else None,
        "received_at": one.received_at or None,
        "state_version": one.state_version,
    }


def claim(one: Claim, grounded: GroundedClaim | None) -> Columns:
    """A sentence of the output with its sources, and what the guard found them to say."""
    return {
        "verdict": grounded.verdict.value if grounded is not None else "",
        "verdict_reason": grounded.reason if grounded is not None else "",
        "missing_sources": grounded.missing if grounded is not None else (),
        "text": _cut(one.text),
        "value": _kept(one.value),
        "unit": one.unit,
        "derivation": one.derivation,
        "sources": one.sources,
    }


def gap(one: Gap) -> Columns:
    """What is missing, and why."""
    return {"what": one.what, "why": _cut(one.why)}


def quality(one: QualityReward) -> Columns:
    """Null with validity and reason where something else prevented judging; never a 0 for it."""
    return {
        "channel": "QUALITY",
        "name": one.name,
        "call_id": one.call_id,
        "source": one.source,
        "value": one.value,
        "validity": one.validity,
        "reason": one.reason,
    }


def reflected(one: Reward) -> Columns:
    """What the reflector gave, raw."""
    return {"channel": "REFLECTOR", "name": one.name, "call_id": one.call_id, "value": one.value}


def step_reward(one: StepReward, rules: str) -> Columns:
    """What the rules make of one call; `shaped` with the potential's difference."""
    return {
        **_judgement("STEP", one.quality, rules=rules),
        "call_id": one.call_id,
        "operational": one.operational,
        "shaped": one.shaped,
    }


def part_reward(channel: str, one: PartReward, *, rules: str) -> Columns:
    """What the rules make of the whole session, or of what it led to."""
    return {**_judgement(channel, one.quality, rules=rules), "operational": one.operational}


def _judgement(channel: str, one: Quality, *, rules: str) -> Columns:
    return {
        "channel": channel,
        "name": rules,
        "value": one.value,
        "validity": one.validity.value,
        "reason": one.reason,
        "weight": one.weight,
    }


def operational(one: Trajectory) -> Columns:
    """How it went: never null for a session that opened."""
    went = one.rewards.operational
    return {"channel": "OPERATIONAL", "name": "succeeded", "value": float(went.succeeded)}


def _kept(payload: Payload) -> str:
    """A payload's JSON text, or nothing when there is none or it is too big to stand in a row."""
    data = bytes(payload)
    return data.decode("utf-8", "replace") if len(data) <= PAYLOAD_BYTES_MAX else ""


def _cut(text: str) -> str:
    return text[:TEXT_CHARACTERS_MAX]
