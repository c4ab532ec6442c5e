"""An operator deletes a version: who uses it keeps it, who ran it can still be read."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from gateway.cli.workflows import app as workflows_command
from gateway.tests.e2e.client import Client
from gateway.tests.e2e.stranger import READ, Stranger, card, serving
from gateway.tests.served import Served, serve_gateway

WORKFLOW = """
workflow: desk
version: {version}
steps: [{{name: act, role: execute, component: clerk, action: serve, input_mapping: {{x: input}}}}]
output: act.output
"""
WAIT_S = 30.0


class Clerk:
    """Answers once `works` is set; `asked` tells that a call has come."""

    def __init__(self) -> None:
        self.works, self.asked = threading.Event(), threading.Event()
        told = card("clerk", "EXECUTOR", actions={"serve": READ})
        self.stranger = Stranger(told, {"execute": self.serve})

    def serve(self, _: str) -> str:
        self.asked.set()
        self.works.wait(WAIT_S)
        return '{"output": 1}'


@contextmanager
def desk(folder: Path) -> Iterator[tuple[Served, Client, Clerk]]:
    """A gateway with versions 1.0.0 (active) and 1.1.0 of one workflow."""
    clerk = Clerk()
    served = serve_gateway(data_dir=folder / "data", log_file=folder / "log", environ={})
    try:
        with Client(served.url) as client, serving(clerk.stranger):
            client.register(clerk.stranger.url)
            for version in ("1.0.0", "1.1.0"):
                client.put_workflow(WORKFLOW.format(version=version))
            yield served, client, clerk
    finally:
        clerk.works.set()
        served.stop()


def path(version: str) -> str:
    return f"/v1/workflows/desk/versions/{version}"


def stored(client: Client) -> list[str]:
    rows: list[Any] = client.get("/v1/workflows").json.get("workflows", [])
    return [one["version"] for one in rows if one["name"] == "desk"]


def test_a_version_that_runs_is_kept_and_once_it_has_ended_deleted_for_everybody_but_its_sessions(
    tmp_path: Path,
) -> None:
    with desk(tmp_path) as (_, client, clerk):
        session = client.open("desk@1.1.0", "1")
        assert clerk.asked.wait(WAIT_S)
        refused = client.delete(path("1.1.0"))
        assert (refused.status, refused.reason) == (400, "WORKFLOW_IN_USE")
        assert "open sessions run it (1)" in refused.message
        clerk.works.set()
        before = client.ended(session)
        assert before["status"] == "SUCCEEDED"
        assert client.delete(path("1.1.0")).status == 204
        assert stored(client) == ["1.0.0"]
        assert client.delete(path("1.1.0")).status == 404
        for reply in (
            client.get(path("1.1.0")),
            client.post("/v1/sessions", {"workflow": "desk@1.1.0", "input": 1}),
            client.post(f"{path('1.1.0')}/activate"),
        ):
            assert (reply.status, reply.reason) == (404, "NOT_FOUND")
        assert client.session(session) == before
        assert client.trajectory(session)["workflow"] == "desk@1.1.0"
        actions = [one["action"] for one in client.get("/v1/audit").json["entries"]]
        assert actions.count("workflow.deleted") == 1

    with desk_again(tmp_path) as client:
        assert stored(client) == ["1.0.0"], "a restart keeps it deleted"
        assert client.session(session) == before
        assert client.trajectory(session)["workflow"] == "desk@1.1.0"
        other = client.call(
            "PUT",
            path("1.1.0"),
            body=WORKFLOW.format(version="1.1.0").encode() + b"# other\n",
            content_type="application/yaml",
        )
        assert (other.status, other.reason) == (409, "ALREADY_EXISTS")
        client.put_workflow(WORKFLOW.format(version="1.1.0"))
        assert stored(client) == ["1.0.0", "1.1.0"], "the same bytes bring it back"


@contextmanager
def desk_again(folder: Path) -> Iterator[Client]:
    served = serve_gateway(data_dir=folder / "data", log_file=folder / "log", environ={})
    try:
        with Client(served.url) as client:
            yield client
    finally:
        served.stop()


def test_what_a_rollout_moves_is_kept_and_the_command_says_so(tmp_path: Path) -> None:
    with desk(tmp_path) as (served, client, clerk):
        clerk.works.set()
        subject = {"kind": "workflow", "name": "desk", "candidate": "1.1.0"}
        begun = client.post("/v1/rollouts", {"subject": subject})
        assert begun.status == 201, begun.text
        place = ("--gateway", served.url)
        run = CliRunner().invoke
        kept = run(workflows_command, ["delete", "desk", "1.1.0", *place])
        assert kept.exit_code != 0
        assert "moves it" in kept.output
        rollout = begun.json["rollout_id"]
        assert client.post(f"/v1/rollouts/{rollout}/rollback").status == 200
        gone = run(workflows_command, ["delete", "desk", "1.1.0", *place, "--json"])
        assert gone.exit_code == 0, gone.output
        assert json.loads(gone.stdout) == {"name": "desk", "version": "1.1.0", "deleted": True}
        assert stored(client) == ["1.0.0"]
        active = run(workflows_command, ["delete", "desk", "1.0.0", *place])
        assert active.exit_code == 0, "the last one may go"
        assert stored(client) == []
