"""A reflector that invents: the record says so, training waits, and a review lets it in (R16)."""

import json
from pathlib import Path
from time import monotonic
from typing import Any

from acp_spec.model.grounding import Grounding, GroundingVerdict, Review
from gateway.stores.reader import TrajectoryReader
from gateway.tests.e2e.client import Client
from gateway.tests.e2e.stranger import READ, Stranger, card, serving
from gateway.tests.served import Served

DELIVERED_S = 30.0
WORKFLOW = """
workflow: told
version: 1.0.0
steps:
  - {name: plan, role: plan, component: teller}
  - {name: act, role: execute, plan: plan}
  - {name: judge, role: reflect, component: teller, input_mapping: {goal: input.query}}
output: judge.output
"""
BALANCE = '{"output": {"account": "1000000001", "balance": 1250.10, "currency": "GBP"}}'


def _plan(body: str) -> str:
    goal = {"id": "look", "action": "ledger.look"}
    return json.dumps({"plan": {"sub_goals": [goal]}})


def _reflect(body: str) -> str:
    """Says as the balance whatever the goal of the session is."""
    asked = json.loads(body)
    (call,) = asked["calls"]
    said = asked["goal"]
    sources = [f"/calls/{call['call_id']}/output/{name}" for name in ("balance", "currency")]
    claim = {"text": said, "sources": sources}
    return json.dumps({"verdict": "ACCEPT", "output": {"answer": said}, "claims": [claim]})


def _teller() -> Stranger:
    roles = ("PLANNER", "EXECUTOR", "REFLECTOR")
    answers = {"plan": _plan, "execute": lambda _: BALANCE, "reflect": _reflect}
    return Stranger(card("teller", *roles, actions={"ledger.look": READ}), answers)


def _told(client: Client, said: str) -> str:
    found = client.run("told", json.dumps({"query": said})).json
    assert found["status"] == "SUCCEEDED", found
    return str(found["session_id"])


def _trained_on(data_dir: Path, *, read: int, unreviewed: int) -> dict[str, Grounding | None]:
    """What training would get, once that many sessions are delivered."""
    deadline = monotonic() + DELIVERED_S
    while True:
        reader = TrajectoryReader(data_dir)
        found = {one.session_id: one.grounding for one in reader}
        if (len(found), reader.counts.unreviewed) == (read, unreviewed):
            return found
        assert monotonic() < deadline, (found, reader.counts)


def test_what_a_reflector_invents_waits_for_a_person_and_then_has_their_label(
    client: Client, served: Served
) -> None:
    with serving(_teller()) as teller:
        client.register(teller.url)
        client.put_workflow(WORKFLOW)
        honest = _told(client, "The balance is £1,250.10.")
        invented = _told(client, "The balance is £1,350.10.")
    told: dict[str, Any] = client.trajectory(invented)
    (claim,) = told["grounding"]["claims"]
    assert claim["verdict"] == "CONTRADICTED"
    assert "1,350.10" in claim["reason"]
    assert "is 1250.10" in claim["reason"]
    quality = {row["name"]: row for row in told["rewards"]["quality"]}
    assert quality["grounding"]["value"] == 0.0
    fine = _trained_on(served.data_dir, read=1, unreviewed=1)[honest]
    assert fine is not None
    assert [one.verdict for one in fine.claims] == [GroundingVerdict.SUPPORTED]

    review = {"kind": "VALIDATION", "score": 0.0, "author": "ann", "comment": "made up"}
    assert client.post(f"/v1/sessions/{invented}/feedback", review).status in (200, 201)
    reviewed = _trained_on(served.data_dir, read=2, unreviewed=0)[invented]
    assert reviewed is not None
    assert (reviewed.review, reviewed.label) == (Review.DONE, 0.0)
    assert reviewed.penalties == 1, "a review does not take the charge back"
