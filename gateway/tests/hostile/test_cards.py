"""Cards and answers that would hold the gateway: schemas that unfold, values that fit nowhere."""

import json
from collections.abc import Callable
from typing import Any, Final

import pytest

from acp_spec.codec.tests.test_schema_check import BOMBS
from gateway.tests.e2e.client import Client, Reply
from gateway.tests.e2e.stranger import READ, Stranger, card
from gateway.tests.hostile.conftest import Target
from gateway.tests.hostile.served_others import others_are_served

NUMBERS: Final = "[" + ",".join(map(str, range(400_000))) + "]"
Make = Callable[[Stranger], Stranger]


def registered(client: Client, stranger: Make, peer: Stranger) -> Reply:
    return client.post("/v1/components", {"url": stranger(peer).url, "lease_seconds": 3600})


def run(client: Client, name: str, value: str) -> Any:
    client.put_workflow(
        f"""
workflow: run-{name}
version: 1.0.0
steps:
  - name: act
    role: execute
    component: {name}
    action: {name}.look
    input_mapping: {{l: input}}
output: act.output
"""
    )
    return client.run(f"run-{name}", value).json


@pytest.mark.parametrize("bomb", sorted(BOMBS))
@pytest.mark.parametrize("place", ["input_schema", "output_schema"])
def test_a_card_whose_schema_unfolds_without_measure_is_refused_at_once(
    client: Client, gateway: Target, stranger: Make, bomb: str, place: str
) -> None:
    example = {"arguments": {"a": 1}, "output": {"a": 1}, "safe": True}
    action = {**READ, place: BOMBS[bomb], "examples": [example]}
    peer = Stranger(card("bomber", "EXECUTOR", actions={"bomber.look": action}), {})
    with others_are_served(gateway):
        reply = registered(client, stranger, peer)
    assert (reply.status, reply.reason) == (422, "CONTRACT_VIOLATION"), reply.text
    assert place in reply.message


def test_arguments_that_fit_nowhere_hold_nobody_up(
    client: Client, gateway: Target, stranger: Make
) -> None:
    schema = {"properties": {"l": {"items": {"type": "string"}}}}
    actions = {"picky.look": {**READ, "input_schema": schema}}
    peer = Stranger(card("picky", "EXECUTOR", actions=actions), {"execute": lambda _: "{}"})
    assert registered(client, stranger, peer).status == 201
    with others_are_served(gateway):
        view = run(client, "picky", NUMBERS)
    assert view["error"]["reason"] == "CONTRACT_VIOLATION", view["error"]
    assert peer.bodies("execute") == []
    assert len(json.dumps(view["error"])) < 2_000


def test_output_that_fits_nowhere_holds_nobody_up(
    client: Client, gateway: Target, stranger: Make
) -> None:
    schema = {"anyOf": [{"items": {"type": "string"}}, {"type": "object"}]}
    actions = {"sloppy.look": {**READ, "output_schema": schema}}
    answers = {"execute": lambda _: f'{{"output":{NUMBERS}}}'}
    peer = Stranger(card("sloppy", "EXECUTOR", actions=actions), answers)
    assert registered(client, stranger, peer).status == 201
    with others_are_served(gateway):
        view = run(client, "sloppy", "1")
    assert view["error"]["reason"] == "CONTRACT_VIOLATION", view["error"]
    assert len(json.dumps(view["error"])) < 2_000


@pytest.mark.parametrize(
    "fields",
    [
        {"name": "n" * 100_000},
        {"version": "1." * 50_000},
        {"acp_versions": ["1.0"] * 10_000},
        {"roles": ["EXECUTOR"] * 10_000},
        {"actions": [{"name": f"a{n}"} for n in range(20_000)]},
        {"actions": [{"name": "a", "description": "x" * 2_000_000}]},
        {"actions": [{"name": "a", "input_schema": {"enum": ["x" * 100] * 9_000}}]},
        {"actions": [{"name": "a", "examples": [{"arguments": 1}] * 20_000}]},
        {"actions": [{"name": "a", "timeout_ms": 10**18}]},
        {"actions": [{"name": "a", "timeout_ms": -1}]},
        {"actions": [{"name": "a\0b"}]},
        {"limits": {"max_concurrency": 10**18, "max_rate_per_s": 1e308}},
        {"limits": {"max_request_bytes": -1}},
        {"kind": "everything"},
        {"docs_url": "javascript:alert(1)"},
    ],
    ids=lambda fields: next(iter(fields)),
)
def test_an_odd_card_is_taken_or_is_refused_shortly(
    client: Client, gateway: Target, stranger: Make, fields: dict[str, Any]
) -> None:
    peer = Stranger({**card("odd", "EXECUTOR", actions={"odd.look": READ}), **fields}, {})
    with others_are_served(gateway):
        reply = registered(client, stranger, peer)
    assert reply.status in (201, 422), reply.text[:500]
    assert len(reply.text) < 20_000 or reply.status == 201
    if reply.status == 201:
        client.delete(f"/v1/components/{reply.json['component_id']}")
    gateway.assert_well()
