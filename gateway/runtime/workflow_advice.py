"""How a workflow fits those who are registered now: what refuses it, what is only worth knowing.

Two components with one action are refused unless the step chooses (SPEC 9.6): the gateway never
guesses who moves money. A component that is not there yet may come; that is a note.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from acp_spec.model.enums import ROLE_OF_STEP, StepRole
from acp_spec.model.session import Problem
from gateway.engine.catalog import Catalog
from gateway.engine.definition import Step, Workflow
from gateway.governance import sandbox_demands

NOTE = "note: "


@dataclass(frozen=True, slots=True)
class Advice:
    """`refusals` must be mended before the file is stored; `notes` need not be."""

    refusals: tuple[Problem, ...] = ()
    notes: tuple[Problem, ...] = ()


def advice(workflow: Workflow, catalog: Catalog) -> Advice:
    """What the steps need, held against the catalog."""
    refusals: list[Problem] = []
    notes: list[Problem] = []
    for index, step in enumerate(workflow.steps):
        found = (*_findings(step, catalog), *_sandboxes(step, catalog, workflow=workflow))
        for field, message, refuses in found:
            problem = Problem(
                line=step.line,
                column=step.column,
                path=f"steps[{index}].{field}",
                message=message if refuses else NOTE + message,
            )
            (refusals if refuses else notes).append(problem)
    return Advice(tuple(refusals), tuple(notes))


def _findings(step: Step, catalog: Catalog) -> Iterator[tuple[str, str, bool]]:
    """(field, message, whether it refuses)."""
    if step.component:
        yield from _named(step, catalog)
    elif step.action:
        yield from _by_action(step, catalog)
    elif step.role is not StepRole.EXECUTE and not catalog.names_with_role(ROLE_OF_STEP[step.role]):
        role = ROLE_OF_STEP[step.role].value
        yield "role", f"no component with the role {role} is registered now", False


def _sandboxes(
    step: Step, catalog: Catalog, *, workflow: Workflow
) -> Iterator[tuple[str, str, bool]]:
    """A component that would be refused at its first call; another version of it may come."""
    demands = workflow.contract.sandbox
    if demands is None or not step.action:
        return
    names = (step.component,) if step.component else catalog.names_with_action(step.action)
    for name in names:
        offer = catalog.version(name, step.version_range)
        unheld = offer and sandbox_demands.refusal(demands, offer.card, action=step.action)
        if unheld:
            yield "action", unheld.message, False


def _named(step: Step, catalog: Catalog) -> Iterator[tuple[str, str, bool]]:
    offer = catalog.version(step.component, step.version_range)
    if offer is None:
        wanted = f" in the range {step.version_range}" if step.version_range else ""
        yield "component", f"{step.component!r}{wanted} is not registered now", False
        return
    role = ROLE_OF_STEP[step.role]
    if role not in offer.card.roles:
        yield "role", f"{offer.pin} does not have the role {role.value}", False
    if step.action and offer.card.action(step.action) is None:
        known = ", ".join(action.name for action in offer.card.actions) or "none"
        yield "action", f"{offer.pin} does not offer {step.action!r}; it has: {known}", False


def _by_action(step: Step, catalog: Catalog) -> Iterator[tuple[str, str, bool]]:
    names = catalog.names_with_action(step.action)
    if not names:
        yield "action", f"no registered component offers {step.action!r} now", False
    elif len(names) > 1:
        offered = ", ".join(names)
        yield "action", f"{step.action!r} is offered by {offered}: name one as `component`", True
