"""A plan that may not run becomes feedback, and perhaps another plan (R10).

Asked once, when a plan step's call has settled; what it says are events, so that a replay never
judges a plan again. A rejected plan stays in the record, and nothing of it ever runs.
"""

from acp_spec.bindings.errors import error
from acp_spec.model.enums import Boundary, FeedbackKind, StepRole, StepStatus
from acp_spec.model.errors import AcpError, Reason
from acp_spec.model.plan import Plan
from acp_spec.model.session import Feedback, FeedbackTarget
from acp_spec.model.times import rfc3339
from gateway.engine.definition import Step, Workflow
from gateway.engine.events import AnyEvent, FeedbackGiven, StepEnded
from gateway.engine.states import CallState, SessionState, SubGoalState
from gateway.governance import plan_guard
from gateway.governance.contract import Contract
from gateway.governance.plan_guard import OnReject

OUR_FEEDBACK = "gateway/"
"""How the authors of the gateway's own feedback begin; nobody else may sign so."""
PLAN_GUARD = f"{OUR_FEEDBACK}plan-guard"
OUTPUT_CHECK = f"{OUR_FEEDBACK}output-check"
REASONS_TOLD_MAX = 10
"""A planner mends what it is told; of a thousand sub-goals ten sentences tell enough."""
INVALID = 0.0
"""The score of a VALIDATION: what was judged does not keep the rules."""


def rejection(
    state: SessionState, step: Step, *, found: SubGoalState, at_ms: int
) -> tuple[AnyEvent, ...]:
    """Feedback and the step's end if this step's plan may not run; nothing if it may."""
    if step.role is not StepRole.PLAN or state.workflow is None:
        return ()
    failure = _why(state, step, found=found)
    if failure is None:
        return ()
    told = validation(state, failure.message, author=PLAN_GUARD, call_id=found.call_id)
    ended = StepEnded(
        at_ms=at_ms,
        step=step.name,
        status=StepStatus.FAILED,
        error=failure,
        replan=_again(state, state.workflow),
    )
    return (*told, ended)


def told_by_hand(state: SessionState) -> tuple[AnyEvent, ...]:
    """Feedback on the plans of a MANUAL session that may not run, once each. Its client takes the
    steps, so no step of a workflow fails: the step that asked for the plan does, in its answer."""
    if state.workflow is None:
        return ()
    told: list[AnyEvent] = []
    for call in map(state.calls.__getitem__, state.manual.values()):
        if call.created.role is StepRole.PLAN and call.error and _is_ours(call.error):
            told += validation(
                state, call.error.message, author=PLAN_GUARD, call_id=call.created.call_id
            )
    for taken in state.plans[-1:]:  # asked behind each answer: those before were judged then
        reasons = reasons_against(taken.plan, state.workflow.contract)
        if reasons:
            told += validation(state, reasons, author=PLAN_GUARD, call_id=taken.call_id)
    return tuple(told)


def refused_by_hand(state: SessionState, call: CallState) -> AcpError | None:
    """Why this plan of a MANUAL session may not run: what the guard said of it, as a step's error.

    Read from the record, so that a session that is read back says the same.
    """
    if call.created.role is not StepRole.PLAN or call.status is not StepStatus.SUCCEEDED:
        return None
    for entry in state.feedback_log:
        feedback = entry.given.feedback
        if feedback.author == PLAN_GUARD and feedback.target.call_id == call.created.call_id:
            return error(Reason.PLAN_REJECTED, feedback.comment, boundary=Boundary.GATEWAY)
    return None


def validation(
    state: SessionState, comment: str, *, author: str, call_id: str = ""
) -> tuple[FeedbackGiven, ...]:
    """What the gateway itself found, as feedback that people and training read; told once."""
    feedback_id = f"{author}/{call_id or 'session'}"
    ours = (entry.given for entry in state.feedback_log if entry.given.feedback.author == author)
    if any(given.feedback_id == feedback_id for given in ours):
        return ()
    feedback = Feedback(
        kind=FeedbackKind.VALIDATION,
        score=INVALID,
        comment=comment,
        target=FeedbackTarget(call_id=call_id),
        author=author,
        time=rfc3339(state.now_ms),
        feedback_id=feedback_id,
    )
    return (FeedbackGiven(at_ms=state.now_ms, feedback=feedback, feedback_id=feedback_id),)


def _why(state: SessionState, step: Step, *, found: SubGoalState) -> AcpError | None:
    """The planner's answer was no plan at all, or the contract does not let its plan run."""
    if found.status is not StepStatus.SUCCEEDED:
        return found.error if found.error and _is_ours(found.error) else None
    assert state.workflow is not None, "a step belongs to a workflow"
    reasons = reasons_against(state.plan_of[step.name], state.workflow.contract)
    return error(Reason.PLAN_REJECTED, reasons, boundary=Boundary.GATEWAY) if reasons else None


def reasons_against(plan: Plan, contract: Contract) -> str:
    """Why the contract does not let this plan run; empty when it does."""
    off_list = {goal.action for goal in plan.sub_goals if not contract.allows(goal.action)}
    reasons = [f"the contract does not allow the action {action!r}" for action in sorted(off_list)]
    reasons += plan_guard.problems(plan, contract.plan)
    more = len(reasons) - REASONS_TOLD_MAX
    told = "; ".join(reasons[:REASONS_TOLD_MAX])
    return f"{told}; and {more} more" if more > 0 else told


def _is_ours(failure: AcpError) -> bool:
    """The gateway found that it is no plan. A planner may say so too, for reasons of its own."""
    rejected = failure.reason == Reason.PLAN_REJECTED.value
    return rejected and failure.boundary is Boundary.GATEWAY


def _again(state: SessionState, workflow: Workflow) -> bool:
    """Shall the planner be asked once more, with the reason as critique?"""
    wanted = workflow.contract.plan.on_reject is OnReject.REPLAN
    return wanted and state.loop < workflow.limits.max_loops
