"""Values over the ends of a gateway: refused, collected, reviewed, known by the next version."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from acp_spec.sdk.cli import Exit
from gateway.cli.semantics import app
from gateway.tests.e2e.client import Client
from gateway.tests.e2e.stranger import READ, Stranger, card, serving
from gateway.tests.served import Served

WORKFLOW = """
workflow: desk
version: 1.0.0
steps:
  - {name: act, role: execute, component: strange-desk, action: route, input_mapping: {intent: input.intent}}
output: act.output
contract:
  semantics:
    domains:
      intent: {values: {ORDER_STATUS_QUERY: [track_order], REFUND: [money back]}}
    fields:
      - {in: input, at: /intent, domain: intent}
      - {in: output, action: route, at: /label, domain: intent}
"""  # noqa: E501
Serve = Callable[..., Served]


@pytest.fixture
def desk() -> Iterator[Stranger]:
    """A component that says back what it was asked, or what it was told to say."""

    def route(body: str) -> str:
        intent = json.loads(body)["arguments"]["intent"]
        said = "wher is my stuff" if intent == "REFUND" else intent
        return json.dumps({"output": {"label": said}})

    made = Stranger(card("strange-desk", "EXECUTOR", actions={"route": READ}), {"execute": route})
    with serving(made) as one:
        yield one


def acp(served: Served, *words: str) -> Result:
    return CliRunner().invoke(app, [*words, "--gateway", served.url])


def test_a_value_is_mapped_or_refused_collected_over_a_kill_and_learnt_by_a_review(
    serve: Serve, desk: Stranger
) -> None:
    served = serve()
    with Client(served.url) as client:
        client.register(desk.url)
        client.put_workflow(WORKFLOW)
        view = client.run("desk", '{"n":0.10,"intent":"Track-Order"}').json
        assert view["output"] == {"label": "ORDER_STATUS_QUERY"}, view
        record = client.trajectory(view["session_id"])
        assert record["input"] == {"n": 0.10, "intent": "ORDER_STATUS_QUERY"}
        assert record["input_mapped"] == [
            {
                "at": "/intent",
                "domain": "intent",
                "from": "Track-Order",
                "to": "ORDER_STATUS_QUERY",
                "how": "SYNONYM",
                "confidence": 1.0,
            }
        ]
        refused = client.post("/v1/sessions", {"workflow": "desk", "input": {"intent": "gimme"}})
        assert (refused.status, refused.reason) == (422, "SEMANTIC_MISMATCH")
        assert "input/intent: 'gimme' is not in the domain 'intent'" in refused.message
        failed = client.run("desk", '{"intent":"REFUND"}').json
        assert failed["error"]["reason"] == "SEMANTIC_MISMATCH"
        metrics = client.get("/metrics").text
        assert 'acp_semantic_values_total{how="REFUSED",workflow="desk"} 2.0' in metrics
    served.kill()

    served = serve()
    with Client(served.url) as client:
        client.register(desk.url)
        assert "desk" in acp(served, "review").output
        rows = [
            json.loads(line) for line in acp(served, "review", "desk", "--json").output.splitlines()
        ]
        said = {(row["unknown"]["field"], row["unknown"]["value"]) for row in rows}
        assert said == {
            ("input/intent", "gimme"),
            ("output of route/label", "wher is my stuff"),
        }
        accepted = acp(
            served, "review", "desk", "--accept", "gimme=REFUND",
            "--accept", "wher is my stuff=ORDER_STATUS_QUERY",
        )  # fmt: skip
        assert accepted.exit_code == Exit.OK, accepted.output
        assert "desk@1.1.0 is stored" in accepted.output
        assert acp(served, "review", "desk", "--json").output == ""
        still = client.post("/v1/sessions", {"workflow": "desk", "input": {"intent": "gimme"}})
        assert still.reason == "SEMANTIC_MISMATCH", "a stored version never changes"
        view = client.run("desk@1.1.0", '{"intent":"GIMME"}').json
        assert view["output"] == {"label": "ORDER_STATUS_QUERY"}
        audit = client.get("/v1/audit").json["entries"]
        assert [one["action"] for one in audit][-1] == "semantics.accept"
        assert audit[-1]["details"]["base"] == "1.0.0"


def test_a_review_that_cannot_be_says_why_and_changes_nothing(serve: Serve, desk: Stranger) -> None:
    served = serve()
    with Client(served.url) as client:
        client.register(desk.url)
        client.put_workflow(WORKFLOW)
        path = "/v1/semantics/desk/synonyms"

        def accept(**synonym: str) -> tuple[int, str]:
            asked = {"domain": "intent", "value": "x", "means": "REFUND", **synonym}
            reply = client.post(path, {"synonyms": [asked]})
            return reply.status, reply.message

        assert client.get("/v1/semantics/nobody").status == 404
        assert accept(domain="intend") == (
            400,
            "synonyms[0].domain: there is no 'intend'; there are: intent",
        )
        assert accept(means="REFOUND")[0] == 400
        assert accept(value=" ")[0] == 400
        status, message = accept(value="Order Status Query")
        assert status == 400
        assert "nobody could tell which is meant" in message
        assert accept(value="Money-Back") == (400, "desk@1.0.0 knows all of these already")
        assert client.post(path, {"synonyms": []}).status == 400
        assert [one["version"] for one in client.get("/v1/workflows").json["workflows"]] == [
            "1.0.0"
        ]
        assert acp(served, "review", "nobody").exit_code == Exit.NOT_FOUND
        assert acp(served, "review", "desk", "--accept", "nothing").exit_code == Exit.USAGE
        assert acp(served, "review", "desk", "--accept", "y=REFUND").exit_code == Exit.USAGE
        refused = client.post("/v1/sessions", {"workflow": "desk", "input": {"intent": "horse"}})
        assert refused.status == 422
        assert acp(served, "review", "desk", "--dismiss", "horse").exit_code == Exit.OK
        assert client.get("/v1/semantics/desk").json["values"] == []


def test_what_only_a_deleted_session_said_is_forgotten_with_it(
    serve: Serve, desk: Stranger
) -> None:
    served = serve()
    with Client(served.url) as client:
        client.register(desk.url)
        client.put_workflow(WORKFLOW)
        gone = client.run("desk", '{"intent":"REFUND"}').json
        (kept,) = client.get("/v1/semantics/desk").json["values"]
        assert kept["unknown"]["sessions"] == [gone["session_id"]]
        assert client.delete(f"/v1/sessions/{gone['session_id']}").status == 204
        assert client.get("/v1/semantics/desk").json["values"] == []


def test_a_model_that_is_not_there_keeps_a_gateway_from_starting_and_says_why(
    tmp_path: Path,
) -> None:
    flags = ("--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0")
    done = subprocess.run(
        [sys.executable, "-m", "gateway", "serve", "--data-dir", str(tmp_path), *flags],
        capture_output=True,
        text=True,
        check=False,
        env={
            **os.environ,
            "ACP_SEMANTICS_NEAREST": "embedding",
            "ACP_SEMANTICS_MODEL_DIR": str(tmp_path / "none"),
        },
    )
    assert done.returncode == Exit.USAGE, done.stderr
    assert "none is not a directory" in done.stderr
