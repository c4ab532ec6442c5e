"""The dashboard of a gateway that demands tokens: who comes in, with what, and what they see."""

import json

import pytest
from playwright.sync_api import expect

from gateway.stores.records.tests.childhood import patiently
from gateway.tests.access.conftest import MINE, THEIRS, Guarded, guarded
from gateway.tests.dashboard.conftest import Looking
from gateway.tests.e2e.client import Client
from gateway.tests.e2e.stranger import READ, Stranger, card, serving
from gateway.tests.reviewing import INVENTED, Reviewer, teller
from gateway.tests.served import Served

__all__ = ["guarded"]
LISTED = "/v1/dashboard/sessions?status=SUCCEEDED"
WORKFLOW = """
workflow: desk
version: 1.0.0
steps: [{name: act, role: execute, component: clerk, action: serve, input_mapping: {x: input}}]
output: act.output
"""


@pytest.fixture(scope="module", autouse=True)
def served(guarded: Guarded) -> Served:
    """Before the browser, whose loop lies over the thread: tokens are made in a loop, too."""
    return guarded.served


@pytest.fixture(scope="module")
def mine(guarded: Guarded) -> str:
    """A session of one tenant, in the records."""
    clerk = Stranger(
        card("clerk", "EXECUTOR", actions={"serve": READ}), {"execute": lambda _: '{"output": 1}'}
    )
    headers = {"authorization": f"Bearer {guarded.token(MINE)}"}
    with serving(clerk), Client(guarded.served.url) as client:
        body = {"url": clerk.url, "transport": "HTTP", "lease_seconds": 3600}
        assert client.post("/v1/components", body, **headers).status in (200, 201)
        place = "/v1/workflows/desk/versions/1.0.0"
        yaml = {"content_type": "application/yaml", **headers}
        assert client.call("PUT", place, body=WORKFLOW.encode(), **yaml).status in (200, 201)
        opening = {"workflow": "desk", "input": {"secret": "of mine"}}
        reply = client.post("/v1/sessions", opening, prefer="wait=30", **headers)
        assert reply.json["status"] == "SUCCEEDED", reply.text
        for _ in patiently():
            listed = client.call("GET", LISTED, body=None, **headers)
            if listed.status == 200 and listed.json.get("items"):
                break
    found: str = reply.json["session_id"]
    return found


def test_a_token_is_asked_for_kept_in_the_tab_and_forgotten_on_signing_out(
    looking: Looking, guarded: Guarded, mine: str
) -> None:
    look = looking()
    look.refusals.add(401)
    page = look.at("#/sessions")
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    look.accessible()
    page.get_by_label("Token").fill("acp_wrong")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("The gateway did not take that token")
    page.get_by_label("Token").fill(guarded.token(MINE))
    page.keyboard.press("Enter")
    expect(page.get_by_role("link", name=mine)).to_be_visible()
    assert page.evaluate("document.cookie") == ""
    assert page.evaluate("JSON.stringify(localStorage)") == "{}"
    assert not [one for one in look.requests if guarded.token(MINE) in one]
    page.reload()
    expect(page.get_by_role("link", name=mine)).to_be_visible()
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    assert page.evaluate("JSON.stringify(sessionStorage)") == "{}"
    expect(page.get_by_role("link", name=mine)).to_have_count(0)


@pytest.mark.parametrize("held", ["expired", "revoked"])
def test_a_token_that_holds_no_more_leads_to_the_form(
    looking: Looking, guarded: Guarded, held: str
) -> None:
    if held == "revoked":
        with Client(guarded.served.url) as client:
            admin = {"authorization": f"Bearer {guarded.token('admin')}"}
            place = f"/v1/tokens/{guarded.tokens['revoked'].info.token_id}"
            assert client.call("DELETE", place, body=None, **admin).status in (204, 404)
    look = looking(token=guarded.token(held))
    look.refusals.add(401)
    page = look.at("#/")
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    expect(page.get_by_role("alert")).to_contain_text("unknown, expired or revoked")


def test_a_token_of_another_scope_says_which_one_is_needed(
    looking: Looking, guarded: Guarded
) -> None:
    look = looking(token=guarded.token("submit"))
    look.refusals.add(403)
    page = look.at("#/sessions", "Sessions")
    expect(page.get_by_role("alert")).to_contain_text("this needs a token with the scope operate")
    look.accessible()
    page.get_by_role("button", name="Use another token").click()
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()


def test_to_another_tenant_what_is_mine_does_not_exist(
    looking: Looking, guarded: Guarded, mine: str
) -> None:
    look = looking(token=guarded.token(THEIRS))
    look.refusals.add(404)
    page = look.at("#/sessions", "Sessions")
    look.sees("No sessions yet.")
    look.at(f"#/sessions/{mine}", f"Session {mine}")
    look.sees("Not found")
    look.at("#/workflows/desk", "Workflow desk")
    look.sees("No session of it ended in this time.")
    look.at("#/", "Overview")
    look.sees("No session in this time")
    assert json.dumps("of mine") not in page.content()
    assert "desk" not in page.inner_text("main")


def test_a_reviewer_needs_no_more_than_annotate_and_sees_their_tenants_queue_only(
    looking: Looking, guarded: Guarded
) -> None:
    with serving(teller()) as component, Client(guarded.served.url) as client:
        desk = Reviewer(client, guarded.token(MINE))
        desk.register(component.url)
        desk.put_workflow()
        session_id = desk.put_up(INVENTED)
    look = looking(token=guarded.token("annotate"))
    page = look.at("#/annotate", "Annotate")
    look.sees("0 of 2 sources open")
    expect(page.get_by_role("link", name=session_id).first).to_be_visible()
    page.keyboard.press("o")
    look.sees("1 of 2 sources open")
    other = looking(token=guarded.token(THEIRS))
    other.at("#/annotate", "Annotate")
    other.sees("Nothing is left for you")
    assert session_id not in other.page.content()
