"""A program in a component's sandbox, called by a real gateway: answered, held, refused when the
contract demands what the component does not offer.
"""

import json
from collections.abc import Callable
from typing import Any

import pytest

from gateway.tests.e2e.client import Client

WORKFLOW = """
workflow: {name}
version: 1.0.0
contract:
  sandbox: {{{sandbox}}}
steps:
  - name: run
    role: execute
    component: scratchpad
    action: python.run
    input_mapping: {{source: input.source}}
output: run.output
"""


@pytest.fixture(scope="module")
def pad(client: Client, start_components: Callable[..., dict[str, Any]]) -> Client:
    """A gateway that the scratchpad is registered at, as users start both."""
    client.register(start_components("scratchpad")["scratchpad"]["url"])
    return client


def ended(client: Client, name: str, *, sandbox: str, source: str) -> Any:
    client.put_workflow(WORKFLOW.format(name=name, sandbox=sandbox))
    opened = client.open(name, json.dumps({"source": source}), deadline_ms=60_000)
    return client.ended(opened)


def test_a_program_that_is_held_as_the_contract_demands_is_called(pad: Client) -> None:
    demanded = "python.*: {guards: [MEMORY, NETWORK], max_memory_bytes: 536870912}"
    session = ended(pad, "held", sandbox=demanded, source="result = 6 * 7")
    assert session["status"] == "SUCCEEDED", session
    assert session["output"] == {"result": 42, "printed": ""}


def test_a_program_over_its_limit_fails_its_session_with_the_limits_name(pad: Client) -> None:
    greedy = "result = len([bytes(1 << 20) + b'1' for _ in range(4000)])"
    session = ended(pad, "greedy", sandbox="", source=greedy)
    assert session["status"] == "FAILED"
    (call,) = pad.trajectory(session["session_id"])["calls"]
    assert call["error"]["reason"] == "SANDBOX_LIMIT"
    assert call["error"]["details"]["limit"] == "MEMORY"
    assert call["side_effect"] == "NONE"


def test_what_the_card_does_not_offer_is_refused_and_nothing_is_sent(pad: Client) -> None:
    demanded = "python.run: {guards: [MEMORY_EXACT], max_wall_ms: 100}"
    session = ended(pad, "demanding", sandbox=demanded, source="result = 1")
    assert session["status"] == "FAILED"
    (call,) = pad.trajectory(session["session_id"])["calls"]
    assert call["error"]["reason"] == "SANDBOX_LIMIT"
    assert "MEMORY_EXACT" in call["error"]["message"]
    assert "at most 100 is allowed" in call["error"]["message"]
    assert not call.get("sent_at")
