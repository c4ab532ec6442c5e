"""Making the event that creates a call: identity, target, semantics, exact bytes (9.1, 9.2)."""

import msgspec

from acp_spec.bindings.errors import error
from acp_spec.model.card import Action
from acp_spec.model.enums import (
    Boundary,
    Effect,
    Idempotency,
    Kind,
    SideEffect,
    StepRole,
    StepStatus,
    StepType,
)
from acp_spec.model.errors import AcpError, Reason
from acp_spec.model.ids import body_digest, call_id
from acp_spec.model.payload import ABSENT, payload
from acp_spec.model.plan import SubGoal
from gateway.engine import pins, requests
from gateway.engine.action_schemas import arguments_problem, secret_paths
from gateway.engine.argument_values import NOTHING_MAPPED, arguments_in_domain
from gateway.engine.catalog import Catalog, Offer
from gateway.engine.definition import Step
from gateway.engine.events import CallCreated
from gateway.engine.states import CallState, SessionState, StepState
from gateway.engine.world import World
from gateway.governance.meanings import Mapped
from gateway.governance.semantics import Origin


class Semantics(msgspec.Struct, frozen=True, kw_only=True):
    """How a call may be treated: from the card, or by its role (SPEC section 4)."""

    effect: Effect
    idempotency: Idempotency
    idempotency_ttl_ms: int = 0
    timeout_ms: int = 0
    operation_timeout_ms: int = 0


DAY_MS = 24 * 60 * 60 * 1000

OF_ROLE: dict[StepRole, Semantics] = {
    StepRole.PLAN: Semantics(effect=Effect.READ, idempotency=Idempotency.NATURAL),
    StepRole.OBSERVE: Semantics(
        effect=Effect.WRITE, idempotency=Idempotency.BY_KEY, idempotency_ttl_ms=DAY_MS
    ),
    StepRole.REFLECT: Semantics(effect=Effect.READ, idempotency=Idempotency.NATURAL),
}

CAREFUL = Semantics(effect=Effect.WRITE, idempotency=Idempotency.NONE)
"""Of an action nobody has declared: as if it could not be repeated."""


class Intent(msgspec.Struct, frozen=True, kw_only=True):
    """A call about to be made, before it has an identity."""

    step: Step
    sub_goal: str = ""
    role: StepRole
    action: str = ""
    offer: Offer | None = None
    pin: str = ""
    component: str = ""
    semantics: Semantics
    body: bytes
    arguments: bytes = b""
    mapped: Mapped = NOTHING_MAPPED
    repeat: bool = False


def for_step(
    state: SessionState, step: Step, *, fields: dict[str, bytes], world: World
) -> CallCreated | AcpError:
    """The call of a step of one call, or why its arguments may not be sent."""
    pin = state.opened.pins.get(f"step:{step.name}", "")
    offer = world.catalog.exact(pin) if pin else None
    if offer is None:
        offer = pins.offer_for_step(step, world.catalog, labels=state.opened.labels)
    if step.role is StepRole.EXECUTE:
        origin = Origin(action=step.action, step=step.name, component=_name(offer, step))
        found = arguments_in_domain(
            state.workflow, origin, arguments=requests.arguments_of(fields), world=world
        )
        if found.refusal is not None:
            return found.refusal
        arguments = found.text
        problem = arguments_problem(_action(offer, step.action), arguments)
        if problem is not None:
            return problem
        text = requests.execute_body(step.action, arguments)
        semantics = _of_action(offer, step.action)
    else:
        arguments, found = b"", NOTHING_MAPPED
        text = requests.body(state, step, fields=fields, catalog=world.catalog)
        semantics = OF_ROLE[step.role]
    intent = Intent(
        step=step,
        role=step.role,
        action=step.action,
        offer=offer,
        pin=pin,
        component=step.component,
        semantics=semantics,
        body=text,
        arguments=arguments,
        mapped=found,
        repeat=step.repeat,
    )
    return _created(state, intent, world=world)


def for_sub_goal(
    state: SessionState, step: Step, *, goal: SubGoal, arguments: bytes, world: World
) -> CallCreated | AcpError:
    """The call of a plan's sub-goal, on the component that offers its action."""
    pin = state.opened.pins.get(_pin_key(step, goal.action), "")
    offer = _offer_for_goal(state, step, action=goal.action, catalog=world.catalog)
    if offer is None and not pin:
        names = ", ".join(world.catalog.names_with_action(goal.action))
        message = (
            f"action {goal.action!r} is offered by {names}: the step's `component` or a session"
            f" label `action:{goal.action}` must choose"
            if names
            else f"no registered component offers the action {goal.action!r}"
        )
        return error(Reason.NO_COMPONENT, message, boundary=Boundary.GATEWAY)
    origin = Origin(action=goal.action, step=step.name, component=_name(offer, step))
    found = arguments_in_domain(state.workflow, origin, arguments=arguments, world=world)
    if found.refusal is not None:
        return found.refusal
    arguments = found.text
    problem = arguments_problem(_action(offer, goal.action), arguments)
    if problem is not None:
        return problem
    intent = Intent(
        step=step,
        sub_goal=goal.id,
        role=StepRole.EXECUTE,
        action=goal.action,
        offer=offer,
        pin=pin,
        semantics=_of_action(offer, goal.action),
        body=requests.execute_body(goal.action, arguments),
        arguments=arguments,
        mapped=found,
        repeat=goal.repeat or step.repeat,
    )
    return _created(state, intent, world=world)


