"""A workflow held against its own contract: what the two say must fit each other.

Only what can be known from the file: which components a plan will call is known when it runs.
"""

from collections.abc import Callable, Iterator
from typing import Final

from acp_spec.codec.yaml_tree import Mapping
from gateway.engine.definition import Workflow
from gateway.expressions.field_reader import Field, FieldReader, hint
from gateway.governance.contract import OnOutputBreach
from gateway.governance.sla import OnBreach

CONTRACT: Final = "contract"
"""The workflow's key under which its contract stands."""

RULES_DO_NOT: Final = (
    ", beside `steps`; the rules of the contract's own `fallback` answer new sessions"
    " while all of the workflow fails, they do not end one that runs"
)
"""Two things are called fallback: whoever wrote one of them is told which one is missing."""

Finding = tuple[str, str]
"""(path within the contract, what is wrong)."""


def check_contract(reader: FieldReader, found: Field, *, workflow: Workflow) -> None:
    """Note what does not fit, at its place in the contract."""
    for check in CHECKS:
        for path, message in check(workflow):
            place = _at(found, path)
            reader.problem(place.place, f"{found.path}.{path}", message=message)


def _other_name(workflow: Workflow) -> Iterator[Finding]:
    named = workflow.contract.workflow
    if named and named != workflow.name:
        yield "workflow", f"this is the contract of {named!r}, the workflow is {workflow.name!r}"


def _actions(workflow: Workflow) -> Iterator[Finding]:
    """A static step whose action is not allowed could never run."""
    for step in workflow.steps:
        if step.action and not workflow.contract.allows(step.action):
            yield "allowed_actions", f"the step {step.name!r} calls {step.action!r}: list it here"


def _fallbacks(workflow: Workflow) -> Iterator[Finding]:
    """Whoever wants to fall back needs something to fall back to."""
    if workflow.fallback is not None:
        return
    message = "there is nothing to fall back to: write `fallback: {output: ...}` in the workflow"
    if workflow.contract.fallback is not None:
        message += RULES_DO_NOT
    if workflow.contract.on_output_breach is OnOutputBreach.FALLBACK:
        yield "on_output_breach", message
    for sla in workflow.contract.sla:
        if sla.on_breach is OnBreach.FALLBACK:
            yield f"sla.{sla.component}", message


def _components(workflow: Workflow) -> Iterator[Finding]:
    """A component that no step can ever call, where every step names its own."""
    named = {step.component for step in workflow.steps}
    if "" in named:
        return
    for sla in workflow.contract.sla:
        if sla.component not in named:
            advice = hint(sla.component, named)
            yield f"sla.{sla.component}", f"no step calls the component {sla.component!r}{advice}"


CHECKS: Final[tuple[Callable[[Workflow], Iterator[Finding]], ...]] = (
    _other_name,
    _actions,
    _fallbacks,
    _components,
)


def _at(found: Field, path: str) -> Field:
    """The field of the contract that a finding is about, else the contract itself."""
    section, _, name = path.partition(".")
    tree = found.value.get(section) if isinstance(found.value, Mapping) else None
    if tree is not None and name and isinstance(tree, Mapping):
        tree = tree.get(name) or tree
    return found if tree is None else Field(path, tree.place, tree)
