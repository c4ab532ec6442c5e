"""A step that a client runs itself in a MANUAL session (`execute_step`, SPEC section 6).

The payload is that request without its context: PLAN a plan request, TOOL and LLM an execute
request (LLM on a component of kind `llm`).
"""

import msgspec

from acp_spec.bindings.errors import error
from acp_spec.codec.json_text import splice
from acp_spec.model.enums import Boundary, Kind, Role, StepRole, StepType
from acp_spec.model.errors import AcpError, Reason
from acp_spec.model.ids import body_digest, call_id
from acp_spec.model.payload import ABSENT, is_absent, payload
from acp_spec.model.session import ManualStep
from gateway.engine import calls, pins
from gateway.engine.action_schemas import arguments_problem, secret_paths
from gateway.engine.argument_values import NOTHING_MAPPED, arguments_in_domain
from gateway.engine.catalog import Offer
from gateway.engine.events import CallCreated
from gateway.engine.states import SessionState
from gateway.engine.world import World
from gateway.governance.semantics import Origin


class _Payload(msgspec.Struct, frozen=True):
    action: str = ""
    arguments: msgspec.Raw = ABSENT
    context: msgspec.Raw = ABSENT


def manual_call(state: SessionState, step: ManualStep, *, world: World) -> CallCreated | AcpError:
    """The call of this manual step, or why it cannot be made."""
    text = b"{}" if is_absent(step.payload) else bytes(step.payload)
    try:
        asked = msgspec.json.decode(text, type=_Payload)
    except msgspec.MsgspecError as problem:
        return error(Reason.INVALID_REQUEST, f"payload: {problem}")
    if not is_absent(asked.context):  # it would stand behind ours, and be read instead of it
        return error(Reason.INVALID_REQUEST, "payload.context: the gateway writes the context")
    plan = step.step_type is StepType.PLAN
    if not plan and not asked.action:
        return error(Reason.INVALID_REQUEST, "payload.action: name the action to execute")
    if not plan and state.workflow and not state.workflow.contract.allows(asked.action):
        return _not_allowed(asked.action)
    offer = _offer(state, step, action=asked.action, world=world)
    if isinstance(offer, AcpError):
        return offer
    role = StepRole.PLAN if plan else StepRole.EXECUTE
    action = offer.card.action(asked.action)
    semantics = calls.OF_ROLE[role] if plan or action is None else calls.of_action(action)
    arguments = text if plan else bytes(asked.arguments)
    name = "" if plan else asked.action
    found = NOTHING_MAPPED
    if not plan:
        origin = Origin(action=name, step=step.step_key, component=offer.card.name)
        found = arguments_in_domain(state.workflow, origin, arguments=arguments, world=world)
        refused = found.refusal or arguments_problem(action, found.text)
        if refused is not None:
            return refused
        if found.text != arguments:
            arguments, text = found.text, splice(text, "/arguments", value=found.text)
    component, version = _meant(state, step, action=name, offer=offer)
    return CallCreated(
        at_ms=world.at_ms,
        call_id=call_id(state.session_id, step.step_key, sub_goal="", generation=0, redo=0),
        step=step.step_key,
        role=role,
        component=component,
        version=version,
        action=name,
        step_type=calls.step_type(role, offer.card.kind),
        effect=semantics.effect,
        idempotency=semantics.idempotency,
        idempotency_ttl_ms=semantics.idempotency_ttl_ms,
        timeout_ms=semantics.timeout_ms or world.default_timeout_ms,
        operation_timeout_ms=semantics.operation_timeout_ms,
        body=payload(text),
        body_digest=body_digest(name, arguments),
        arguments=ABSENT if plan else payload(arguments),
        manual_key=step.step_key,
        mapped=found.values,
        in_domain=found.in_domain,
        secret_paths=secret_paths(action),
    )


def _not_allowed(action: str) -> AcpError:
    message = f"the workflow's contract does not allow the action {action!r}"
    return error(Reason.CONTRACT_VIOLATION, message, boundary=Boundary.CLIENT)


def _offer(state: SessionState, step: ManualStep, *, action: str, world: World) -> Offer | AcpError:
    catalog = world.catalog
    if step.component:
        found = catalog.version(*_name_and_range(step.component))
    elif step.step_type is StepType.PLAN:
        names = catalog.names_with_role(Role.PLANNER)
        found = catalog.version(names[0]) if names else None
    else:
        pinned = state.opened.pins.get(f"action:{action}")
        found = catalog.exact(pinned) if pinned else None
        found = found or pins.offer_for_action(action, catalog, labels=state.opened.labels)
    if found is None:
        what = step.component or action or "a planner"
        return error(Reason.NO_COMPONENT, f"nobody registered can serve {what!r}, or several can")
    if step.step_type is not StepType.PLAN and found.card.action(action) is None:
        message = f"component {found.card.name!r} does not declare the action {action!r}"
        return error(Reason.INVALID_REQUEST, message)
    if step.step_type is StepType.LLM and found.card.kind is not Kind.LLM:
        message = f"component {found.card.name!r} is not of kind LLM: use step_type TOOL"
        return error(Reason.INVALID_REQUEST, message)
    return found


def _meant(state: SessionState, step: ManualStep, *, action: str, offer: Offer) -> tuple[str, str]:
    """What the call is for: the session's pin, also when nobody serves it just now, so that the
    version that serves instead shows as a deviation (RUN-005); a client may name another one."""
    pin = "" if step.component else state.opened.pins.get(f"action:{action}", "")
    if pin:
        name, _, version = pin.rpartition("@")
        return name, version
    return offer.card.name, offer.card.version


def _name_and_range(text: str) -> tuple[str, str]:
    name, _, wanted = text.partition("@")
    return name, wanted
