"""Contracts on a real gateway: a breach outlives a restart, a broken input opens nothing, and a
rejected plan is feedback."""

import json
from collections.abc import Callable
from typing import Any, Final

from gateway.tests.e2e.client import Client
from gateway.tests.e2e.stranger import READ, Stranger, card
from gateway.tests.served import Served

Serve = Callable[..., Served]
Begin = Callable[[Stranger], Stranger]
WORKFLOW: Final = """
workflow: kept
version: 1.0.0
steps:
  - {name: plan, role: plan, component: planner}
  - {name: act, role: execute, plan: plan}
output: act.output
fallback: {output: {sorry: true}}
contract:
  input_schema: {type: object, required: [calls], properties: {calls: {type: integer}}}
  allowed_actions: [look]
  plan: {max_calls: 2, on_reject: replan}
  sla:
    looker: {min_success_rate: 0.5, min_samples: 3, window_ms: 600000, on_breach: fallback}
limits: {max_loops: 1}
"""
FAILURE: Final = json.dumps(
    {
        "error": {
            "code": "INTERNAL",
            "reason": "INTERNAL",
            "message": "down",
            "boundary": "COMPONENT",
        }
    }
)


def plan(body: str) -> str:
    """As many calls as the input says; two once it has heard a critique."""
    asked = json.loads(body)
    count = 2 if asked.get("critique") else asked["input"]["calls"]
    goals = [{"id": f"g{n}", "action": "look", "arguments": {"n": n}} for n in range(count)]
    return json.dumps({"plan": {"root_goal": "look", "sub_goals": goals}})


PLANNER: Final = Stranger(card("planner", "PLANNER"), {"plan": plan})


def looker(*, down: bool) -> Stranger:
    look = {"look": READ, "leap": READ}
    answer = (500, FAILURE) if down else '{"output": {"seen": true}, "side_effect": "NONE"}'
    return Stranger(card("looker", "EXECUTOR", actions=look), {"execute": lambda body: answer})


def begin(serve: Serve, *strangers: Stranger) -> Served:
    served = serve()
    with Client(served.url) as client:
        for one in strangers:
            client.register(one.url)
        client.put_workflow(WORKFLOW)
    return served


def test_an_input_that_breaks_the_contract_is_422_with_its_place_and_opens_nothing(
    serve: Serve, stranger: Begin
) -> None:
    served = begin(serve, stranger(PLANNER), stranger(looker(down=False)))
    with Client(served.url) as client:
        body = '{"workflow": "kept", "input": {"calls": "two"}}'
        reply = client.post("/v1/sessions", body)
        assert (reply.status, reply.reason) == (422, "CONTRACT_VIOLATION")
        assert "/calls" in reply.message
        assert client.get("/v1/sessions").json.get("sessions", []) == []


def test_a_rejected_plan_is_feedback_and_the_planner_is_asked_again_with_the_reason(
    serve: Serve, stranger: Begin
) -> None:
    served = begin(serve, stranger(PLANNER), stranger(looker(down=False)))
    with Client(served.url) as client:
        view = client.run("kept", '{"calls": 3}').json
        assert view["status"] == "SUCCEEDED", view
        assert sorted(view["output"]) == ["g0", "g1"]
        record = client.trajectory(view["session_id"])
        (row,) = record["feedback"]
        assert "calls 'look' 3 times; the contract allows 2" in row["feedback"]["comment"]
        assert [len(one["plan"]["sub_goals"]) for one in record["plan"]] == [3, 2]
        asked = json.loads(PLANNER.bodies("plan")[-1])
        assert [action["name"] for action in asked["actions"]] == ["look"]


def test_a_client_that_takes_its_own_steps_gets_no_plan_that_its_contract_rejects(
    serve: Serve, stranger: Begin
) -> None:
    served = begin(serve, stranger(PLANNER), stranger(looker(down=False)))
    with Client(served.url) as client:
        session_id = client.open("kept", '{"calls": 3}', mode="MANUAL")
        steps = f"/v1/sessions/{session_id}/steps"

        def planned(key: str, calls: int) -> dict[str, Any]:
            payload = {"goal": "look", "input": {"calls": calls}}
            body = {"step_type": "PLAN", "step_key": key, "payload": payload}
            reply = client.post(steps, body, prefer="wait=20")
            assert reply.status == 200, reply.text
            found: dict[str, Any] = reply.json
            return found

        refused = planned("too-many", 3)
        assert refused["status"] == "FAILED"
        assert refused["error"]["reason"] == "PLAN_REJECTED"
        assert "calls 'look' 3 times; the contract allows 2" in refused["error"]["message"]
        assert "response" not in refused
        assert client.get(f"{steps}/too-many").json["error"] == refused["error"]
        assert planned("enough", 2)["status"] == "SUCCEEDED"
        record = client.trajectory(session_id)
        (told,) = record["feedback"]
        assert told["feedback"]["author"] == "gateway/plan-guard"
        assert told["feedback"]["target"]["call_id"] == refused["call_id"]
        assert [len(one["plan"]["sub_goals"]) for one in record["plan"]] == [3, 2]
        assert [row["role"] for row in record["calls"]] == ["PLAN", "PLAN"]


def test_a_breach_outlives_a_restart_and_falls_back_until_probes_prove_otherwise(
    serve: Serve, stranger: Begin
) -> None:
    down = stranger(looker(down=True))
    first = begin(serve, stranger(PLANNER), down)
    with Client(first.url) as client:
        for _ in range(3):
            assert client.run("kept", '{"calls": 1}').json["status"] == "FAILED"
        (row,) = client.get("/v1/contracts/breaches").json["breaches"]
        assert (row["component"], row["on_breach"]) == ("looker", "FALLBACK")
        assert "3 of 3 calls failed (50% may)" in row["message"]
        assert "acp_sla_breaches_total{" in client.get("/metrics").text
    first.kill()
    second = begin(serve, PLANNER, down)
    with Client(second.url) as client:
        (again,) = client.get("/v1/contracts/breaches").json["breaches"]
        assert again == row
        asked = len(down.bodies("execute"))
        view = client.run("kept", '{"calls": 1}').json
        probed = len(down.bodies("execute")) - asked
        assert probed <= 1, "after so long a start one probe may be due"
        if not probed:
            assert (view["fell_back"], view["output"]) == (True, {"sorry": True})
        view = client.run("kept", '{"calls": 1}').json
        assert (view["fell_back"], view["output"]) == (True, {"sorry": True})
        assert len(down.bodies("execute")) - asked == probed
