"""What comes next: pure work over a state whose results become events, once.

Here, and only here, expressions are evaluated, bindings spliced and requests built. The driver
appends the events this returns; replay feeds those events and never comes here.
"""

import msgspec

from acp_spec.bindings.errors import error
from acp_spec.model.enums import Boundary, Mode, StepRole, StepStatus, Verdict
from acp_spec.model.errors import AcpError, Reason
from acp_spec.model.payload import Payload, payload
from acp_spec.model.plan import SubGoal
from gateway.engine import calls, commanded, endings, side_effects, sub_goals
from gateway.engine.contract_checks import violation
from gateway.engine.definition import Condition, Require, Step
from gateway.engine.events import AnyEvent, CallCreated, SessionEnded, StepEnded, SubGoalEnded
from gateway.engine.flow import may_redo
from gateway.engine.rejections import rejection, told_by_hand
from gateway.engine.scope import SessionScope
from gateway.engine.states import SessionState, StepState
from gateway.engine.world import World
from gateway.expressions.expression import ExpressionError
from gateway.governance.meanings import refused_values


def advance(state: SessionState, world: World) -> tuple[AnyEvent, ...]:
    """The next events of this session, or none when it waits for something outside."""
    if state.terminal:
        return ()
    events = _next(state, world)
    if events and type(events[-1]) is SessionEnded:
        digest = commanded.digest(state.commanded, opened=state.opened)
        return (*events[:-1], msgspec.structs.replace(events[-1], commands_digest=digest))
    return events


def _next(state: SessionState, world: World) -> tuple[AnyEvent, ...]:
    told = told_by_hand(state) if state.opened.mode is Mode.MANUAL else ()
    if state.ending is not None:
        return told if state.open_calls() else (*told, *endings.ended(state, world))
    if state.opened.mode is Mode.MANUAL:
        return told
    if not state.calls and (state.opened.rollouts or state.opened.twin_of):
        refused = endings.refused_input(state, world)
        if refused:
            return refused
    step = state.current_step
    if step is None:
        return endings.succeeded(state, world)
    entry = state.steps[step.name]
    if entry.status is StepStatus.PENDING and step.condition is not None:
        skipped = _condition(state, step, condition=step.condition, world=world)
        if skipped is not None:
            return (skipped,)
    if step.plan:
        return _over_plan(state, step, entry=entry, world=world)
    return _single(state, step, entry=entry, world=world)


def _condition(
    state: SessionState, step: Step, *, condition: Condition, world: World
) -> StepEnded | None:
    try:
        if condition.expression.evaluate_bool(SessionScope(state, world.signals)):
            return None
    except ExpressionError as problem:
        where = f"step {step.name!r}, condition"
        text = condition.expression.text
        failure = violation(where, condition.line, text=text, problem=problem)
        return _failed_step(state, step, failure=failure, world=world)
    return StepEnded(
        at_ms=world.at_ms,
        step=step.name,
        status=StepStatus.SKIPPED,
        reason="its condition is false",
    )


def _failed_step(
    state: SessionState, step: Step, *, failure: AcpError | None, world: World
) -> StepEnded:
    """A step may fail after its calls did their work: the error says so."""
    told = failure and side_effects.of_step(failure, state, step=step.name)
    return StepEnded(at_ms=world.at_ms, step=step.name, status=StepStatus.FAILED, error=told)


def _single(
    state: SessionState, step: Step, *, entry: StepState, world: World
) -> tuple[AnyEvent, ...]:
    """A step of one call: create it, wait for it, end the step with it."""
    found = entry.sub_goals.get("")
    if found is None:
        return (_create_single(state, step, world=world),)
    if found.status is StepStatus.RUNNING:
        return ()
    rejected = rejection(state, step, found=found, at_ms=world.at_ms)
    if rejected:
        return rejected
    if found.status is StepStatus.SUCCEEDED:
        return (_close(state, step, world=world),)
    return (_failed_step(state, step, failure=found.error, world=world),)


def _create_single(state: SessionState, step: Step, *, world: World) -> AnyEvent:
    scope = SessionScope(state, world.signals)
    fields: dict[str, bytes] = {}
    for mapping in step.input_mapping:
        try:
            fields[mapping.field] = mapping.expression.evaluate(scope)
        except ExpressionError as problem:
            where = f"step {step.name!r}, input_mapping.{mapping.field}"
            failure = violation(where, mapping.line, text=mapping.expression.text, problem=problem)
            return _failed_step(state, step, failure=failure, world=world)
    made = calls.for_step(state, step, fields=fields, world=world)
    if isinstance(made, CallCreated):
        return made
    ended = _failed_step(state, step, failure=made, world=world)
    return msgspec.structs.replace(ended, mapped=refused_values(made))


