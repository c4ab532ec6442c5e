"""Which component version a session intends to use, fixed at its opening (SPEC 9.6).

Keys are `step:<name>` for a step that names or implies one component, `action:<name>` for what a
plan may call. A label `action:<name>` of the session chooses between components with one action.
"""

from acp_spec.model.enums import ROLE_OF_STEP, StepRole
from acp_spec.model.semver import matches
from gateway.engine.catalog import Catalog, Offer
from gateway.engine.definition import Step, Workflow

CHOICE = "action:"
"""Prefix of the session labels that choose a component for an action."""


def pins(workflow: Workflow | None, catalog: Catalog, *, labels: dict[str, str]) -> dict[str, str]:
    """The pins of a session that opens now; what nobody serves yet has no pin.

    Actions are pinned only where a plan chooses them, or a client by hand: an unrelated
    registration must not change the lineage of a workflow that never calls it.
    """
    found: dict[str, str] = {}
    for step in workflow.steps if workflow else ():
        offer = offer_for_step(step, catalog, labels=labels)
        if offer is not None:
            found[f"step:{step.name}"] = offer.pin
    for action in _choosable(workflow, catalog):
        offer = offer_for_action(action, catalog, labels=labels)
        if offer is not None:
            found[f"action:{action}"] = offer.pin
    return found


def swapped(
    pinned: dict[str, str], workflow: Workflow | None, *, catalog: Catalog, to: tuple[str, str]
) -> dict[str, str]:
    """The pins with one version in the place of another: `to` is (`name@old`, `name@new`).

    A step keeps its pin where the other version is outside its range or cannot do its work; the
    same pins come back when nothing changes, or nobody serves the other version.
    """
    old, offer = to[0], catalog.exact(to[1])
    if offer is None:
        return pinned
    return {
        key: offer.pin if pin == old and _can(offer, key, workflow=workflow) else pin
        for key, pin in pinned.items()
    }


def _can(offer: Offer, key: str, *, workflow: Workflow | None) -> bool:
    kind, _, name = key.partition(":")
    if kind == "action":
        return offer.card.action(name) is not None
    step = workflow.step(name) if workflow else None
    if step is None or not matches(offer.card.version, step.version_range):
        return False
    if step.role is StepRole.EXECUTE:
        return not step.action or offer.card.action(step.action) is not None
    return ROLE_OF_STEP[step.role] in offer.card.roles


def _choosable(workflow: Workflow | None, catalog: Catalog) -> list[str]:
    """The actions among which is chosen while the session runs, as far as its contract allows."""
    if workflow is None:
        return list(catalog.actions())
    if not any(step.plan or step.role is StepRole.PLAN for step in workflow.steps):
        return []
    return [action for action in catalog.actions() if workflow.contract.allows(action)]


def offer_for_step(step: Step, catalog: Catalog, *, labels: dict[str, str]) -> Offer | None:
    """The component of a step: the one it names, else the one that can do it."""
    if step.component:
        return catalog.version(step.component, step.version_range)
    if step.role is StepRole.EXECUTE:
        return offer_for_action(step.action, catalog, labels=labels) if step.action else None
    names = catalog.names_with_role(ROLE_OF_STEP[step.role])
    return catalog.version(names[0]) if names else None


def offer_for_action(action: str, catalog: Catalog, *, labels: dict[str, str]) -> Offer | None:
    """The one component of this action; None when nobody, or several without a choice, offer it."""
    chosen = labels.get(f"{CHOICE}{action}")
    names = catalog.names_with_action(action)
    if chosen is not None:
        return catalog.version(chosen) if chosen in names else None
    return catalog.version(names[0]) if len(names) == 1 else None
