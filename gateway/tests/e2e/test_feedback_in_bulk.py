"""Many judgements in one request: each for itself, on disk when answered, in the log as well."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import Any

import pytest
from typer.testing import CliRunner

from gateway.cli.rewards import app
from gateway.stores.reader import TrajectoryReader
from gateway.tests.e2e.client import Client
from gateway.tests.e2e.stranger import serving
from gateway.tests.reviewing import HONEST, Reviewer, teller
from gateway.tests.served import Served

Serve = Callable[..., Served]
IN_THE_LOG_S = 60.0


@contextmanager
def _desk(serve: Serve, folder: Path) -> Iterator[tuple[Served, Reviewer]]:
    """A gateway on this folder, with the workflow whose sessions are judged."""
    served = serve(data_dir=folder)
    with serving(teller()) as component, Client(served.url) as client:
        reviewer = Reviewer(client)
        reviewer.register(component.url)
        reviewer.put_workflow()
        yield served, reviewer


def _judgement(session_id: str, author: str, **said: object) -> dict[str, Any]:
    given = {"kind": "RATING", "score": 0.5, "author": author, "feedback_id": author, **said}
    return {"session_id": session_id, "feedback": given}


def _authors(reviewer: Reviewer, session_id: str) -> list[str]:
    record = reviewer.get(f"/v1/sessions/{session_id}/trajectory").json
    return sorted(row["feedback"]["author"] for row in record.get("feedback", ()))


def test_each_is_taken_or_refused_for_itself_and_what_was_taken_survives_a_kill(
    serve: Serve, folder: Path
) -> None:
    with _desk(serve, folder) as (served, desk):
        one, other = desk.tell(HONEST), desk.tell(HONEST)
        asked = [
            _judgement(one, "ann"),
            _judgement("01HZZZZZZZZZZZZZZZZZZZZZZZ", "ann"),
            _judgement(other, "bo", target={"step": "nowhere"}),
            _judgement(other, "bo"),
            _judgement(one, "cy", kind="rating"),
            _judgement(one, "dee", score=None),
            _judgement(one, "ann"),
        ]
        reply = desk.post("/v1/feedback", {"feedback": asked})
        assert reply.status == 200, reply.text
        results = reply.json["results"]
        assert (reply.json["taken"], reply.json["refused"]) == (4, 3)
        assert [one.get("error", {}).get("reason", "") for one in results] == [
            *("", "NOT_FOUND", "NOT_FOUND", "", "", "INVALID_REQUEST", ""),
        ]
        assert results[0]["feedback_id"] == results[-1]["feedback_id"] == "ann"
        assert [one["session_id"] for one in results] == [one["session_id"] for one in asked]
        served.kill()

    with _desk(serve, folder) as (_, desk):
        assert _authors(desk, one) == ["ann", "cy"]
        assert _authors(desk, other) == ["bo"]
        deadline = monotonic() + IN_THE_LOG_S
        while _in_the_log(folder, one) != ["ann", "cy"]:
            assert monotonic() < deadline, _in_the_log(folder, one)


def _in_the_log(folder: Path, session_id: str) -> list[str]:
    found: list[str] = []
    for trajectory in TrajectoryReader(folder):
        if trajectory.session_id == session_id:
            found = sorted(row.feedback.author for row in trajectory.feedback)
    return found


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ({"feedback": []}, "send 1 to 1000"),
        ({"feedback": [{"session_id": "x", "feedback": {"kind": "SHRUG"}}]}, "feedback[0]"),
        ({"feedback": [{"feedback": {"kind": "RATING"}}]}, "session_id"),
        ({}, "feedback"),
        ({"feedback": [_judgement("x", "ann")] * 1_001}, "1001"),
    ],
)
def test_what_is_no_list_of_judgements_is_refused_with_its_place(
    client: Client, body: object, named: str
) -> None:
    reply = client.post("/v1/feedback", body)
    assert (reply.status, reply.reason) == (400, "INVALID_REQUEST")
    assert named in reply.json["error"]["message"]


def test_a_file_of_judgements_is_given_and_its_wrong_lines_are_told(
    serve: Serve, folder: Path, tmp_path: Path
) -> None:
    with _desk(serve, folder) as (served, desk):
        session_id = desk.tell(HONEST)
        lines = [json.dumps(_judgement(session_id, f"a{number:04}")) for number in range(700)]
        lines[7] = '{"session_id": "x"'
        lines[9] = json.dumps(_judgement("nobody", "ann"))
        file = tmp_path / "said.jsonl"
        file.write_bytes("\n".join([*lines, ""]).encode() + b'{"feedback": "\xff"}\n')
        command = ["give", str(file), "--gateway", served.url]
        told = CliRunner().invoke(app, [*command, "--json"])
        assert told.exit_code == 1, told.output
        found = json.loads(told.stdout)
        assert (found["taken"], found["refused"]) == (698, 3)
        assert [one["place"].rpartition(":")[2] for one in found["errors"]] == ["8", "10", "701"]
        assert found["errors"][1]["error"]["reason"] == "NOT_FOUND"
        again = CliRunner().invoke(app, command)
        assert "698 judgements taken, 3 refused" in again.stdout, "the same again is taken"
        assert len(_authors(desk, session_id)) == 698
