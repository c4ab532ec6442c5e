"""What a tenant's sessions said, and how its workflows stand, is told to its operators only."""

import json
from collections.abc import Callable
from typing import Final

import pytest

from gateway.tests.access.conftest import MINE, THEIRS, Guarded
from gateway.tests.e2e.client import Client, Reply
from gateway.tests.e2e.stranger import READ, Stranger, card

WORKFLOW: Final = """
workflow: guarded-desk
version: 1.0.0
steps:
  - {name: act, role: execute, component: guarded-desk, action: look, input_mapping: {x: input.x}}
output: act.output
contract:
  semantics:
    domains: {intent: {values: {REFUND: [], TRACK: []}}}
    fields: [{in: input, at: /x, domain: intent}]
  fallback: {after_failures: 1, rules: [{name: all, output: {by: rules}}]}
"""
SECRET: Final = "my-own-secret-wish"
BROKEN: Final = (500, '{"error":{"code":"INTERNAL","reason":"INTERNAL","message":"no"}}')
Ask = Callable[..., Reply]


@pytest.fixture(scope="module")
def ask(guarded: Guarded, stranger: Callable[[Stranger], Stranger]) -> Ask:
    """One request by a tenant's token; the desk is there and broken."""
    made = card("guarded-desk", "EXECUTOR", actions={"look": READ})
    desk = stranger(Stranger(made, {"execute": lambda _: BROKEN}))

    def send(tenant: str, method: str, path: str, body: object = None, **headers: str) -> Reply:
        bearer = {"authorization": f"Bearer {guarded.token(tenant)}"}
        text = body if isinstance(body, str) else json.dumps(body)
        sent = None if body is None else text.encode()
        with Client(guarded.served.url) as client:
            return client.call(method, path, body=sent, **bearer, **headers)

    registered = send(MINE, "POST", "/v1/components", {"url": desk.url, "lease_seconds": 600})
    assert registered.status in (200, 201), registered.text
    path = "/v1/workflows/guarded-desk/versions/1.0.0"
    put = send(MINE, "PUT", path, WORKFLOW, content_type="application/yaml")
    assert put.status in (200, 201), put.text
    return send


def open_session(ask: Ask, tenant: str, x: str) -> Reply:
    body = {"workflow": "guarded-desk", "input": {"x": x}}
    return ask(tenant, "POST", "/v1/sessions", body, prefer="wait=20")


def test_the_values_and_the_standing_of_one_tenant_are_not_the_others(ask: Ask) -> None:
    assert open_session(ask, MINE, SECRET).status == 422
    assert open_session(ask, MINE, "refund").json["status"] == "FAILED"
    assert open_session(ask, MINE, "refund").json["fell_back"]
    assert SECRET in ask(MINE, "GET", "/v1/semantics/guarded-desk").text
    for path in ("/v1/semantics", "/v1/semantics/guarded-desk"):
        assert SECRET not in ask(THEIRS, "GET", path).text
    dismissed = {"values": [{"domain": "intent", "value": SECRET}]}
    theirs = ask(THEIRS, "POST", "/v1/semantics/guarded-desk/dismiss", dismissed)
    assert theirs.json == {"settled": 0}
    assert SECRET in ask(MINE, "GET", "/v1/semantics/guarded-desk").text
    standing = {
        tenant: ask(tenant, "GET", "/v1/fallbacks/guarded-desk").json["standing"]
        for tenant in (MINE, THEIRS)
    }
    assert standing == {MINE: "RULES", THEIRS: "AGENTIC"}


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/v1/semantics", None),
        ("GET", "/v1/semantics/guarded-desk", None),
        ("POST", "/v1/semantics/guarded-desk/synonyms", {"synonyms": []}),
        ("POST", "/v1/semantics/guarded-desk/dismiss", {"values": []}),
        ("GET", "/v1/fallbacks", None),
        ("GET", "/v1/fallbacks/guarded-desk", None),
        ("POST", "/v1/fallbacks/guarded-desk/drill", {}),
    ],
)
def test_only_operators_may_look_or_judge(
    ask: Ask, guarded: Guarded, method: str, path: str, body: object
) -> None:
    assert ask("submit", method, path, body).status == 403
    assert ask(MINE, method, path, body).status in (200, 400)
    sent = None if body is None else json.dumps(body).encode()
    with Client(guarded.served.url) as client:
        assert client.call(method, path, body=sent).status == 401
