"""Sessions as clients use them: waiting, keys, versions, pages, feedback days later, by hand."""

import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from time import monotonic
from typing import Any

import pytest

from gateway.tests.e2e.client import Client, opening
from gateway.tests.e2e.stranger import READ, Stranger, card, member
from gateway.tests.served import Served

Start = Callable[..., dict[str, Any]]
Serve = Callable[[Stranger], Stranger]
WORKFLOW = """
workflow: echoed
version: 1.0.0
steps:
  - {name: plan, role: plan, component: echo}
  - {name: act, role: execute, plan: plan}
  - {name: judge, role: reflect, component: echo}
output: act.results[0].output
"""
HELD = """
workflow: held-back
version: 1.0.0
steps:
  - {name: act, role: execute, component: gate, action: gate.pass}
output: act.output
"""


@pytest.fixture(scope="module", autouse=True)
def echo(client: Client, start_components: Start) -> None:
    client.register(start_components("echo")["echo"]["url"])
    client.put_workflow(WORKFLOW)


@pytest.fixture
def gate(client: Client, stranger: Serve) -> Iterator[threading.Event]:
    """Calls of the workflow `held-back` are answered once this is set."""
    opened = threading.Event()

    def execute(body: str) -> str:
        opened.wait(20)
        return '{"output": "passed"}'

    peer = Stranger(card("gate", "EXECUTOR", actions={"gate.pass": READ}), {"execute": execute})
    component = client.register(stranger(peer).url)["component_id"]
    client.put_workflow(HELD)
    yield opened
    opened.set()
    client.delete(f"/v1/components/{component}")


# ---- opening and waiting -------------------------------------------------------------------------


def test_an_opening_is_201_and_a_wait_that_is_over_in_time_is_200_with_the_session(
    client: Client,
) -> None:
    opened = client.post("/v1/sessions", opening("echoed", '{"a":1}'))
    assert opened.status == 201
    assert set(opened.json) == {"session_id", "lineage_id", "state_version", "status"}
    assert opened.json["lineage_id"].startswith(opened.json["session_id"] + ".")
    waited = client.post("/v1/sessions", opening("echoed", '{"a":1}'), prefer="wait=20")
    assert waited.status == 200
    assert waited.json["status"] == "SUCCEEDED"
    assert waited.json["output"] == {"a": 1}
    assert [step["status"] for step in waited.json["steps"]] == ["SUCCEEDED"] * 3


def test_a_wait_that_is_too_short_answers_201_in_time(
    client: Client, gate: threading.Event
) -> None:
    begun = monotonic()
    reply = client.post("/v1/sessions", opening("held-back", "1"), prefer="wait=1")
    assert reply.status == 201, reply.text
    assert monotonic() - begun > 0.9, "the gate is held for longer than anybody waits here"
    gate.set()
    assert client.ended(reply.json["session_id"])["output"] == "passed"


def test_a_session_key_opens_one_session_however_often_and_at_once_it_is_used(
    client: Client,
) -> None:
    body = opening("echoed", '{"n": 1}', session_key="key-1")

    def ask(_: int) -> tuple[int, str]:
        with Client(client.url) as one:
            reply = one.post("/v1/sessions", body)
            return reply.status, reply.json["session_id"]

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(ask, range(24)))
    assert len({session for _, session in answers}) == 1
    assert sorted(status for status, _ in answers) == [200] * 23 + [201]
    other = client.post("/v1/sessions", opening("echoed", '{"n": 2}', session_key="key-1"))
    assert other.status == 409, other.text
    assert "key-1" in other.message


def test_a_read_may_ask_for_a_version_and_is_told_when_there_is_none_yet(
    client: Client, gate: threading.Event
) -> None:
    opened = client.post("/v1/sessions", opening("held-back", "1")).json
    path = f"/v1/sessions/{opened['session_id']}"
    assert client.get(path, min_version=opened["state_version"]).status == 200
    ahead = client.get(path, min_version="0.999.0")
    assert (ahead.status, ahead.reason) == (409, "STALE_STATE")
    assert client.get(path, min_version="soon").status == 400
    gate.set()
    ended = client.ended(opened["session_id"])
    assert client.get(path, min_version=ended["state_version"]).status == 200


