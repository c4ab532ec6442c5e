"""Trajectories for the guard's tests, with only what it reads."""

from acp_spec.model.calls import Claim
from acp_spec.model.enums import Effect, FeedbackKind, SessionStatus
from acp_spec.model.errors import AcpError
from acp_spec.model.payload import ABSENT, payload
from acp_spec.model.plan import Plan, SubGoal
from acp_spec.model.session import Feedback, FeedbackTarget
from acp_spec.model.trajectory import (
    SCHEMA_VERSION,
    Attempt,
    FeedbackRow,
    PlanVersion,
    ReflectionRow,
    Trajectory,
)

BEGUN = "2026-11-30T10:00:00.000Z"
ENDED = "2026-11-30T10:00:01.000Z"


def attempt(
    action: str,
    output: str = "",
    *,
    sub_goal: str = "",
    error: AcpError | None = None,
    sent: bool = True,
) -> Attempt:
    """The one attempt of a call named after its sub-goal or action; READ unless it is a `set`."""
    return Attempt(
        call_id=sub_goal or action,
        attempt=1,
        step="act",
        sub_goal=sub_goal,
        role="EXECUTE",
        action=action,
        effect=Effect.WRITE if action.startswith("set") else Effect.READ,
        output=payload(output.encode()) if output else ABSENT,
        error=error,
        sent_at=BEGUN if sent else "",
    )


def planned(*goals: SubGoal, step: str = "plan", generation: int = 0) -> PlanVersion:
    plan = Plan(sub_goals=goals)
    return PlanVersion(generation=generation, step=step, call_id=f"{step}{generation}", plan=plan)


def session(
    *calls: Attempt,
    plan: tuple[PlanVersion, ...] = (),
    claims: tuple[Claim, ...] = (),
    answer: str = "",
    feedback: tuple[FeedbackRow, ...] = (),
) -> Trajectory:
    """A session that succeeded; its output is `{"answer": ...}`."""
    return Trajectory(
        schema_version=SCHEMA_VERSION,
        session_id="S1",
        lineage_id="S1.x",
        status=SessionStatus.SUCCEEDED,
        plan=plan,
        calls=calls,
        claims=claims,
        reflections=(ReflectionRow(step="judge", call_id="judge", verdict="ACCEPT"),),
        output=payload(f'{{"answer":"{answer}"}}'.encode()) if answer else ABSENT,
        feedback=feedback,
        opened_at=BEGUN,
        ended_at=ENDED,
    )


def review(
    score: float | None, *, author: str = "ann", call_id: str = "", time: str = ENDED
) -> FeedbackRow:
    given = Feedback(
        kind=FeedbackKind.VALIDATION,
        score=score,
        comment="looked at",
        author=author,
        target=FeedbackTarget(call_id=call_id),
        time=time,
    )
    return FeedbackRow(feedback=given, received_at=time)
