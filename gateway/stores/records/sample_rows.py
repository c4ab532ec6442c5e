"""Rows back to what insight reads of a trajectory: the inverse of `columns` for these fields. Pure.

Not the whole trajectory: no decisions, plans (their order is kept), feedback, claims or output. A
session with a payload that is too big for its row is told apart: its trajectory has it.
"""

import hashlib
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from acp_spec.model.enums import SessionStatus
from acp_spec.model.errors import AcpError, Code
from acp_spec.model.payload import payload
from acp_spec.model.plan import Plan, SubGoal
from acp_spec.model.reward_vector import PartReward, Quality, RewardVector, RulesRef, Validity
from acp_spec.model.times import rfc3339
from acp_spec.model.trajectory import (
    SCHEMA_VERSION,
    Attempt,
    FallbackRow,
    Lineage,
    OperationalReward,
    PlanVersion,
    QualityReward,
    Rewards,
    Trajectory,
)
from gateway.stores.records.columns import PAYLOAD_BYTES_MAX
from gateway.stores.records.embedded import among

_NO_INPUT: Final = hashlib.sha256(b"").hexdigest()
_SOMEBODYS_RULES: Final = RulesRef(name="recorded", version="0", digest="")


class SessionRow(msgspec.Struct, frozen=True, array_like=True):
    """One row of `sessions_sql`, in its order."""

    session_id: str
    lineage_id: str
    tenant: str
    workflow: str
    workflow_sha256: str
    status: str
    fell_back: bool
    fallback_rule: str
    twin_of: str
    succeeded: bool
    opened_ms: str
    ended_ms: str | None
    sub_goals: list[str]
    reward_names: list[str]
    reward_values: list[float | str | None]
    input_sha256: str
    input: str


class CallRow(msgspec.Struct, frozen=True, array_like=True):
    """One row of `calls_sql`, in its order."""

    session_id: str
    call_id: str
    attempt: int
    loop: int
    step: str
    sub_goal: str
    role: str
    component: str
    component_version: str
    action: str
    error_code: str
    error_reason: str
    reused: bool
    sent_ms: str | None
    ended_ms: str | None
    arguments_bytes: str
    arguments: str
    output_bytes: str
    output: str


class PartRow(msgspec.Struct, frozen=True, array_like=True):
    """One row of `parts_sql`: what reward rules made of a session or of what it led to."""

    session_id: str
    channel: str
    value: float | None


def sessions_sql(ids: Sequence[str]) -> str:
    """The sessions themselves."""
    return (
        "SELECT session_id, lineage_id, tenant, workflow, workflow_sha256, status, fell_back,"
        " fallback_rule, twin_of, succeeded, toString(toUnixTimestamp64Milli(opened_at)),"
        " toString(toUnixTimestamp64Milli(ended_at)), sub_goals, reward_names, reward_values,"
        f" input_sha256, input FROM v_sessions WHERE {among(ids)}"
    )


def calls_sql(ids: Sequence[str]) -> str:
    """All attempts, in their order."""
    return (
        "SELECT session_id, call_id, attempt, loop, step, sub_goal, role, component,"
        " component_version, action, error_code, error_reason, reused,"
        " toString(toUnixTimestamp64Milli(sent_at)), toString(toUnixTimestamp64Milli(ended_at)),"
        " toString(arguments_bytes), arguments, toString(output_bytes), output"
        f" FROM v_calls WHERE {among(ids)} ORDER BY session_id, position"
    )


def parts_sql(ids: Sequence[str]) -> str:
    """Qualities by reward rules."""
    return (
        "SELECT session_id, channel, value FROM v_rewards"
        f" WHERE channel IN ('SESSION', 'LONG_TERM') AND {among(ids)}"
    )


def is_cut(session: SessionRow, calls: Iterable[CallRow]) -> bool:
    """Whether a payload was too big for its row, so that the rows do not say all."""
    if not session.input and session.input_sha256 not in ("", _NO_INPUT):
        return True
    return any(
        int(size) > PAYLOAD_BYTES_MAX
        for row in calls
        for size in (row.arguments_bytes, row.output_bytes)
    )


def trajectory_of(
    session: SessionRow, calls: Iterable[CallRow], *, parts: Iterable[PartRow] = ()
) -> Trajectory:
    """What insight reads of the trajectory that these rows were made of."""
    return Trajectory(
        schema_version=SCHEMA_VERSION,
        session_id=session.session_id,
        lineage_id=session.lineage_id,
        lineage=Lineage(workflow_sha256=session.workflow_sha256, input_sha256=session.input_sha256),
        tenant=session.tenant,
        workflow=session.workflow,
        status=SessionStatus(session.status),
        fell_back=session.fell_back,
        fallback=FallbackRow(rule=session.fallback_rule) if session.fallback_rule else None,
        input=payload(session.input.encode()),
        plan=_plan(session.sub_goals),
        calls=tuple(map(_attempt, calls)),
        rewards=_rewards(session, parts),
        opened_at=rfc3339(int(session.opened_ms)),
        ended_at=_time(session.ended_ms),
        twin_of=session.twin_of,
    )


def _plan(names: Sequence[str]) -> tuple[PlanVersion, ...]:
    """A plan that lists the sub-goals in the order that is kept of them."""
    if not names:
        return ()
    goals = tuple(SubGoal(id=name, action="kept") for name in names)
    return (PlanVersion(generation=1, step="", call_id="", plan=Plan(sub_goals=goals)),)


def _attempt(row: CallRow) -> Attempt:
    return Attempt(
        call_id=row.call_id,
        attempt=row.attempt,
        loop=row.loop,
        step=row.step,
        sub_goal=row.sub_goal,
        role=row.role,
        component=row.component,
        component_version=row.component_version,
        action=row.action,
        arguments=payload(row.arguments.encode()),
        output=payload(row.output.encode()),
        error=AcpError(code=Code(row.error_code), reason=row.error_reason, message="")
        if row.error_code
        else None,
        reused=row.reused,
        sent_at=_time(row.sent_ms),
        ended_at=_time(row.ended_ms),
    )


def _rewards(session: SessionRow, parts: Iterable[PartRow]) -> Rewards:
    pairs = zip(session.reward_names, session.reward_values, strict=True)
    quality = tuple(_quality_reward(name, value) for name, value in pairs)
    by_channel = {row.channel: _part(row.value) for row in parts}
    vector = None
    if by_channel:
        nobody = _part(None)
        vector = RewardVector(
            rules=_SOMEBODYS_RULES,
            as_of="",
            session=by_channel.get("SESSION", nobody),
            long_term=by_channel.get("LONG_TERM", nobody),
        )
    operational = OperationalReward(succeeded=session.succeeded)
    return Rewards(quality=quality, operational=operational, vector=vector)


def _quality_reward(name: str, value: float | str | None) -> QualityReward:
    """The store writes what is no number as a text."""
    return QualityReward(name=name, value=None if value is None else float(value))


def _part(value: float | None) -> PartReward:
    if value is not None:
        return PartReward(quality=Quality(value=value))
    nobody = Quality(validity=Validity.NOT_JUDGED, reason="as recorded")
    return PartReward(quality=nobody)


def _time(at_ms: str | None) -> str:
    return rfc3339(int(at_ms)) if at_ms is not None else ""
