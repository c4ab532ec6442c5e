"""The request of a call, as the exact bytes that are journaled and sent (SPEC 9.2).

`body` is the request's JSON object without `context`; a field comes from the step's input mapping,
else from the defaults of its role. Mapped text is joined byte for byte.
"""

from collections.abc import Callable

import msgspec

from acp_spec.bindings.fields import SETTLED_CALL_BYTES
from acp_spec.codec.json import encode
from acp_spec.codec.json_text import array_of, object_of
from acp_spec.model.calls import PlanLimits, SettledCall
from acp_spec.model.enums import StepRole, StepStatus
from acp_spec.model.errors import AcpError
from acp_spec.model.payload import ABSENT, Payload, is_absent, payload
from acp_spec.model.times import rfc3339
from gateway.engine.catalog import Catalog
from gateway.engine.definition import Step
from gateway.engine.scope import or_null
from gateway.engine.states import CallState, SessionState

_ARGUMENTS = msgspec.json.Decoder(dict[str, msgspec.Raw])

Fields = dict[str, bytes]


class Asked(msgspec.Struct, frozen=True):
    """What a role's defaults are made from."""

    state: SessionState
    step: Step
    catalog: Catalog


Defaults = Callable[[Asked], Fields]


def body(state: SessionState, step: Step, *, fields: Fields, catalog: Catalog) -> bytes:
    """The request of a plan, observe or reflect step."""
    merged = {**DEFAULTS[step.role](Asked(state, step, catalog)), **fields}
    return object_of(list(merged.items()))


class _Execute(msgspec.Struct, frozen=True, omit_defaults=True):
    action: str
    arguments: Payload = ABSENT


def execute_body(action: str, arguments: bytes) -> bytes:
    """The request of one action. `arguments` may be empty: then the field is absent."""
    return encode(_Execute(action, payload(arguments)))


def arguments_of(fields: Fields) -> bytes:
    """The arguments of a static step: its mapping's fields as one object."""
    return object_of(list(fields.items())) if fields else b"{}"


def _plan_defaults(asked: Asked) -> Fields:
    state, step, catalog = asked.state, asked.step, asked.catalog
    workflow = state.workflow
    limit = workflow.limits.max_sub_goals if workflow else PlanLimits().max_sub_goals
    fields: Fields = {
        "actions": catalog.actions_text(state.opened.pins),
        "limits": msgspec.json.encode({"max_sub_goals": limit}),
    }
    if not is_absent(state.opened.input):
        fields["input"] = bytes(state.opened.input)
    if state.memory:
        fields["memory"] = array_of([encode(item) for item in state.memory])
    calls = settled_calls(state)
    if calls:
        fields["calls"] = array_of([encode(call) for call in calls])
    if step.name in state.plan_of:
        fields["previous_plan"] = encode(state.plan_of[step.name])
    if state.critique:
        fields["critique"] = msgspec.json.encode(state.critique)
    return fields


def _observe_defaults(asked: Asked) -> Fields:
    rows = [_observation(call) for call in current_execute_calls(asked.state)]
    return {"observations": array_of(rows)} if rows else {}


class _Result(msgspec.Struct, frozen=True):
    action: str
    status: StepStatus
    arguments: Payload
    output: Payload
    error: AcpError | None


class _Observation(msgspec.Struct, frozen=True):
    """Written in one piece: an observer is told of every call."""

    step: str
    call_id: str
    kind: str
    data: _Result
    time: str


def _observation(call: CallState) -> bytes:
    created = call.created
    result = _Result(
        action=created.action,
        status=call.status,
        arguments=or_null(created.arguments),
        output=or_null(call.output),
        error=call.error,
    )
    return encode(
        _Observation(
            step=created.step,
            call_id=created.call_id,
            kind="result",
            data=result,
            time=rfc3339(created.at_ms),
        )
    )


def _reflect_defaults(asked: Asked) -> Fields:
    state = asked.state
    fields: Fields = {}
    goal = _goal_of_last_plan(state)
    if goal is not None:
        fields["goal"] = goal
    if state.plans:
        fields["plan"] = encode(state.plans[-1].plan)
    calls = settled_calls(state)
    if calls:
        fields["calls"] = array_of([encode(call) for call in calls])
    return fields


def _goal_of_last_plan(state: SessionState) -> bytes | None:
    if not state.plans:
        return None
    request = _ARGUMENTS.decode(bytes(state.calls[state.plans[-1].call_id].created.body))
    found = request.get("goal")
    return None if found is None else bytes(found)


def _no_defaults(asked: Asked) -> Fields:
    return {}


DEFAULTS: dict[StepRole, Defaults] = {
    StepRole.PLAN: _plan_defaults,
    StepRole.EXECUTE: _no_defaults,
    StepRole.OBSERVE: _observe_defaults,
    StepRole.REFLECT: _reflect_defaults,
}


def settled_calls(state: SessionState) -> list[SettledCall]:
    """Every executed call so far, by its settled attempt, over all passes."""
    return [
        settled_call(call)
        for call in state.calls.values()
        if call.created.role is StepRole.EXECUTE and not call.open
    ]


def current_execute_calls(state: SessionState) -> list[CallState]:
    """The settled execute calls of the current pass, in the order they were created."""
    current = {entry.call_id for step in state.steps.values() for entry in step.sub_goals.values()}
    return [
        call
        for call in state.calls.values()
        if call.created.call_id in current
        and call.created.role is StepRole.EXECUTE
        and not call.open
    ]


def settled_call(call: CallState) -> SettledCall:
    """A call as planners and reflectors see it; large texts are cut with a marker."""
    created = call.created
    arguments, arguments_cut = _cut(bytes(created.arguments))
    output, output_cut = _cut(bytes(call.output))
    return SettledCall(
        call_id=created.call_id,
        step=created.step,
        sub_goal=created.sub_goal,
        action=created.action,
        status=call.status,
        arguments=payload(arguments),
        output=payload(output) if call.status is StepStatus.SUCCEEDED else ABSENT,
        error=call.error,
        side_effect=call.side_effect,
        attempt=call.stands_on or call.number,
        truncated=arguments_cut or output_cut,
    )


def _cut(text: bytes) -> tuple[bytes, bool]:
    if len(text) <= SETTLED_CALL_BYTES:
        return text, False
    return msgspec.json.encode({"truncated": True, "bytes": len(text)}), True
