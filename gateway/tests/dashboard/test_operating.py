"""Rollouts, the registry and the review of values in a real browser, over a real gateway."""

import json
from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from gateway.tests.dashboard.conftest import Looking
from gateway.tests.dashboard.looking import SCHEMES, Look, Scheme
from gateway.tests.e2e.client import Client
from gateway.tests.e2e.stranger import READ, Stranger, card

MARKUP = "<img src=x onerror=window.ran=1> \u202eevil"
WORKFLOW = """
workflow: desk
version: 1.0.0
steps:
  - {name: act, role: execute, component: clerk, action: route, input_mapping: {intent: input.intent}}
output: act.output
contract:
  semantics:
    domains:
      intent: {values: {ORDER_STATUS_QUERY: [track_order], REFUND: [money back]}}
    fields:
      - {in: input, at: /intent, domain: intent}
"""  # noqa: E501


def _clerk(version: str) -> Stranger:
    told = card("clerk", "EXECUTOR", actions={"route": READ}) | {"version": version}
    return Stranger(told, {"execute": lambda _: '{"output": {"done": true}}'})


@pytest.fixture(scope="module")
def desk(client: Client, stranger: Callable[[Stranger], Stranger]) -> Client:
    """A workflow that knows two intents, and a clerk of two versions whose newer is tried."""
    client.register(stranger(_clerk("1.0.0")).url)
    client.put_workflow(WORKFLOW)
    client.register(stranger(_clerk("2.0.0")).url)
    subject = {"kind": "COMPONENT", "name": "clerk", "candidate": "2.0.0"}
    started = client.post("/v1/rollouts", {"subject": subject, "rollout": "clerk-two"})
    assert started.status == 201, started.text
    promoted = client.post("/v1/rollouts/clerk-two/promote", {"reason": MARKUP})
    assert promoted.status == 200, promoted.text
    return client


def _refused(client: Client, *intents: str) -> None:
    """Sessions that say what no domain knows."""
    for intent in intents:
        reply = client.post("/v1/sessions", {"workflow": "desk", "input": {"intent": intent}})
        assert reply.reason == "SEMANTIC_MISMATCH"


def test_a_rollout_shows_its_stage_its_evidence_and_what_was_known_before(
    look: Look, desk: Client
) -> None:
    page = look.at("#/rollouts", "Rollouts")
    one = page.get_by_role("region", name="Rollout clerk-two")
    expect(one).to_contain_text("clerk 1.0.0 → 2.0.0")
    expect(one).to_contain_text("running")
    expect(one.get_by_role("listitem").filter(has_text="shadow")).to_have_attribute(
        "aria-current", "step"
    )
    expect(one).to_contain_text("Waits for")
    expect(one.get_by_role("group", name="Evidence in shadow", exact=True)).to_contain_text("open")
    one.get_by_text("canary until").click()
    expect(one).to_contain_text("Evidence in canary, when it was left")
    expect(one).to_contain_text("<img src=x onerror=window.ran=1> ⟨U+202E⟩evil")
    assert page.evaluate("window.ran") is None


def test_the_registry_shows_who_is_there_with_breakers_and_the_workflows(
    look: Look, desk: Client
) -> None:
    page = look.at("#/registry", "Registry")
    instances = page.get_by_role("group", name="Instances, table")
    for version in ("1.0.0", "2.0.0"):
        row = instances.get_by_role("row", name=f"clerk@{version}")
        expect(row).to_contain_text("active")
        expect(row).to_contain_text("closed")
    workflow = page.get_by_role("group", name="Workflows, table").get_by_role("row", name="desk")
    expect(workflow.first).to_contain_text("1.0.0")
    look.sees("No breach stands, and none has ended lately.")
    look.sees("No component was called under a contract's SLA lately.")


def test_values_are_decided_by_keyboard_and_make_one_new_version(look: Look, desk: Client) -> None:
    _refused(desk, "gimme", "horse", MARKUP)
    page = look.at("#/semantics?workflow=desk", "Semantics")
    look.sees("<img src=x onerror=window.ran=1> ⟨U+202E⟩evil")
    keys = page.keyboard
    order = [one["unknown"]["value"] for one in desk.get("/v1/semantics/desk").json["values"]]
    for value in order:
        if value == "gimme":
            keys.press("m")
            expect(page.get_by_label("What gimme means")).to_be_focused()
            keys.type("REFUND")
            keys.press("Escape")
        else:
            keys.press("d")
        keys.press("j")
    look.sees("3 decided")
    keys.press("Control+Enter")
    look.sees("is stored and knows 1; activate it, or roll it out. 2 dismissed.")
    look.sees("Every value is known")
    versions = desk.get("/v1/workflows/desk/versions").json["workflows"]
    newest = max(one["version"] for one in versions)
    view = desk.run(f"desk@{newest}", json.dumps({"intent": "gimme"})).json
    assert view["status"] == "SUCCEEDED"
    actions = [one["action"] for one in desk.get("/v1/audit").json["entries"]]
    assert {"semantics.accept", "semantics.dismiss"} <= set(actions)
    assert page.evaluate("window.ran") is None


def test_what_cannot_be_meant_is_refused_in_words_and_nothing_is_lost(
    look: Look, desk: Client
) -> None:
    look.refusals.add(400)
    _refused(desk, "pony")
    page = look.at("#/semantics?workflow=desk", "Semantics")
    page.get_by_label("What pony means").fill("REFOUND")
    page.get_by_role("button", name="Send").click()
    look.sees("'REFOUND' is not in the domain")
    expect(page.get_by_label("What pony means")).to_have_value("REFOUND")
    page.get_by_role("button", name="Nothing here").click()
    page.get_by_role("button", name="Send").click()
    look.sees("1 dismissed.")


@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_pages_are_accessible(looking: Looking, desk: Client, scheme: Scheme) -> None:
    _refused(desk, "wher is my order", f"a horse in {scheme}")
    look = looking(scheme=scheme)
    for place, seen in (
        ("#/rollouts", "canary until"),
        ("#/registry", "No breach stands"),
        ("#/semantics?workflow=desk", f"a horse in {scheme}"),
    ):
        look.at(place)
        look.sees(seen)
        look.accessible()
