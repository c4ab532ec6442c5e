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
from acp_spec.model.payload import Payload
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


def settled(state: SessionState, call: CallState, *, response: Payload) -> CallState:
    """The call with this answer as its outcome: SUCCEEDED, or FAILED when the answer is not one."""
    role = call.created.role
    try:
        answer = reread(RESPONSE_OF[role], bytes(response))
    except AcpFailure as failure:
        return _broken(call, failure.error)
    done = replace(call, phase=Phase.SETTLED, status=StepStatus.SUCCEEDED, response=response)
    match answer:
        case PlanResponse():
            return _planned(state, done, answer=answer)
        case ExecuteResponse():
            return replace(done, output=answer.output)
        case ObserveResponse() | ReflectResponse():
            return done


def _planned(state: SessionState, call: CallState, *, answer: PlanResponse) -> CallState:
    limit = state.workflow.limits.max_sub_goals if state.workflow else None
    problem = plan_problem(answer.plan, limit)
    if problem is None:
        return replace(call, output=answer.output)
    return _broken(call, error(Reason.PLAN_REJECTED, problem, boundary=Boundary.GATEWAY))


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
    """Write a settled call's meaning into the session (`state` is the step's own)."""
    created = call.created
    if not created.manual_key:
        _settle_sub_goal(state, call)
    if call.status is not StepStatus.SUCCEEDED:
        return
    text = bytes(call.response)
    match created.role:
        case StepRole.PLAN:
            _take_plan(state, call, answer=reread(PlanResponse, text))
        case StepRole.OBSERVE:
            memory = reread(ObserveResponse, text).memory
            state.memory = memory or state.memory
        case StepRole.REFLECT:
            reflection = ReflectionState(
                step=created.step,
                call_id=created.call_id,
                loop=created.loop,
                response=reread(ReflectResponse, text),
            )
            state.reflections = (*state.reflections, reflection)
        case StepRole.EXECUTE:
            pass


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
