"""Sub-goals of a plan for which no call was executed: what was planned, but not done (R16).

The last plan of each step counts: an earlier one was replaced. A sub-goal is excused where not the
plan kept it from running: its condition did not hold, what it depends on failed (that is charged
there), its call was refused, the plan was rejected, or the session ended before.
"""

from collections.abc import Iterator, Sequence

from acp_spec.model.enums import FeedbackKind, SessionStatus, StepRole
from acp_spec.model.grounding import SubGoalWithoutCall
from acp_spec.model.payload import is_absent
from acp_spec.model.plan import Plan, SubGoal
from acp_spec.model.trajectory import Attempt, PlanVersion, Trajectory
from gateway.engine.rejections import PLAN_GUARD
from gateway.engine.sub_goals import holds
from gateway.rewards.settled import settled


def sub_goals_without_calls(trajectory: Trajectory) -> tuple[SubGoalWithoutCall, ...]:
    """Each of them, in the plans' order; none while the session runs."""
    if not trajectory.ended_at:
        return ()
    rows = settled(trajectory.calls).values()
    calls = [row for row in rows if row.role == StepRole.EXECUTE.value]
    by_hand = not any(row.sub_goal for row in calls)
    standing = _standing(trajectory.plan, by_hand=by_hand)
    return tuple(
        found for version in standing for found in _of_plan(trajectory, version, calls=calls)
    )


def _standing(plans: Sequence[PlanVersion], *, by_hand: bool) -> list[PlanVersion]:
    """The last plan of each step; of a session driven by hand, where each has its own, the last."""
    if by_hand:
        return list(plans[-1:])
    return list({version.step: version for version in plans}.values())


def _of_plan(
    trajectory: Trajectory, version: PlanVersion, *, calls: Sequence[Attempt]
) -> Iterator[SubGoalWithoutCall]:
    made = _calls_of(version.plan, calls)
    for goal in version.plan.sub_goals:
        call = made.get(goal.id)
        if call is not None and _executed(call):
            continue
        excuse = _excuse(trajectory, version, goal=goal, made=made)
        yield SubGoalWithoutCall(
            step=version.step,
            generation=version.generation,
            sub_goal=goal.id,
            action=goal.action,
            reason=excuse or f"no call of {goal.action} was executed for it",
            excused=bool(excuse),
        )


def _calls_of(plan: Plan, calls: Sequence[Attempt]) -> dict[str, Attempt]:
    """The call of each sub-goal: the last that names it, else one of its action that names none."""
    made = {
        goal.id: row
        for goal in plan.sub_goals
        for row in calls
        if row.sub_goal == goal.id and row.action == goal.action
    }
    free = [row for row in calls if not row.sub_goal]
    for goal in plan.sub_goals:
        found = next((row for row in free if row.action == goal.action), None)
        if goal.id not in made and found is not None:
            made[goal.id] = found
            free.remove(found)
    return made


def _executed(row: Attempt) -> bool:
    """It was sent, or its result was taken over from a call that was."""
    return bool(row.sent_at) or row.reused


def _excuse(
    trajectory: Trajectory, version: PlanVersion, *, goal: SubGoal, made: dict[str, Attempt]
) -> str:
    """Why it is not the plan's doing; empty if it is."""
    call = made.get(goal.id)
    if call is not None:
        why = call.error.reason if call.error else "the session ended"
        return f"its call was never sent: {why}"
    for name in goal.depends_on:
        before = made.get(name)
        if before is None or before.error is not None:
            return f"it depends on {name!r}, which did not succeed"
    for when in goal.when:
        source = made.get(when.from_)
        output = b"" if source is None or is_absent(source.output) else bytes(source.output)
        if not holds(when, output):
            return f"its condition on {when.from_!r} did not hold"
    if _is_rejected(trajectory, version):
        return "the plan was rejected"
    if trajectory.status is not SessionStatus.SUCCEEDED or trajectory.fell_back:
        return "the session ended without the plan"
    return ""


def _is_rejected(trajectory: Trajectory, version: PlanVersion) -> bool:
    return any(
        row.feedback.kind is FeedbackKind.VALIDATION
        and row.feedback.author == PLAN_GUARD
        and row.feedback.target.call_id == version.call_id
        for row in trajectory.feedback
    )
