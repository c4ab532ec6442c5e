"""Rewards number one: what the reflector and people said, stored as given; nothing is computed.

Two channels (SPEC section 7). `quality`: what somebody judged; null with a validity and a reason
where judging was prevented by something else than what is judged, never a 0. `operational`: how it
went, never null. Pure: a trajectory in, rewards out.
"""

from collections.abc import Iterable

from acp_spec.model.enums import SessionStatus, StepRole
from acp_spec.model.reward_vector import Validity
from acp_spec.model.trajectory import (
    Attempt,
    FeedbackRow,
    OperationalReward,
    QualityReward,
    Rewards,
    Trajectory,
)
from gateway.rewards.raters import spreads

REFLECTOR = "reflector"
FEEDBACK = "feedback"


def rewards(trajectory: Trajectory, *, reflect_steps: Iterable[str] = ()) -> Rewards:
    """The rewards of a trajectory whose `rewards` are not filled yet.

    `reflect_steps` names the workflow's reflect steps, so that one never reached is told as such.
    """
    return Rewards(
        quality=(
            *_given(trajectory),
            *not_judged(trajectory),
            *_not_reached(trajectory, reflect_steps),
            *(_from_feedback(row) for row in trajectory.feedback if row.feedback.score is not None),
        ),
        operational=_operational(trajectory),
        raters=spreads(trajectory.feedback),
    )


def _given(trajectory: Trajectory) -> list[QualityReward]:
    return [
        QualityReward(name=one.name, value=one.value, call_id=one.call_id, source=REFLECTOR)
        for one in trajectory.reflector_rewards
    ]


def _from_feedback(row: FeedbackRow) -> QualityReward:
    """One score a person or program gave; a step is named `rating:<step>`, its loop `#<n>`."""
    given, target = row.feedback, row.feedback.target
    name = given.kind.value.lower()
    if target.step:
        name += f":{target.step}" + (f"#{target.loop}" if target.loop else "")
    source = f"{FEEDBACK}:{given.author}" if given.author else FEEDBACK
    return QualityReward(name=name, value=given.score, call_id=target.call_id, source=source)


def not_judged(trajectory: Trajectory) -> list[QualityReward]:
    """Reflect calls that ended without a verdict: what they would have judged is not to blame."""
    judged = {row.call_id for row in trajectory.reflections}
    return [
        QualityReward(
            name=last.step,
            validity=Validity.NOT_JUDGED.value,
            reason=_why(last),
            call_id=last.call_id,
            source=REFLECTOR,
        )
        for last in last_attempts(trajectory)
        if last.role == StepRole.REFLECT.value and last.call_id not in judged and last.error
    ]


def _not_reached(trajectory: Trajectory, reflect_steps: Iterable[str]) -> list[QualityReward]:
    if not trajectory.ended_at:
        return []
    reached = {row.step for row in trajectory.calls if row.role == StepRole.REFLECT.value}
    reason = trajectory.error.reason if trajectory.error else trajectory.status.value
    return [
        QualityReward(
            name=step, validity=Validity.NOT_REACHED.value, reason=reason, source=REFLECTOR
        )
        for step in reflect_steps
        if step not in reached
    ]


def _why(attempt: Attempt) -> str:
    assert attempt.error is not None
    return f"{attempt.error.reason}: {attempt.error.message}"


def last_attempts(trajectory: Trajectory) -> list[Attempt]:
    """Each call's highest attempt, in the order in which calls appear."""
    last: dict[str, Attempt] = {}
    for row in trajectory.calls:
        known = last.get(row.call_id)
        if known is None or row.attempt >= known.attempt:
            last[row.call_id] = row
    return list(last.values())


def _operational(trajectory: Trajectory) -> OperationalReward:
    status = trajectory.status
    return OperationalReward(
        succeeded=status is SessionStatus.SUCCEEDED,
        fell_back=trajectory.fell_back,
        failed=status is SessionStatus.FAILED,
        cancelled=status is SessionStatus.CANCELLED,
        attempts=sum(row.sent_at != "" for row in trajectory.calls),
        calls=len({row.call_id for row in trajectory.calls}),
        duration_ms=duration_ms(trajectory),
    )


def duration_ms(trajectory: Trajectory) -> int:
    """To the end; of a session still open, to the last answer."""
    begun, last = trajectory.opened_at_ms, trajectory.ended_at_ms
    if last is None:
        last = max((row.ended_at_ms or begun for row in trajectory.calls), default=begun)
    return max(0, last - begun)
