"""What a workflow is told about those who are registered."""

import pytest

from acp_spec.model.card import Action, Card
from acp_spec.model.enums import Role
from acp_spec.model.sandbox import Sandbox
from gateway.engine.catalog import Catalog, Offer
from gateway.engine.definition import Workflow
from gateway.engine.workflow_file import parse_workflow
from gateway.runtime.workflow_advice import NOTE, advice


def offer(name: str, *actions: str, role: Role = Role.EXECUTOR) -> Offer:
    listed = tuple(Action(name=action) for action in actions)
    return Offer(card=Card(name=name, version="1.0.0", roles=(role,), actions=listed), digest="d")


def workflow(step: str, *, more: str = "") -> Workflow:
    text = f"workflow: w\nversion: 1.0.0\nsteps:\n  - name: one\n{step}output: one.output\n{more}"
    parsed = parse_workflow(text.encode())
    assert isinstance(parsed, Workflow), parsed
    return parsed


BY_ACTION = workflow("    role: execute\n    action: quote\n")
NAMED = workflow("    role: execute\n    component: fees@^1\n    action: quote\n")
PLAN = workflow("    role: plan\n")


def test_two_components_with_one_action_are_refused_and_named() -> None:
    found = advice(BY_ACTION, Catalog((offer("fees", "quote"), offer("rates", "quote"))))
    (problem,) = found.refusals
    assert "fees, rates" in problem.message
    assert (problem.line, problem.path) == (4, "steps[0].action")


def test_a_step_that_names_its_component_is_not_ambiguous() -> None:
    catalog = Catalog((offer("fees", "quote"), offer("rates", "quote")))
    assert advice(NAMED, catalog).refusals == advice(NAMED, catalog).notes == ()


@pytest.mark.parametrize(
    ("given", "catalog", "said"),
    [
        (BY_ACTION, Catalog(), "no registered component offers 'quote'"),
        (NAMED, Catalog(), "'fees' in the range ^1 is not registered"),
        (NAMED, Catalog((offer("fees", "other"),)), "does not offer 'quote'; it has: other"),
        (NAMED, Catalog((offer("fees", "quote", role=Role.PLANNER),)), "role EXECUTOR"),
        (PLAN, Catalog(), "no component with the role PLANNER"),
    ],
)
def test_what_is_not_there_yet_is_only_a_note(given: Workflow, catalog: Catalog, said: str) -> None:
    found = advice(given, catalog)
    assert found.refusals == ()
    (note,) = found.notes
    assert note.message.startswith(NOTE)
    assert said in note.message


def test_a_component_that_the_contracts_sandbox_would_refuse_is_told_before_its_first_call() -> (
    None
):
    demanding = "contract: {sandbox: {quote: {guards: [NETWORK]}}}\n"
    step = "    role: execute\n    component: fees\n    action: quote\n"
    given = workflow(step, more=demanding)
    (note,) = advice(given, Catalog((offer("fees", "quote"),))).notes
    assert "no NETWORK" in note.message
    assert note.path == "steps[0].action"
    held = Action(name="quote", sandbox=Sandbox(guards=("NETWORK",)))
    card = Card(name="fees", version="1.0.0", roles=(Role.EXECUTOR,), actions=(held,))
    assert advice(given, Catalog((Offer(card=card, digest="d"),))).notes == ()


def test_a_workflow_that_everybody_is_there_for_is_told_nothing() -> None:
    assert advice(PLAN, Catalog((offer("planner", role=Role.PLANNER),))).notes == ()
    assert advice(BY_ACTION, Catalog((offer("fees", "quote"),))).notes == ()
