"""What expressions of a workflow may name, as JSON text made on demand (SPEC section 8).

`input`, `session`, `vars`, `memory`, `signals`, and each step by its name. Only a name that an
expression uses is built; payload text is joined, never re-encoded. A skipped step is null.
"""

from collections.abc import Callable

import msgspec

from acp_spec.codec.json import encode
from acp_spec.codec.json_text import array_of, object_of
from acp_spec.model.enums import SideEffect, StepRole, StepStatus
from acp_spec.model.errors import AcpError
from acp_spec.model.payload import NULL as NULL_PAYLOAD
from acp_spec.model.payload import Payload, is_absent
from acp_spec.model.plan import SubGoal
from gateway.engine.definition import Step
from gateway.engine.states import SessionState, SubGoalState
from gateway.engine.world import nothing_told

NULL = b"null"
_ENVELOPE = frozenset({"status", "results", "component", "retries_spent", "usage", "llm_calls"})
_MEMBERS = msgspec.json.Decoder(dict[str, msgspec.Raw])


class SessionScope:
    """The names of one session at one moment. Keeps what it built: ask one scope many things."""

    def __init__(self, state: SessionState, signals: Callable[[], bytes] = nothing_told) -> None:
        self._state = state
        self._signals = signals
        self._built: dict[str, bytes | None] = {}

    def get(self, name: str) -> bytes | None:
        """The JSON text behind a root name; None when there is no such name."""
        if name not in self._built:
            self._built[name] = self._build(name)
        return self._built[name]

    def _build(self, name: str) -> bytes | None:
        state = self._state
        match name:
            case "input":
                return NULL if is_absent(state.opened.input) else bytes(state.opened.input)
            case "session":
                return session_text(state)
            case "signals":
                return self._signals()
            case "vars":
                return object_of([(key, bytes(value)) for key, value in state.variables.items()])
            case "memory":
                return array_of([encode(item) for item in state.memory])
            case _:
                return step_text(state, name)


def session_text(state: SessionState) -> bytes:
    """The name `session`: its ids and labels."""
    opened = state.opened
    return msgspec.json.encode(
        {
            "session_id": opened.session_id,
            "lineage_id": opened.lineage_id,
            "tenant": opened.tenant,
            "workflow": opened.workflow,
            "labels": opened.labels,
            "priority": opened.priority,
            "loop": state.loop,
        }
    )


def step_text(state: SessionState, name: str) -> bytes | None:
    """The name of a step: `{status, output, results, <response fields>}`; None: no such step."""
    workflow = state.workflow
    step = next((s for s in workflow.steps if s.name == name), None) if workflow else None
    if step is None:
        return None
    entry = state.steps[name]
    if entry.status in (StepStatus.SKIPPED, StepStatus.PENDING):
        return NULL
    succeeded = entry.status is StepStatus.SUCCEEDED
    fields = [
        ("status", _text(entry.status.value)),
        ("output", output_text(state, step) if succeeded else NULL),
        ("results", results_text(state, step)),
    ]
    if entry.error is not None:
        fields.append(("error", encode(entry.error)))
    return object_of([*fields, *_response_fields(state, step)])


def _response_fields(state: SessionState, step: Step) -> list[tuple[str, bytes]]:
    call = None if step.plan else state.call_of(step.name)
    if call is None or is_absent(call.response):
        return []
    if step.role is StepRole.EXECUTE:
        return [("side_effect", _text(call.side_effect.value))]
    members = _MEMBERS.decode(bytes(call.response))
    return [
        (key, bytes(value))
        for key, value in members.items()
        if key not in _ENVELOPE and key not in ("output", "error")
    ]


def output_text(state: SessionState, step: Step) -> bytes:
    """A step's output: its call's; over a plan, an object of each sub-goal's that succeeded."""
    if not step.plan:
        call = state.call_of(step.name)
        if call is None:
            return NULL
        if step.role in (StepRole.EXECUTE, StepRole.PLAN):
            return NULL if is_absent(call.output) else bytes(call.output)
        found = _MEMBERS.decode(bytes(call.response)).get("output")
        return NULL if found is None else bytes(found)
    outputs = []
    for goal in _goals(state, step):
        call = state.call_of(step.name, goal)
        if call is not None and call.status is StepStatus.SUCCEEDED:
            outputs.append((goal, NULL if is_absent(call.output) else bytes(call.output)))
    return object_of(outputs)


class _Result(msgspec.Struct, frozen=True):
    """Written in one piece, in this order."""

    id: str
    action: str
    status: StepStatus
    output: Payload
    error: AcpError | None
    side_effect: SideEffect
    call_id: str


def results_text(state: SessionState, step: Step) -> bytes:
    """`results[{id, action, status, output, error, side_effect}]` in the plan's order."""
    if step.role is not StepRole.EXECUTE:
        return b"[]"
    entry = state.steps[step.name]
    actions = {goal.id: goal.action for goal in _plan_goals(state, step)}
    rows = []
    for goal in _goals(state, step):
        found = entry.sub_goals.get(goal)
        if found is not None:
            action = actions.get(goal, step.action)
            rows.append(_result(state, found, name=goal or step.name, action=action))
    return msgspec.json.encode(rows)


def _result(state: SessionState, found: SubGoalState, *, name: str, action: str) -> _Result:
    call = state.calls.get(found.call_id)
    succeeded = call is not None and call.status is StepStatus.SUCCEEDED
    return _Result(
        id=name,
        action=action,
        status=found.status,
        output=or_null(call.output) if call is not None and succeeded else NULL_PAYLOAD,
        error=found.error,
        side_effect=call.side_effect if call else SideEffect.NONE,
        call_id=found.call_id,
    )


def or_null(given: Payload) -> Payload:
    """A payload as a value that must be there: null where there is none."""
    return NULL_PAYLOAD if is_absent(given) else given


def _goals(state: SessionState, step: Step) -> list[str]:
    if not step.plan:
        return [""]
    return [goal.id for goal in _plan_goals(state, step)]


def _plan_goals(state: SessionState, step: Step) -> tuple[SubGoal, ...]:
    plan = state.plan_in(step.plan) if step.plan else None
    return plan.sub_goals if plan else ()


def _text(value: str) -> bytes:
    return msgspec.json.encode(value)
