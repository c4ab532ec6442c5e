"""A component process that attached, while the gateway under it is killed and started anew."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from gateway.tests.e2e.client import Client
from gateway.tests.served import Served

WORKFLOW = """
workflow: counted
version: 1.0.0
steps:
  - {name: once, role: execute, component: counted, action: counted.once}
output: once.output.call_id
limits: {deadline_ms: 60000}
"""
STOP_S = 20.0
STORM_KILLS = 6
UNTIL_S = 30.0
GRACES = ("ACP_GRACE_ATTACH_GRACE_MS", "ACP_GRACE_REATTACH_GRACE_MS")
ENVIRON = {
    "ACP_DEADLINES_DEFAULT_TIMEOUT_MS": "40000",
    "ACP_GRACE_DRAIN_GRACE_MS": "300",
    # no busy machine lets a component that comes back be too late
    "ACP_GRACE_ATTACH_GRACE_MS": "60000",
    "ACP_GRACE_REATTACH_GRACE_MS": "60000",
}


@dataclass
class Stage:
    """A gateway that can be started again at the same place, and the component's folder."""

    serve: Callable[..., Served]
    folder: Path
    port: int
    environ: dict[str, str]
    gateway: Served | None = None
    component: subprocess.Popen[bytes] | None = None

    def start_gateway(self) -> Client:
        place = f"127.0.0.1:{self.port}"
        self.gateway = self.serve("--grpc", place, environ=self.environ)
        return Client(self.gateway.url)

    def start_component(self) -> None:
        """Start it and wait for its ready line: it is attached."""
        command = [sys.executable, "-m", "gateway.tests.e2e.attached_counter"]
        with (self.folder / "component.log").open("ab") as log:
            self.component = subprocess.Popen(
                [*command, f"127.0.0.1:{self.port}", str(self.folder)],
                stdout=subprocess.PIPE,
                stderr=log,
            )
        assert self.component.stdout is not None
        line = self.component.stdout.readline()
        assert line, (self.folder / "component.log").read_text(encoding="utf-8")
        assert json.loads(line)["ready"] is True

    def end_component(self, number: signal.Signals) -> int:
        assert self.component is not None
        if self.component.poll() is None:
            self.component.send_signal(number)
        return self.component.wait(STOP_S)

    def kill_gateway(self) -> None:
        assert self.gateway is not None
        self.gateway.kill()

    def open_gate(self) -> None:
        (self.folder / "gate").touch()

    def effects(self) -> list[str]:
        path = self.folder / "effects"
        return path.read_text(encoding="ascii").splitlines() if path.exists() else []


@pytest.fixture
def stage(
    serve: Callable[..., Served], tmp_path: Path, free_port: Callable[[], int]
) -> Iterator[Stage]:
    made = Stage(serve, tmp_path, free_port(), dict(ENVIRON))
    yield made
    if made.component is not None:
        if made.component.poll() is None:
            made.component.kill()
        made.component.wait(STOP_S)
        if made.component.stdout is not None:
            made.component.stdout.close()


def until(condition: Callable[[], bool]) -> None:
    """Ask again until it is so: what happens in other processes has no event here."""
    by = monotonic() + UNTIL_S
    pause = threading.Event()
    while not condition():
        assert monotonic() < by, "it did not happen in time"
        pause.wait(0.02)


def begun(stage: Stage, client: Client, count: int = 1) -> list[str]:
    """Sessions whose handlers have begun."""
    client.put_workflow(WORKFLOW)
    sessions = [client.open("counted", str(n)) for n in range(count)]
    until(lambda: len(stage.effects()) == count)
    return sessions


def until_attached(client: Client) -> None:
    until(lambda: client.get("/v1/components").json.get("components", []) != [])


def attempts(client: Client, session_id: str) -> list[Any]:
    rows: list[Any] = client.trajectory(session_id)["calls"]
    return rows


def test_calls_in_flight_go_on_when_the_gateway_is_killed_under_them(stage: Stage) -> None:
    client = stage.start_gateway()
    stage.start_component()
    sessions = begun(stage, client, count=5)
    stage.kill_gateway()
    client = stage.start_gateway()
    until_attached(client)
    stage.open_gate()
    for session_id in sessions:
        assert client.ended(session_id)["status"] == "SUCCEEDED"
        (row,) = attempts(client, session_id)
        assert (row["attempt"], row["side_effect"]) == (1, "PERFORMED")
    assert len(stage.effects()) == 5


def test_a_cancelled_session_stops_its_handler(stage: Stage) -> None:
    client = stage.start_gateway()
    stage.start_component()
    (session_id,) = begun(stage, client)
    assert client.post(f"/v1/sessions/{session_id}/cancel").status == 202
    assert client.ended(session_id)["status"] == "CANCELLED"
    (row,) = attempts(client, session_id)
    assert row["error"]["reason"] == "CANCELLED"
    assert stage.end_component(signal.SIGTERM) == 0, "nothing runs there any more"


