"""How a session moves from step to step: failure, verdicts, loops (SPEC section 8, "Ends").

`ON_VERDICT` is the table of what a reflector's verdict does. Going back is bounded by
`limits.max_loops`: that often a verdict goes back (RFL-008).
"""

from collections.abc import Callable

import msgspec

from acp_spec.bindings.errors import error
from acp_spec.model.enums import (
    Boundary,
    Idempotency,
    SessionStatus,
    SideEffect,
    StepRole,
    StepStatus,
    Verdict,
)
from acp_spec.model.errors import AcpError, Reason
from gateway.engine.commands import Advance, Command
from gateway.engine.definition import OnError, Step
from gateway.engine.events import StepEnded, SubGoalEnded
from gateway.engine.states import (
    CallState,
    Ending,
    SessionState,
    StepState,
    SubGoalState,
)

replace = msgspec.structs.replace


def sub_goal_ended(state: SessionState, event: SubGoalEnded) -> list[Command]:
    before = state.steps[event.step]
    entry = SubGoalState(status=event.status, error=event.error)
    sub_goals = {**before.sub_goals, event.sub_goal: entry}
    state.steps[event.step] = replace(before, status=StepStatus.RUNNING, sub_goals=sub_goals)
    return [Advance()]


def step_ended(state: SessionState, event: StepEnded) -> list[Command]:
    before = state.steps[event.step]
    state.steps[event.step] = replace(
        before, status=event.status, error=event.error, reason=event.reason
    )
    if event.variables:
        state.variables = {**state.variables, **event.variables}
    step = state.current_step
    assert step is not None, "a step that ended is the one the session stands at"
    assert step.name == event.step, "steps end one at a time, in order"
    if event.replan:
        _plan_again(state, step, failure=event.error)
    elif event.status is StepStatus.FAILED:
        _failed(state, step, failure=event.error)
    elif event.status is StepStatus.SUCCEEDED and step.role is StepRole.REFLECT:
        _judged(state, step, event=event)
    else:
        _go_on(state, step)
    return [Advance()]


def _plan_again(state: SessionState, step: Step, *, failure: AcpError | None) -> None:
    """The same step once more, as a loop of its own; why its plan was rejected is the critique."""
    state.loop += 1
    state.critique = failure.message if failure else ""
    before = state.steps[step.name]
    state.steps[step.name] = StepState(generation=before.generation + 1)


def _failed(state: SessionState, step: Step, *, failure: AcpError | None) -> None:
    """A failed step fails the session unless it may go on, or a later reflect step can decide."""
    if step.on_error is OnError.CONTINUE:
        _go_on(state, step)
        return
    state.position += 1
    if not _later_judge(state):
        state.ending = Ending(status=SessionStatus.FAILED, error=failure)


def _go_on(state: SessionState, step: Step) -> None:
    """To the next step that is not skipped. A judge that did not judge left failures undecided."""
    state.position += 1
    undecided = _undecided(state) if step.role is StepRole.REFLECT else None
    if undecided is not None and not _later_judge(state):
        state.ending = Ending(status=SessionStatus.FAILED, error=undecided)
    _pass_skipped(state)


def _pass_skipped(state: SessionState) -> None:
    assert state.workflow is not None
    steps = state.workflow.steps
    while state.position < len(steps):
        if state.steps[steps[state.position].name].status is not StepStatus.SKIPPED:
            return
        state.position += 1


def _undecided(state: SessionState) -> AcpError | None:
    """The failure of an earlier step that should have ended the session, had no judge come."""
    assert state.workflow is not None
    for step in reversed(state.workflow.steps[: state.position]):
        entry = state.steps[step.name]
        if step.role is StepRole.REFLECT and entry.status is StepStatus.SUCCEEDED:
            return None
        if entry.status is StepStatus.FAILED and step.on_error is OnError.FAIL:
            return entry.error
    return None


def _later_judge(state: SessionState) -> bool:
    """Stand at the next step that may run after a failure: observers see it, a reflector judges."""
    assert state.workflow is not None
    steps = state.workflow.steps
    judge = next(
        (i for i in range(state.position, len(steps)) if steps[i].role is StepRole.REFLECT), None
    )
    if judge is None:
        return False
    for index in range(state.position, judge):
        entry = state.steps[steps[index].name]
        if steps[index].role is not StepRole.OBSERVE and entry.status is StepStatus.PENDING:
            reason = "an earlier step failed; a reflector decides"
            skipped = replace(entry, status=StepStatus.SKIPPED, reason=reason)
            state.steps[steps[index].name] = skipped
    _pass_skipped(state)
    return True


def _judged(state: SessionState, step: Step, *, event: StepEnded) -> None:
    reflection = state.reflections[-1]
    if event.refused_retries:
        noted = replace(reflection, refused_retries=event.refused_retries)
        state.reflections = (*state.reflections[:-1], noted)
    ON_VERDICT[reflection.response.verdict](state, step)


def _critique(state: SessionState) -> str:
    return state.reflections[-1].response.critique