def _pin_key(step: Step, action: str) -> str:
    return f"step:{step.name}" if step.component else f"action:{action}"


def _offer_for_goal(
    state: SessionState, step: Step, *, action: str, catalog: Catalog
) -> Offer | None:
    if step.component:
        offer = _pinned(state, f"step:{step.name}", catalog=catalog)
        offer = offer or catalog.version(step.component, step.version_range)
        return offer if offer and offer.card.action(action) else None
    pinned = _pinned(state, f"action:{action}", catalog=catalog)
    return pinned or pins.offer_for_action(action, catalog, labels=state.opened.labels)


def _pinned(state: SessionState, key: str, *, catalog: Catalog) -> Offer | None:
    pin = state.opened.pins.get(key)
    return catalog.exact(pin) if pin else None


def _name(offer: Offer | None, step: Step) -> str:
    return offer.card.name if offer else step.component


def _action(offer: Offer | None, name: str) -> Action | None:
    return offer.card.action(name) if offer else None


def _of_action(offer: Offer | None, name: str) -> Semantics:
    action = _action(offer, name)
    return CAREFUL if action is None else of_action(action)


def of_action(action: Action) -> Semantics:
    """What the card says about an action."""
    return Semantics(
        effect=action.effect,
        idempotency=action.idempotency,
        idempotency_ttl_ms=action.idempotency_ttl_ms,
        timeout_ms=action.timeout_ms,
        operation_timeout_ms=action.operation_timeout_ms,
    )


def _created(state: SessionState, intent: Intent, *, world: World) -> CallCreated:
    step, goal = intent.step, intent.sub_goal
    entry = state.steps[step.name]
    redo = entry.redo.get(goal, 0)
    card = intent.offer.card if intent.offer else None
    component, version = _meant(intent)
    executes = intent.role is StepRole.EXECUTE
    digest = body_digest(intent.action, intent.arguments if executes else intent.body)
    semantics = intent.semantics
    timeout_ms = step.timeout_ms or semantics.timeout_ms or world.default_timeout_ms
    return CallCreated(
        at_ms=world.at_ms,
        call_id=call_id(
            state.session_id, step.name, sub_goal=goal, generation=entry.generation, redo=redo
        ),
        step=step.name,
        role=intent.role,
        sub_goal=goal,
        loop=state.loop,
        redo=redo,
        component=component,
        version=version,
        action=intent.action,
        step_type=step_type(intent.role, card.kind if card else Kind.TOOL),
        effect=semantics.effect,
        idempotency=semantics.idempotency,
        idempotency_ttl_ms=semantics.idempotency_ttl_ms,
        timeout_ms=timeout_ms,
        operation_timeout_ms=semantics.operation_timeout_ms,
        body=payload(intent.body),
        body_digest=digest,
        arguments=payload(intent.arguments) if executes else ABSENT,
        reused_from=_reusable(state, intent, entry=entry, digest=digest),
        retry_of=entry.retry_of.get(goal, ""),
        mapped=intent.mapped.values,
        in_domain=intent.mapped.in_domain,
        secret_paths=secret_paths(_action(intent.offer, intent.action)),
    )


def _meant(intent: Intent) -> tuple[str, str]:
    """Name and version the call is for: the session's pin, also when nobody serves it just now.

    The driver waits for it, and only then lets the active version serve, as a deviation (SPEC 9.6).
    """
    if intent.pin:
        name, _, version = intent.pin.rpartition("@")
        return name, version
    card = intent.offer.card if intent.offer else None
    return (card.name, card.version) if card else (intent.component, "")


def step_type(role: StepRole, kind: Kind) -> StepType:
    """Which of the gateway's queues a call waits in (mission R07)."""
    if role is StepRole.PLAN:
        return StepType.PLAN
    return StepType.LLM if kind is Kind.LLM else StepType.TOOL


def _reusable(state: SessionState, intent: Intent, *, entry: StepState, digest: str) -> str:
    """An earlier pass that did exactly this already, so that it is not done again (SPEC 9.1)."""
    if entry.generation == 0 or intent.repeat or intent.semantics.effect is Effect.READ:
        return ""
    redone = state.calls.get(entry.retry_of.get(intent.sub_goal, ""))
    if redone is not None and redone.created.body_digest == digest:
        return ""
    for call in reversed(state.calls.values()):
        if call.created.loop < state.loop and _did_it(call, intent, digest=digest):
            return call.created.reused_from or call.created.call_id
    return ""


def _did_it(call: CallState, intent: Intent, *, digest: str) -> bool:
    created = call.created
    same = created.step == intent.step.name and created.action == intent.action
    if not same or created.body_digest != digest or call.open:
        return False
    done = call.status is StepStatus.SUCCEEDED
    return done or call.side_effect in (SideEffect.PERFORMED, SideEffect.UNKNOWN)