def test_pages_by_status_and_workflow_name_every_session_once(client: Client) -> None:
    opened = [client.open("echoed", str(number)) for number in range(7)]
    for session_id in opened:
        client.ended(session_id)
    seen: list[str] = []
    query = {"workflow": "echoed", "status": "SUCCEEDED", "limit": "3"}
    page = client.get("/v1/sessions", **query).json
    while True:
        seen += [one["session_id"] for one in page["sessions"]]
        if "next" not in page:
            break
        assert len(page["sessions"]) == 3
        page = client.get("/v1/sessions", **query, after=page["next"]).json
    assert len(seen) == len(set(seen))
    assert set(opened) <= set(seen)
    assert client.get("/v1/sessions", status="SOMETIMES").status == 400
    assert client.get("/v1/sessions", workflow="nobody").json.get("sessions", []) == []


def test_a_workflow_is_found_by_name_by_version_and_by_range(client: Client) -> None:
    for reference in ("echoed", "echoed@1.0.0", "echoed@^1", "echoed@>=1.0"):
        assert client.run(reference, "1").json["workflow"] == "echoed@1.0.0"
    client.put_workflow(WORKFLOW.replace("1.0.0", "1.1.0"))
    assert client.run("echoed", "1").json["workflow"] == "echoed@1.0.0"
    assert client.run("echoed@^1.1", "1").json["workflow"] == "echoed@1.1.0"
    assert client.post("/v1/workflows/echoed/versions/1.1.0/activate").status == 200
    assert client.run("echoed", "1").json["workflow"] == "echoed@1.1.0"
    client.post("/v1/workflows/echoed/versions/1.0.0/activate")


# ---- feedback ------------------------------------------------------------------------------------


def rating(score: float, time: str, **fields: object) -> dict[str, object]:
    return {"kind": "RATING", "score": score, "author": "ann", "time": time, **fields}


def test_feedback_is_taken_days_later_and_after_a_restart_and_the_last_by_its_time_wins(
    serve: Callable[..., Served], start_components: Start
) -> None:
    served = serve()
    started = start_components("echo")
    with Client(served.url) as client:
        client.register(started["echo"]["url"])
        client.put_workflow(WORKFLOW)
        view = client.run("echoed", '"x"').json
        path = f"/v1/sessions/{view['session_id']}/feedback"
        late = rating(0.9, "2026-01-05T00:00:00Z", feedback_id="f-2")
        first = client.post(path, late)
        assert first.status in (200, 201), first.text
        assert first.json["feedback_id"] == "f-2"
        assert client.post(path, late).json == first.json
    served.stop()
    with Client(serve().url) as client:
        earlier = client.post(path, rating(0.1, "2025-12-31T00:00:00Z")).json
        told = client.trajectory(view["session_id"])
        scores = [row["feedback"]["score"] for row in told["feedback"]]
        assert scores == [0.9], "the later judgement stands, whichever came last"
        assert client.session(view["session_id"])["status"] == "SUCCEEDED"
        plan, execution, feedback = earlier["state_version"].split(".")
        assert f"{plan}.{execution}" == view["state_version"].rpartition(".")[0]
        assert int(feedback) > int(view["state_version"].rpartition(".")[2])


def test_feedback_is_about_a_call_a_step_or_the_whole_and_each_stands_beside_the_others(
    client: Client,
) -> None:
    session_id = client.run("echoed", "1").json["session_id"]
    call_id = client.trajectory(session_id)["calls"][0]["call_id"]
    path = f"/v1/sessions/{session_id}/feedback"
    for target in ({}, {"step": "act"}, {"call_id": call_id}):
        for kind in ("VALIDATION", "outcome"):
            body = {"kind": kind, "score": 1, "target": target, "author": "bo"}
            assert client.post(path, body).status in (200, 201)
    told = client.trajectory(session_id)["feedback"]
    assert len(told) == 6
    assert {row["feedback"]["kind"] for row in told} == {"VALIDATION", "OUTCOME"}


