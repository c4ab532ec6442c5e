"""What an answer means for the session: a plan is taken, memory is read, an output is kept.

Answers are decoded here with the same lenient rules as at the border. A plan is checked before
anything of it runs; a plan that breaks the rules is the planner's failure (PLAN_REJECTED).
"""

import msgspec

from acp_spec.bindings.errors import error
from acp_spec.codec.json import reread
from acp_spec.model.calls import (
    ExecuteResponse,
    ObserveResponse,
    PlanResponse,
    ReflectResponse,
)
from acp_spec.model.enums import Boundary, SideEffect, StepRole, StepStatus
from acp_spec.model.errors import AcpError, AcpFailure, Reason
from acp_spec.model.payload import ABSENT, Payload
from gateway.engine import side_effects
from gateway.engine.plan_check import plan_problem
from gateway.engine.states import (
    CallState,
    Phase,
    PlanState,
    ReflectionState,
    SessionState,
    SubGoalState,
)

Answer = PlanResponse | ExecuteResponse | ObserveResponse | ReflectResponse

RESPONSE_OF: dict[
    StepRole,
    type[PlanResponse] | type[ExecuteResponse] | type[ObserveResponse] | type[ReflectResponse],
] = {
    StepRole.PLAN: PlanResponse,
    StepRole.EXECUTE: ExecuteResponse,
    StepRole.OBSERVE: ObserveResponse,
    StepRole.REFLECT: ReflectResponse,
}

replace = msgspec.structs.replace


def settle(state: SessionState, call: CallState, *, response: Payload) -> None:
    """Take this answer as the call's outcome: SUCCEEDED, or FAILED when it is not one."""
    try:
        answer = reread(RESPONSE_OF[call.created.role], bytes(response))
    except AcpFailure as failure:
        _keep(state, _broken(call, failure.error), answer=None)
        return
    problem = _plan_problem(state, answer)
    if problem is not None:
        call = replace(call, response=response)
        rejected = error(Reason.PLAN_REJECTED, problem, boundary=Boundary.GATEWAY)
        _keep(state, _broken(call, rejected), answer=None)
        return
    done = replace(
        call,
        phase=Phase.SETTLED,
        status=StepStatus.SUCCEEDED,
        response=response,
        output=_output(answer),
    )
    _keep(state, done, answer=answer)


def _plan_problem(state: SessionState, answer: Answer) -> str | None:
    if type(answer) is not PlanResponse:
        return None
    return plan_problem(
        answer.plan, state.workflow.limits.max_sub_goals if state.workflow else None
    )


def _output(answer: Answer) -> Payload:
    """The output of those whose output others name: a plan's, an action's."""
    if type(answer) is ExecuteResponse or type(answer) is PlanResponse:
        return answer.output
    return ABSENT


def _broken(call: CallState, failure: AcpError) -> CallState:
    told = side_effects.of_call(failure, call)
    return replace(call, phase=Phase.SETTLED, status=StepStatus.FAILED, error=told)


def last_error(call: CallState, default: AcpError | None = None) -> AcpError:
    """The error of the latest attempt, whichever way it ended."""
    attempt = call.attempt
    found = None
    if attempt is not None:
        ended = attempt.operation or attempt.ended
        found = ended.error if ended else None
        found = attempt.refused.error if attempt.refused else found
    if found is not None:
        return found
    unknown = error(Reason.UNKNOWN, "no answer was kept", side_effect=SideEffect.UNKNOWN)
    return default or unknown


def apply(state: SessionState, call: CallState) -> None:
    """Write a call that was settled without an answer of its own into the session."""
    role = call.created.role
    if call.status is StepStatus.SUCCEEDED and role is not StepRole.EXECUTE:
        _keep(state, call, answer=reread(RESPONSE_OF[role], bytes(call.response)))
    else:
        _keep(state, call, answer=None)


def _keep(state: SessionState, call: CallState, *, answer: Answer | None) -> None:
    """Write a settled call, and what its answer means, into the session (the step's own)."""
    created = call.created
    state.calls[created.call_id] = call
    if not created.manual_key:
        _settle_sub_goal(state, call)
    if type(answer) is PlanResponse:
        _take_plan(state, call, answer=answer)
    elif type(answer) is ObserveResponse:
        state.memory = answer.memory or state.memory
    elif type(answer) is ReflectResponse:
        reflection = ReflectionState(
            step=created.step, call_id=created.call_id, loop=created.loop, response=answer
        )
        state.reflections = (*state.reflections, reflection)


def _settle_sub_goal(state: SessionState, call: CallState) -> None:
    created = call.created
    step = state.steps.get(created.step)
    if step is None or created.sub_goal not in step.sub_goals:
        return
    entry = SubGoalState(call_id=created.call_id, status=call.status, error=call.error)
    sub_goals = {**step.sub_goals, created.sub_goal: entry}
    state.steps[created.step] = replace(step, sub_goals=sub_goals)


def _take_plan(state: SessionState, call: CallState, *, answer: PlanResponse) -> None:
    created = call.created
    step = state.steps.get(created.step)
    taken = PlanState(
        step=created.step,
        generation=step.generation if step else 0,
        call_id=created.call_id,
        plan=answer.plan,
        rationale=answer.rationale,
        confidence=answer.confidence,
    )
    state.plans = (*state.plans, taken)
    state.plan_of = {**state.plan_of, created.step: answer.plan}
