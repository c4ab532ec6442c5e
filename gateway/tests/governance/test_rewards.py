"""Rewards as people meet them: rules put while it runs, late feedback in them, kept over a restart.

Real processes all the way. A rules file is changed under the gateway's eyes.
"""

import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from acp_spec.sdk.cli import Exit
from gateway.cli.rewards import app as rewards_command
from gateway.tests.e2e.client import Client
from gateway.tests.e2e.stranger import READ, Stranger, card, serving
from gateway.tests.served import Served, serve_gateway

RULES = "/v1/rewards/rules"
ONE = """
workflow: fees
version: 1.0.0
steps: [{name: act, role: execute, component: fees, action: quote}]
output: act.output
"""
STARS = """
rewards: fees
version: %s
rules:
  - {name: stars, kind: outcome, each: feedback, value: feedback.score}
  - {name: tries, kind: cost, each: attempt, part: step, cost: 0.5}
"""
DEADLINE_S = 30.0
NAMELESS = b"rewards: r\nversion: 1.0.0\nrules: [{name: a, kind: outcome, value: nobody}]"
WRONG = (
    (b"", "the file is empty"),
    (b"\xff\xfe", "UTF-8"),
    (b"rewards: [", "YAML"),
    (NAMELESS, "3:41: rules[0].value: unknown name 'nobody'"),
)

Start = Callable[..., Served]


@pytest.fixture(scope="module")
def fees() -> Iterator[Stranger]:
    stranger = Stranger(card("fees", "EXECUTOR", actions={"quote": READ}), {"execute": answer})
    with serving(stranger):
        yield stranger


@pytest.fixture(scope="module")
def reader() -> Iterator[Stranger]:
    """A reflector that finds the same in every comment."""
    stranger = Stranger(card("reader", "REFLECTOR"), {"reflect": understood})
    with serving(stranger):
        yield stranger


def understood(body: str) -> str:
    return '{"verdict": "ACCEPT", "output": {"tags": ["WRONG_AMOUNT"]}}'


def answer(body: str) -> str:
    return '{"output": 1}'


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    started: list[Served] = []

    def begin(**environ: str) -> Served:
        one = serve_gateway(data_dir=tmp_path / "d", log_file=tmp_path / "log", environ=environ)
        started.append(one)
        return one

    yield begin
    for one in started:
        one.stop()


def command(*words: str) -> Any:
    return CliRunner().invoke(rewards_command, [*words, "--json"])


def rate(client: Client, session_id: str, score: float) -> None:
    body = {"kind": "RATING", "score": score, "author": "ann"}
    assert client.post(f"/v1/sessions/{session_id}/feedback", body).status < 300


def vector(client: Client, session_id: str) -> Any:
    return client.trajectory(session_id)["rewards"].get("vector")


def comments(client: Client, session_id: str) -> Any:
    return client.trajectory(session_id)["rewards"]["comments"]


def until(look: Callable[[], bool]) -> None:
    """The gateway does it by itself; how fast is measured elsewhere."""
    give_up_at = time.monotonic() + DEADLINE_S
    while not look():
        assert time.monotonic() < give_up_at, "it never happened"
        threading.Event().wait(0.02)


def replace(file: Path, text: str) -> None:
    """At once: whoever looks at the file never sees half of it, nor an empty one."""
    new = file.with_suffix(".new")
    new.write_text(text)
    new.replace(file)


def lines(data_dir: Path) -> list[Any]:
    """Whole lines of the trajectory log."""
    text = "".join(f.read_text() for f in sorted((data_dir / "trajectories").rglob("*.jsonl")))
    return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]


