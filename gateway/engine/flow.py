"""How a session moves from step to step: failure, verdicts, loops (SPEC section 8, "Ends").

`ON_VERDICT` is the table of what a reflector's verdict does. Going back is bounded by
`limits.max_loops`: that many passes in all.
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
    if event.status is StepStatus.FAILED:
        _failed(state, step, failure=event.error)
    elif event.status is StepStatus.SUCCEEDED and step.role is StepRole.REFLECT:
        _judged(state, step, event=event)
    else:
        state.position += 1
    return [Advance()]


def _failed(state: SessionState, step: Step, *, failure: AcpError | None) -> None:
    """A failed step fails the session unless it may go on, or a later reflect step can decide."""
    state.position += 1
    if step.on_error is OnError.CONTINUE:
        return
    if state.workflow is not None and _later_judge(state):
        return
    state.ending = Ending(status=SessionStatus.FAILED, error=failure)


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
    while state.steps[steps[state.position].name].status is StepStatus.SKIPPED:
        state.position += 1
    return True


def _judged(state: SessionState, step: Step, *, event: StepEnded) -> None:
    if not state.reflections or state.reflections[-1].step != step.name:
        state.position += 1
        return
    reflection = state.reflections[-1]
    if event.refused_retries:
        noted = replace(reflection, refused_retries=event.refused_retries)
        state.reflections = (*state.reflections[:-1], noted)
    ON_VERDICT[reflection.response.verdict](state, step)


def _critique(state: SessionState) -> str:
    return state.reflections[-1].response.critique


def _accept(state: SessionState, step: Step) -> None:
    state.position += 1


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
    assert state.workflow is not None
    names = [entry.name for entry in state.workflow.steps]
    if not _next_loop(state):
        return
    state.critique = _critique(state)
    first = names.index(target)
    for name in names[first : state.position + 1]:
        generation = state.steps[name].generation + 1
        state.steps[name] = StepState(generation=generation)
    state.position = first


def _retry(state: SessionState, step: Step) -> None:
    """Do the named calls once more; what hung on them and what came after runs again."""
    assert state.workflow is not None
    names = [entry.name for entry in state.workflow.steps]
    answer = state.reflections[-1].response
    named = [state.calls[i] for i in answer.retry_call_ids if i in state.calls]
    current = [call for call in named if _is_current(state, call)]
    allowed = [call for call in current if may_redo(call)]
    target = step.target(Verdict.RETRY)
    if not allowed:
        _nothing_to_retry(state, step, unsafe=bool(current))
        return
    if not _next_loop(state):
        return
    state.critique = _critique(state)
    first = min(names.index(call.created.step) for call in allowed)
    if target is not None:
        first = min(first, names.index(target))
    redone = {call.created.step for call in allowed}
    for name in names[first : state.position + 1]:
        before = state.steps[name]
        if name not in redone:
            state.steps[name] = StepState(generation=before.generation + 1)
        else:
            calls = [call for call in allowed if call.created.step == name]
            state.steps[name] = _redo(state, name, before=before, calls=calls)
    state.position = first


def _redo(
    state: SessionState, name: str, *, before: StepState, calls: list[CallState]
) -> StepState:
    sub_goals = dict(before.sub_goals)
    redo, retry_of = dict(before.redo), dict(before.retry_of)
    for call in calls:
        goal = call.created.sub_goal
        sub_goals.pop(goal, None)
        redo[goal] = redo.get(goal, 0) + 1
        retry_of[goal] = call.created.call_id
    for goal, entry in before.sub_goals.items():
        if entry.status is StepStatus.SKIPPED:
            sub_goals.pop(goal)
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
    if state.loop + 1 >= limit:
        _loop_limit(state, f"limits.max_loops allows {limit} passes, and this was the last one")
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
