"""Which component version a session intends to use, fixed at its opening (SPEC 9.6)."""

from acp_spec.model.enums import Role
from gateway.engine.pins import pins
from gateway.engine.tests.stage import action, card, catalog_of, workflow_of

TEXT = """
workflow: w
version: 1.0.0
steps:
  - {name: plan, role: plan}
  - {name: act, role: execute, plan: plan}
  - {name: fee, role: execute, action: quote}
  - {name: tax, role: execute, component: fees@^1.0, action: tax}
"""
PLANNER = card("planner", roles=(Role.PLANNER,))
FEES = card("fees", action("quote"), action("tax"))
NEWER = card("fees", action("quote"), action("tax"), version="2.1.0")
RIVAL = card("rival", action("quote"))


def test_every_step_and_action_that_somebody_serves_has_its_pin() -> None:
    assert pins(workflow_of(TEXT), catalog_of(PLANNER, FEES), labels={}) == {
        "step:plan": "planner@1.0.0",
        "step:fee": "fees@1.0.0",
        "step:tax": "fees@1.0.0",
        "action:quote": "fees@1.0.0",
        "action:tax": "fees@1.0.0",
    }


def test_a_range_holds_and_without_one_the_newest_version_is_meant() -> None:
    found = pins(workflow_of(TEXT), catalog_of(PLANNER, FEES, NEWER), labels={})
    assert (found["step:tax"], found["step:fee"]) == ("fees@1.0.0", "fees@2.1.0")


def test_the_active_version_goes_before_a_newer_one() -> None:
    catalog = catalog_of(PLANNER, FEES, NEWER, active={"fees": "1.0.0"})
    assert pins(workflow_of(TEXT), catalog, labels={})["action:quote"] == "fees@1.0.0"


def test_an_ambiguous_action_has_no_pin_until_a_label_chooses() -> None:
    catalog = catalog_of(PLANNER, FEES, RIVAL)
    found = pins(workflow_of(TEXT), catalog, labels={})
    assert "action:quote" not in found
    assert "step:fee" not in found
    chosen = pins(workflow_of(TEXT), catalog, labels={"action:quote": "rival"})
    assert chosen["action:quote"] == chosen["step:fee"] == "rival@1.0.0"


def test_a_label_that_names_somebody_else_chooses_nobody() -> None:
    found = pins(workflow_of(TEXT), catalog_of(PLANNER, FEES), labels={"action:quote": "planner"})
    assert "action:quote" not in found


def test_what_nobody_serves_yet_has_no_pin() -> None:
    assert pins(workflow_of(TEXT), catalog_of(), labels={}) == {}
    assert pins(None, catalog_of(FEES), labels={}) == {
        "action:quote": "fees@1.0.0",
        "action:tax": "fees@1.0.0",
    }


def test_a_workflow_without_a_plan_pins_no_action_that_it_never_calls() -> None:
    """Registering something unrelated changed the lineage of every session once."""
    text = "workflow: w\nversion: 1.0.0\nsteps:\n  - {name: act, role: execute, action: quote}\n"
    assert pins(workflow_of(text), catalog_of(PLANNER, FEES), labels={}) == {
        "step:act": "fees@1.0.0"
    }