def test_rules_are_put_while_it_runs_and_late_feedback_is_in_the_rewards_and_the_log(
    start: Start, fees: Stranger, reader: Stranger, tmp_path: Path
) -> None:
    rules = tmp_path / "rules.yaml"
    rules.write_text(STARS % "1.0.0")
    served = start(ACP_REWARDS_REFLECTOR="reader@1.0.0")
    with Client(served.url) as client:
        client.register(fees.url)
        client.register(reader.url)
        client.put_workflow(ONE)
        session_id = client.run("fees").json["session_id"]
        assert vector(client, session_id) is None, "without rules all is as given"
        put = command("put", str(rules), "--gateway", served.url)
        assert put.exit_code == Exit.OK, put.output
        assert json.loads(put.stdout)["holds"]["version"] == "1.0.0"
        rate(client, session_id, 0.25)
        found = vector(client, session_id)
        assert found["session"]["quality"] == {"value": 0.25, "weight": 1.0}
        assert [step["operational"] for step in found["step"]] == [-0.5]
        shown = json.loads(command("show", session_id, "--gateway", served.url).stdout)
        assert shown["vector"] == found

        words = {"kind": "COMMENT", "comment": "the fee is not what I pay", "author": "ann"}
        assert client.post(f"/v1/sessions/{session_id}/feedback", words).status < 300
        until(lambda: comments(client, session_id)[0]["by"] == "reader@1.0.0")
        found = vector(client, session_id)

        def is_logged() -> bool:
            last = [one for one in lines(tmp_path / "d") if one["session_id"] == session_id][-1:]
            return bool(last) and last[0]["rewards"].get("vector") == found

        until(is_logged)
    served.stop()
    again = start()
    with Client(again.url) as client:
        assert client.get(RULES).json["holds"]["version"] == "1.0.0"
        assert comments(client, session_id)[0]["tags"] == ["WRONG_AMOUNT"], "it was journaled"
        rate(client, session_id, 0.75)
        assert vector(client, session_id)["session"]["quality"]["value"] == 0.75
        for body, says in WRONG:
            reply = client.call("PUT", RULES, body=body)
            assert (reply.status, says in reply.text) == (400, True), reply.text
        assert client.get(RULES).json["holds"]["version"] == "1.0.0"
        actions = [entry["action"] for entry in client.get("/v1/audit").json["entries"]]
        assert "rewards.rules.changed" in actions
        dropped = command("drop", "--gateway", again.url)
        assert json.loads(dropped.stdout).get("holds") is None
        assert vector(client, session_id) is None


def test_a_file_that_becomes_wrong_keeps_the_rules_that_held_and_says_why(
    start: Start, tmp_path: Path
) -> None:
    rules = tmp_path / "rules.yaml"
    rules.write_text(STARS % "1.0.0")
    served = start(ACP_REWARDS_RULES_FILE=str(rules), ACP_REWARDS_RELOAD_MS="20")
    with Client(served.url) as client:

        def page() -> Any:
            return client.get(RULES).json

        until(lambda: bool(page().get("holds")))
        replace(rules, (STARS % "1.1.0").replace("kind: cost", "kind: coast"))
        until(lambda: bool(page().get("refused")))
        assert page()["holds"]["version"] == "1.0.0"
        assert "'coast' is not one of outcome, cost, shaping" in page()["refused"]["problems"][0]
        replace(rules, STARS % "1.1.0")
        until(lambda: page()["holds"]["version"] == "1.1.0")
        refused = client.call("PUT", RULES, body=(STARS % "2.0.0").encode())
        assert (refused.status, refused.reason) == (400, "RULES_IN_A_FILE")


def test_the_command_checks_a_file_without_any_gateway(tmp_path: Path) -> None:
    rules = tmp_path / "rules.yaml"
    rules.write_text(STARS % "1.0.0")
    assert json.loads(command("check", str(rules)).stdout) == {"valid": True}
    rules.write_text((STARS % "1.0.0").replace("feedback.score", "feedback.scor"))
    wrong = command("check", str(rules))
    assert wrong.exit_code == Exit.FAILED
    (problem,) = json.loads(wrong.stdout)["problems"]
    assert (problem["line"], problem["path"]) == (5, "rules[0].value")
    assert command("check", str(tmp_path / "none.yaml")).exit_code == Exit.USAGE
