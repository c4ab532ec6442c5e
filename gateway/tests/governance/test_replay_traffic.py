"""Recorded traffic through a candidate combination, by the command: pass, fail, and why."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from acp_spec.sdk.cli import Exit
from gateway.cli.replay_traffic import app
from gateway.tests.e2e.client import Client
from gateway.tests.governance.desk import Desk, desk, failing, good, slow, wrong
from gateway.tests.governance.test_rollouts import posted_once
from gateway.tests.served import Served, serve_gateway

CALLERS = 24


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("replays")
    one = serve_gateway(data_dir=folder / "data", log_file=folder / "log", environ={})
    yield one
    one.stop()


@pytest.fixture(scope="module")
def recorded(served: Served, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    """A desk that served some callers on its first versions, and their trajectories."""
    with Client(served.url) as client, desk(client, "past") as one:
        for _ in range(CALLERS):
            one.serve()
        for version, advise in (
            ("2.0.0", good),
            ("2.1.0", failing),
            ("2.2.0", wrong),
            ("2.3.0", slow),
        ):
            one.hire(version, advise)
        folder = tmp_path_factory.mktemp("trajectories")
        lines = [json.dumps(client.trajectory(v["session_id"])) for v in one.replies]
        (folder / "past.jsonl").write_text("\n".join(lines) + "\n")
        one.folder = folder
        yield one


def replay(one: Desk, version: str, *more: str) -> Result:
    words = ["--workflow", "past", "--candidate", f"past@{version}", "--from", str(one.folder)]
    return CliRunner().invoke(app, [*words, "--gateway", one.client.url, "--json", *more])


def figures(result: Result) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(result.stdout)["verdict"]["figures"]
    return found


def test_an_equal_version_passes(recorded: Desk, tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    result = replay(recorded, "2.0.0", "--latency-slack-ms", "150", "--report", str(report))
    assert result.exit_code == Exit.OK, result.output
    assert json.loads(report.read_bytes()) == json.loads(result.stdout)
    verdict = json.loads(result.stdout)["verdict"]
    assert (verdict["pairs"], verdict["uncovered"]) == (CALLERS, 0)
    found = figures(result)
    assert found["equal"]["replayed"] == 1.0
    assert found["success"]["interval"]["low"] < 0.0 < found["success"]["interval"]["high"]
    posted_once(recorded)


@pytest.mark.parametrize(
    ("version", "figure"), [("2.1.0", "success"), ("2.2.0", "equal"), ("2.3.0", "latency")]
)
def test_a_bad_version_fails_by_the_figure_that_is_bad(
    recorded: Desk, version: str, figure: str
) -> None:
    result = replay(recorded, version, "--latency-slack-ms", "150")
    assert result.exit_code == Exit.FAILED
    broken = [name for name, one in figures(result).items() if not one["passed"]]
    assert figure in broken
    if figure == "equal":
        fields = json.loads(result.stdout)["verdict"]["fields"]
        assert fields == {"/answer": CALLERS}
    posted_once(recorded)


def test_a_limit_can_be_wider_and_fields_can_be_ignored(recorded: Desk) -> None:
    result = replay(recorded, "2.2.0", "--ignore", "/answer", "--latency-slack-ms", "150")
    assert result.exit_code == Exit.OK, result.output


def test_only_some_and_only_those_of_the_workflow(recorded: Desk) -> None:
    verdict = json.loads(replay(recorded, "2.0.0", "--limit", "5").stdout)["verdict"]
    assert verdict["pairs"] == 5
    words = ["--workflow", "other", "--candidate", "past@2.0.0", "--from", str(recorded.folder)]
    result = CliRunner().invoke(app, [*words, "--gateway", recorded.client.url, "--json"])
    assert result.exit_code == Exit.FAILED, "nothing was compared"
    assert json.loads(result.stdout)["skipped"] == {"of another workflow": CALLERS}


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("--candidate", "past@9.9.9"), Exit.NOT_FOUND),
        (("--candidate", "past"), Exit.USAGE),
        (("--candidate", "past-books@1.0.0"), Exit.OK),
    ],
)
def test_a_combination_that_cannot_be_is_told(
    recorded: Desk, words: tuple[str, ...], code: Exit
) -> None:
    result = CliRunner().invoke(
        app,
        [
            *("--workflow", "past", "--from", str(recorded.folder), *words),
            *(
                "--gateway",
                recorded.client.url,
                "--json",
                "--latency-slack-ms",
                "5000",
                "--limit",
                "2",
            ),
        ],
    )
    assert result.exit_code == code, result.output


def test_there_is_nothing_to_read(recorded: Desk, tmp_path: Path) -> None:
    words = ["--workflow", "past", "--candidate", "past@2.0.0", "--from", str(tmp_path / "no")]
    result = CliRunner().invoke(app, [*words, "--gateway", recorded.client.url])
    assert result.exit_code == Exit.USAGE


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"session_id": ""}, 400),
        ({"session_id": "nobody"}, 400),
        ({"status": "DREAMING"}, 400),
        ({"calls": [{}]}, 400),
        ({"labels": {f"l{n}": "" for n in range(100)}}, 400),
        ({"calls": 7}, 400),
    ],
)
def test_a_record_that_is_none_is_a_fault_of_the_caller_and_sends_nothing(
    recorded: Desk, change: dict[str, object], status: int
) -> None:
    trajectory = recorded.client.trajectory(recorded.replies[0]["session_id"])
    body = {"workflow": "past", "candidates": ["past@2.0.0"], "trajectory": trajectory | change}
    reply = recorded.client.post("/v1/replays", body)
    assert reply.status == status, reply.text
    posted_once(recorded)


def test_nonsense_inside_a_record_is_an_answer_nobody_finds(recorded: Desk) -> None:
    trajectory = recorded.client.trajectory(recorded.replies[0]["session_id"])
    for row in trajectory["calls"]:
        row |= {"sent_at": "yesterday", "arguments": [[[[]]]], "output": None}
    body = {"workflow": "past", "candidates": ["past@2.0.0"], "trajectory": trajectory}
    reply = recorded.client.post("/v1/replays", body)
    assert reply.status == 200, reply.text
    assert reply.json["uncovered"] == ["post: past.post"]
    posted_once(recorded)


def test_a_replay_is_gone_when_it_has_told_what_it_had_to_tell(recorded: Desk) -> None:
    trajectory = recorded.client.trajectory(recorded.replies[0]["session_id"])
    body = {"workflow": "past", "candidates": ["past@2.0.0"], "trajectory": trajectory}
    gone = recorded.client.post("/v1/replays", body).json["session_id"]
    assert recorded.client.get(f"/v1/sessions/{gone}").status == 404
    kept = recorded.client.post("/v1/replays", body | {"keep": True}).json["session_id"]
    shown = recorded.client.trajectory(kept)
    assert shown["twin_of"] == trajectory["session_id"]
    assert shown["rollouts"][0]["rollout"] == "replay"


def test_a_proposal_gets_the_replays_figures_from_the_gateway_itself(recorded: Desk) -> None:
    """What a rule of the board may bound, such as `verdict.figures.success.difference`."""
    change = {"kind": "MAJOR_VERSION", "subject": "component:past@2"}
    opened = recorded.client.post("/v1/proposals", {"change": change, "title": "replayed"}).json
    asked = {"kind": "REPLAY", "workflow": "past", "candidates": ["past@2.2.0"], "sessions": 5}
    path = f"/v1/proposals/{opened['proposal']['proposal_id']}/evidence"
    told = recorded.client.post(path, asked, prefer="wait=60")
    assert told.status == 202, told.text
    (evidence,) = told.json["proposal"]["evidence"]
    found = evidence["figures"]
    assert (evidence["exit_code"], found["verdict.passed"], found["verdict.pairs"]) == (1, 0.0, 5.0)
    assert found["verdict.figures.success.difference"] == 0.0
    assert found["verdict.figures.equal.replayed"] == 0.0
    posted_once(recorded)