def _over_plan(
    state: SessionState, step: Step, *, entry: StepState, world: World
) -> tuple[AnyEvent, ...]:
    """A step over a plan: everything ready is begun at once; it ends when all have ended."""
    plan = state.plan_in(step.plan)
    if plan is None:
        message = f"step {step.plan!r} gave no plan to execute"
        failure = error(Reason.CONTRACT_VIOLATION, message, boundary=Boundary.GATEWAY)
        return (_failed_step(state, step, failure=failure, world=world),)
    begun = [
        _begin(state, step, entry=entry, goal=goal, world=world)
        for goal in sub_goals.ready(plan, entry)
    ]
    if begun:
        return tuple(begun)
    if any(goal.id not in entry.sub_goals for goal in plan.sub_goals):
        return ()
    states = [entry.sub_goals[goal.id].status for goal in plan.sub_goals]
    if StepStatus.RUNNING in states:
        return ()
    failed = [goal.id for goal in plan.sub_goals if _failed(entry, goal.id)]
    if _is_failure(step, states):
        first = entry.sub_goals[failed[0]].error
        return (_failed_step(state, step, failure=first, world=world),)
    return (_close(state, step, world=world),)


def _failed(entry: StepState, goal: str) -> bool:
    return entry.sub_goals[goal].status in (StepStatus.FAILED, StepStatus.CANCELLED)


def _is_failure(step: Step, states: list[StepStatus]) -> bool:
    failed = sum(status in (StepStatus.FAILED, StepStatus.CANCELLED) for status in states)
    if step.require is Require.ALL:
        return failed > 0
    return failed > 0 and StepStatus.SUCCEEDED not in states


def _begin(
    state: SessionState, step: Step, *, entry: StepState, goal: SubGoal, world: World
) -> AnyEvent:
    never = sub_goals.skip(state, step.name, entry=entry, goal=goal)
    if never is not None:
        return _sub_goal_ended(step, goal, world=world, status=never.status, failure=never.error)
    arguments = sub_goals.arguments(state, step.name, goal=goal)
    if not isinstance(arguments, bytes):
        return _sub_goal_ended(step, goal, world=world, status=StepStatus.FAILED, failure=arguments)
    made = calls.for_sub_goal(state, step, goal=goal, arguments=arguments, world=world)
    if isinstance(made, CallCreated):
        return made
    ended = _sub_goal_ended(step, goal, world=world, status=StepStatus.FAILED, failure=made)
    return msgspec.structs.replace(ended, mapped=refused_values(made))


def _sub_goal_ended(
    step: Step, goal: SubGoal, *, world: World, status: StepStatus, failure: AcpError
) -> SubGoalEnded:
    return SubGoalEnded(
        at_ms=world.at_ms, step=step.name, sub_goal=goal.id, status=status, error=failure
    )


def _close(state: SessionState, step: Step, *, world: World) -> StepEnded:
    """End a step that succeeded: write its variables, note what a RETRY may not repeat."""
    variables = _variables(state, step, world=world) if step.output_mapping else {}
    if not isinstance(variables, dict):
        return _failed_step(state, step, failure=variables, world=world)
    return StepEnded(
        at_ms=world.at_ms,
        step=step.name,
        status=StepStatus.SUCCEEDED,
        variables=variables,
        refused_retries=_refused_retries(state) if step.role is StepRole.REFLECT else (),
    )


def _variables(state: SessionState, step: Step, *, world: World) -> dict[str, Payload] | AcpError:
    scope = _StepScope(state, step, world=world)
    variables: dict[str, Payload] = {}
    for mapping in step.output_mapping:
        try:
            variables[mapping.field] = payload(mapping.expression.evaluate(scope))
        except ExpressionError as problem:
            where = f"step {step.name!r}, output_mapping.{mapping.field}"
            return violation(where, mapping.line, text=mapping.expression.text, problem=problem)
    return variables


def _refused_retries(state: SessionState) -> tuple[str, ...]:
    if not state.reflections:
        return ()
    answer = state.reflections[-1].response
    if answer.verdict is not Verdict.RETRY:
        return ()
    named = [state.calls[i] for i in dict.fromkeys(answer.retry_call_ids) if i in state.calls]
    return tuple(call.created.call_id for call in named if not may_redo(call))


class _StepScope:
    """The session's names, and on top the fields of the step that just succeeded (`output.x`)."""

    def __init__(self, state: SessionState, step: Step, *, world: World) -> None:
        steps = dict(state.steps)
        entry = steps[step.name]
        steps[step.name] = msgspec.structs.replace(entry, status=StepStatus.SUCCEEDED)
        seen = msgspec.structs.replace(state)
        seen.steps = steps
        self._names = SessionScope(seen, world.signals)
        self._step = step.name
        self._own: dict[str, msgspec.Raw] | None = None

    def get(self, name: str) -> bytes | None:
        found = self._names.get(name)
        if found is not None:
            return found
        if self._own is None:
            text = self._names.get(self._step) or b"{}"
            self._own = msgspec.json.decode(text, type=dict[str, msgspec.Raw])
        value = self._own.get(name)
        return None if value is None else bytes(value)