@pytest.mark.long
def test_a_storm_of_kills_does_nothing_twice_and_loses_nothing(stage: Stage) -> None:
    """Sessions are opened all the time; what runs is let through while the gateway is away."""
    client = stage.start_gateway()
    stage.start_component()
    client.put_workflow(WORKFLOW)
    sessions: list[str] = []
    for number in range(STORM_KILLS):
        until_attached(client)
        sessions += [client.open("counted", f'"{number}-{n}"') for n in range(10)]
        if number % 2:
            stage.open_gate()
            client.ended(sessions[-number])
        stage.kill_gateway()
        stage.open_gate()
        (stage.folder / "gate").unlink()
        client = stage.start_gateway()
    stage.open_gate()
    views = [client.ended(session_id) for session_id in sessions]
    rows = [attempts(client, session_id)[0] for session_id in sessions]
    begun_rows = Counter(line.split()[0] for line in stage.effects())
    assert set(begun_rows.values()) == {1}, "nothing began twice"
    for view, row in zip(views, rows, strict=True):
        done = begun_rows[row["call_id"]]
        assert done == 1 if view["status"] == "SUCCEEDED" else done <= 1, (view, row)
    succeeded = sum(view["status"] == "SUCCEEDED" for view in views)
    assert succeeded > len(views) // 2, "calls go on over a kill; only what was never read is lost"


def test_an_answer_of_the_time_without_a_gateway_is_delivered_once(stage: Stage) -> None:
    client = stage.start_gateway()
    stage.start_component()
    (session_id,) = begun(stage, client)
    stage.kill_gateway()
    stage.open_gate()
    client = stage.start_gateway()
    view = client.ended(session_id)
    assert view["status"] == "SUCCEEDED"
    assert stage.effects() == [f"{view['output']} 1"]
    assert len(attempts(client, session_id)) == 1
    assert stage.end_component(signal.SIGTERM) == 0, "every answer was acknowledged"


def test_gateway_and_component_both_killed_leave_an_unknown_that_is_not_done_twice(
    stage: Stage,
) -> None:
    client = stage.start_gateway()
    stage.start_component()
    (session_id,) = begun(stage, client)
    stage.kill_gateway()
    stage.end_component(signal.SIGKILL)
    client = stage.start_gateway()
    stage.start_component()
    stage.open_gate()
    view = client.ended(session_id)
    assert view["status"] == "FAILED"
    (row,) = attempts(client, session_id)
    assert row.get("side_effect", "UNKNOWN") == "UNKNOWN"
    assert len(stage.effects()) == 1


def test_a_kept_answer_outlives_the_component_too(stage: Stage) -> None:
    client = stage.start_gateway()
    stage.start_component()
    (session_id,) = begun(stage, client)
    stage.kill_gateway()
    stage.open_gate()
    until(lambda: kept_answers(stage) == 1)
    stage.end_component(signal.SIGKILL)
    client = stage.start_gateway()
    stage.start_component()
    assert client.ended(session_id)["status"] == "SUCCEEDED"
    assert len(stage.effects()) == 1


def kept_answers(stage: Stage) -> int:
    with sqlite3.connect(stage.folder / "outcomes.db") as rows:
        found: int = rows.execute("SELECT count(*) FROM answers").fetchone()[0]
    return found


def test_a_component_that_never_comes_back_is_waited_for_a_grace_only(stage: Stage) -> None:
    stage.environ |= dict.fromkeys(GRACES, "1500")
    client = stage.start_gateway()
    stage.start_component()
    (session_id,) = begun(stage, client)
    stage.kill_gateway()
    stage.end_component(signal.SIGKILL)
    client = stage.start_gateway()
    view = client.ended(session_id)
    assert view["status"] == "FAILED"
    (row,) = attempts(client, session_id)
    assert row.get("side_effect", "UNKNOWN") == "UNKNOWN"


def test_a_gateway_that_is_stopped_leaves_calls_to_its_next_start(stage: Stage) -> None:
    client = stage.start_gateway()
    stage.start_component()
    (session_id,) = begun(stage, client)
    assert stage.gateway is not None
    assert stage.gateway.stop() == 0, "open streams do not hold a stop"
    client = stage.start_gateway()
    stage.open_gate()
    assert client.ended(session_id)["status"] == "SUCCEEDED"
    assert len(stage.effects()) == 1


def test_a_component_told_to_stop_finishes_and_leaves(stage: Stage) -> None:
    client = stage.start_gateway()
    stage.start_component()
    (session_id,) = begun(stage, client)
    assert stage.component is not None
    os.kill(stage.component.pid, signal.SIGTERM)
    until(lambda: client.get("/v1/components").json["components"][0].get("state") == "DRAINING")
    stage.open_gate()
    assert stage.component.wait(STOP_S) == 0
    assert client.ended(session_id)["status"] == "SUCCEEDED"
    until(lambda: client.get("/v1/components").json == {})


def test_a_component_that_is_killed_loses_its_calls_when_it_says_hello_again(stage: Stage) -> None:
    client = stage.start_gateway()
    stage.start_component()
    (session_id,) = begun(stage, client)
    stage.end_component(signal.SIGKILL)
    stage.start_component()
    view = client.ended(session_id)
    assert view["status"] == "FAILED"
    (row,) = attempts(client, session_id)
    assert row["error"]["reason"] != "TIMEOUT", "its hello told so; nobody waited for the grace"
    assert len(stage.effects()) == 1