# ---- by hand -------------------------------------------------------------------------------------


def test_a_manual_session_is_run_step_by_step_and_finished_by_its_client(client: Client) -> None:
    session_id = client.open("echoed", '{"q": 1}', mode="MANUAL")
    path = f"/v1/sessions/{session_id}"
    planned = client.post(
        f"{path}/steps",
        {"step_type": "PLAN", "payload": {"goal": "g", "input": {"q": 1}}, "component": "echo"},
        prefer="wait=20",
    )
    assert planned.status == 200, planned.text
    (goal,) = planned.json["response"]["plan"]["sub_goals"]
    call = f'{{"action":{json.dumps(goal["action"])},"arguments":{{"exact":0.10}}}}'
    body = f'{{"step_type":"TOOL","step_key":"mine","payload":{call}}}'
    done = client.post(f"{path}/steps", body, prefer="wait=20")
    assert done.status == 200, done.text
    assert done.json["status"] == "SUCCEEDED"
    assert member(member(done.text, "response"), "output").replace(" ", "") == '{"exact":0.10}'
    again = client.post(f"{path}/steps", body, prefer="wait=20")
    assert (again.status, again.json["call_id"]) == (200, done.json["call_id"])
    changed = client.post(f"{path}/steps", body.replace("0.10", "0.11"), prefer="wait=20")
    assert changed.status == 409
    assert client.get(f"{path}/steps/mine").json["call_id"] == done.json["call_id"]
    finished = client.post(f"{path}/finish", {"output": {"sum": 1}})
    assert finished.status == 200, finished.text
    assert finished.json["status"] == "SUCCEEDED"
    assert client.session(session_id)["output"] == {"sum": 1}
    refused = client.post(f"{path}/steps", {"step_type": "TOOL", "payload": {"action": "echo"}})
    assert 400 <= refused.status < 500
    rows = client.trajectory(session_id)["calls"]
    assert [row["role"] for row in rows] == ["PLAN", "EXECUTE"]


def test_a_manual_step_that_takes_longer_than_its_wait_is_polled(
    client: Client, gate: threading.Event
) -> None:
    session_id = client.open("held-back", "1", mode="MANUAL")
    body = {"step_type": "TOOL", "step_key": "s", "payload": {"action": "gate.pass"}}
    path = f"/v1/sessions/{session_id}"
    begun = client.post(f"{path}/steps", body, prefer="wait=1")
    assert begun.status == 202, begun.text
    assert begun.json["status"] == "RUNNING"
    assert client.get(f"{path}/steps/s").status == 202
    early = client.post(f"{path}/finish", {"output": 1})
    assert 400 <= early.status < 500
    gate.set()
    for _ in client.events(session_id):
        if client.get(f"{path}/steps/s").status == 200:
            break
    settled = client.get(f"{path}/steps/s")
    assert settled.json["response"]["output"] == "passed"
    assert client.post(f"{path}/finish", {"output": 1}).status == 200


def test_steps_by_hand_are_refused_where_the_workflow_runs_them(
    client: Client, gate: threading.Event
) -> None:
    session_id = client.open("held-back", "1")
    step = {"step_type": "TOOL", "payload": {"action": "echo"}}
    for word, body in (("steps", step), ("finish", {"output": 1})):
        reply = client.post(f"/v1/sessions/{session_id}/{word}", body)
        assert reply.status == 400, reply.text
        assert reply.json["error"]["code"] == "FAILED_PRECONDITION"
        assert "MANUAL" in reply.message
    gate.set()
    client.ended(session_id)
