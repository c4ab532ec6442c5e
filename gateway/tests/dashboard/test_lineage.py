"""Lineage in the browser: from what runs share to a run, to its fellows, to what two differ in."""

from collections.abc import Callable
from typing import NamedTuple

import pytest
from playwright.sync_api import expect

from gateway.stores.records.tests.childhood import patiently
from gateway.tests.dashboard.conftest import Looking
from gateway.tests.dashboard.looking import SCHEMES, Look, Scheme
from gateway.tests.e2e.client import Client
from gateway.tests.e2e.stranger import READ, Stranger, card

WORKFLOW = """
workflow: desk
version: 1.0.0
steps: [{name: act, role: execute, component: clerk, action: serve, input_mapping: {x: input}}]
output: act.output
"""
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
MARKUP = "<img src=x onerror=alert(1)> \u202eevil"


class Desk(NamedTuple):
    """Two runs of one workflow with other inputs; the second one in a trace, and judged."""

    one: str
    two: str


@pytest.fixture(scope="module")
def desk(client: Client, stranger: Callable[[Stranger], Stranger]) -> Desk:
    clerk = Stranger(
        card("clerk", "EXECUTOR", actions={"serve": READ}), {"execute": lambda _: '{"output": 1}'}
    )
    client.register(stranger(clerk).url)
    client.put_workflow(WORKFLOW)
    one = client.open("desk", '{"a":1,"password":"first"}')
    body = b'{"workflow":"desk","input":{"a":2,"password":"second"}}'
    parent = f"00-{TRACE}-00f067aa0ba902b7-01"
    two = client.call("POST", "/v1/sessions", body=body, traceparent=parent).json["session_id"]
    for session in (one, two):
        client.ended(session)
    for _ in patiently():  # the records are there: no page below waits for their start
        if client.post("/v1/records/query", {"sql": "SELECT 1"}).status == 200:
            break
    judged = {"kind": "COMMENT", "comment": MARKUP, "author": "ann"}
    assert client.post(f"/v1/sessions/{two}/feedback", judged).status < 300
    return Desk(one, two)


def test_a_component_version_leads_to_its_runs_and_a_run_to_all_behind_it(
    look: Look, desk: Desk
) -> None:
    look.at("#/lineage", "Lineage")
    look.page.get_by_label("Component").fill("clerk@1.0.0")
    look.page.get_by_role("button", name="Find").click()
    runs = look.page.get_by_role("group", name="Runs, table")
    expect(runs.get_by_role("row")).to_have_count(3)
    look.follows(desk.two)
    look.is_at(f"Lineage of {desk.two}")
    versions = look.page.get_by_role("group", name="Versions, table")
    expect(versions).to_contain_text("step:act")
    expect(versions.get_by_role("link", name="clerk@1.0.0")).to_have_count(2)
    timeline = look.page.get_by_role("link", name="its timeline and payloads")
    expect(timeline).to_have_attribute("href", f"#/sessions/{desk.two}")
    look.sees(TRACE)
    look.sees(f"grep -F {desk.two}")
    expect(look.page.get_by_role("group", name="Calls, table")).to_contain_text("answered")
    feedback = look.page.get_by_role("group", name="Feedback, table")
    expect(feedback).to_contain_text("<img src=x onerror=alert(1)> ⟨U+202E⟩evil")


def test_a_traces_id_and_an_inputs_hash_lead_to_their_runs(look: Look, desk: Desk) -> None:
    look.at(f"#/lineage/{TRACE}", f"Lineage of {TRACE}")
    look.follows(desk.two)
    look.is_at(f"Lineage of {desk.two}")
    digest = look.page.locator("a[href*='input_sha256=']").inner_text()
    look.page.locator("a[href*='input_sha256=']").click()
    look.is_at("Lineage")
    expect(look.page.get_by_label("Input (SHA-256)")).to_have_value(digest)
    expect(look.page.get_by_role("group", name="Runs, table").get_by_role("row")).to_have_count(2)


def test_two_runs_are_held_against_each_other_and_secrets_stay_secret(
    look: Look, desk: Desk
) -> None:
    look.at(f"#/lineage/{desk.one}", f"Lineage of {desk.one}")
    look.page.get_by_label("Hold against another run").fill(desk.two)
    look.page.keyboard.press("Enter")
    look.is_at("Two runs")
    row = look.page.get_by_role("row").filter(has_text="/a").filter(has_text="input")
    expect(row).to_contain_text("1")
    expect(row).to_contain_text("2")
    secret = look.page.get_by_role("row").filter(has_text="/password").filter(has_text="input")
    expect(secret).to_contain_text("***")
    assert "first" not in look.page.content()
    look.sees("They part at act: arguments differ.")
    look.at(f"#/lineage/{desk.one}/against/{desk.one}", "Two runs")
    look.sees("All calls are the same.")
    look.sees("They differ in nothing that is compared")


def test_what_is_not_there_or_cannot_be_asked_says_so(look: Look, desk: Desk) -> None:
    look.refusals |= {400, 404}
    look.at("#/lineage/01ARZ3NDEKTSV4RRFFQ69G5FAV")
    look.sees("Not found")
    look.at("#/lineage?input_sha256=7", "Lineage")
    look.sees("64 hexadecimal digits, as in a lineage")
    look.at("#/lineage?component=nobody", "Lineage")
    look.sees("No run has all of this in common")


@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_pages_of_lineage_are_accessible(looking: Looking, desk: Desk, scheme: Scheme) -> None:
    look = looking(scheme=scheme)
    for place, text in (
        ("#/lineage?component=clerk", desk.two),
        (f"#/lineage/{desk.two}", "Feedback"),
        (f"#/lineage/{desk.one}/against/{desk.two}", "They part at"),
    ):
        look.at(place)
        look.sees(text)
        look.accessible()