def _accept(state: SessionState, step: Step) -> None:
    _go_on(state, step)


def _abort(state: SessionState, step: Step) -> None:
    text = _critique(state) or "the reflector gave no critique"
    failure = error(
        Reason.CONTRACT_VIOLATION,
        f"step {step.name!r} ended the session: {text}",
        side_effect=SideEffect.NONE,
        boundary=Boundary.COMPONENT,
    )
    state.ending = Ending(status=SessionStatus.FAILED, error=failure)


def _fall_back(state: SessionState, step: Step) -> None:
    state.critique = _critique(state)
    state.ending = Ending(status=SessionStatus.SUCCEEDED, fall_back=True)


def _replan(state: SessionState, step: Step) -> None:
    target = step.target(Verdict.REPLAN)
    if target is None:
        _loop_limit(state, f"step {step.name!r} asked for REPLAN, which has no target in its `on`")
        return
    if not _next_loop(state):
        return
    state.critique = _critique(state)
    _go_back(state, target, again=[])


def _retry(state: SessionState, step: Step) -> None:
    """Do the named calls once more; what was skipped because of them and what came after runs too.

    An earlier `on: {RETRY: ...}` target begins further back. With no call named it is all there is.
    """
    answer = state.reflections[-1].response
    named = [state.calls[i] for i in dict.fromkeys(answer.retry_call_ids) if i in state.calls]
    current = [call for call in named if _is_current(state, call)]
    allowed = [call for call in current if may_redo(call)]
    target = step.target(Verdict.RETRY)
    if not allowed and (current or target is None):
        _nothing_to_retry(state, step, unsafe=bool(current))
        return
    if not _next_loop(state):
        return
    state.critique = _critique(state)
    _go_back(state, target, again=allowed)


def _go_back(state: SessionState, target: str | None, *, again: list[CallState]) -> None:
    """Pass the steps from `target`, or the first call to do again, up to here once more."""
    assert state.workflow is not None
    names = [entry.name for entry in state.workflow.steps]
    places = [names.index(call.created.step) for call in again]
    first = min(places + ([] if target is None else [names.index(target)]))
    passed = range(first, state.position + 1)
    for place in passed:
        step = state.workflow.steps[place]
        before = state.steps[step.name]
        redone = [call for call in again if call.created.step == step.name]
        if redone and not (step.plan and names.index(step.plan) in passed):
            state.steps[step.name] = _redo(before, redone)
        else:
            retry_of = {call.created.sub_goal: call.created.call_id for call in redone}
            state.steps[step.name] = StepState(generation=before.generation + 1, retry_of=retry_of)
    state.position = first


def _redo(before: StepState, redone: list[CallState]) -> StepState:
    """The same pass of a step without the calls to do again, and without what never was a call."""
    sub_goals = {goal: entry for goal, entry in before.sub_goals.items() if entry.call_id}
    redo, retry_of = dict(before.redo), dict(before.retry_of)
    for call in redone:
        goal = call.created.sub_goal
        sub_goals.pop(goal)
        redo[goal] = redo.get(goal, 0) + 1
        retry_of[goal] = call.created.call_id
    return replace(
        before,
        status=StepStatus.RUNNING,
        sub_goals=sub_goals,
        redo=redo,
        retry_of=retry_of,
        error=None,
    )


def _is_current(state: SessionState, call: CallState) -> bool:
    entry = state.steps.get(call.created.step)
    found = entry.sub_goals.get(call.created.sub_goal) if entry else None
    return found is not None and found.call_id == call.created.call_id


def may_redo(call: CallState) -> bool:
    """Only what is harmless to repeat, or what failed having done nothing (SPEC 9.1)."""
    if call.created.idempotency is Idempotency.NATURAL:
        return True
    return call.status is not StepStatus.SUCCEEDED and call.side_effect is SideEffect.NONE


def _nothing_to_retry(state: SessionState, step: Step, *, unsafe: bool) -> None:
    if not unsafe:
        _loop_limit(state, f"step {step.name!r} asked for RETRY and named no call of this pass")
        return
    failure = error(
        Reason.RETRY_UNSAFE,
        f"step {step.name!r} asked to repeat calls that may have done something already",
    )
    state.ending = Ending(status=SessionStatus.FAILED, error=failure)


def _next_loop(state: SessionState) -> bool:
    assert state.workflow is not None
    limit = state.workflow.limits.max_loops
    if state.loop >= limit:
        _loop_limit(state, f"limits.max_loops is {limit}: the session has gone back that often")
        return False
    state.loop += 1
    return True


def _loop_limit(state: SessionState, message: str) -> None:
    failure = error(Reason.LOOP_LIMIT, message)
    state.ending = Ending(status=SessionStatus.FAILED, error=failure)


ON_VERDICT: dict[Verdict, Callable[[SessionState, Step], None]] = {
    Verdict.ACCEPT: _accept,
    Verdict.RETRY: _retry,
    Verdict.REPLAN: _replan,
    Verdict.FALLBACK: _fall_back,
    Verdict.ABORT: _abort,
}
