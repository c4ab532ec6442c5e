"""Over the ends of a gateway: streams resume, signals drain, deletions leave no trace on disk."""

import json
import signal
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from gateway.tests.e2e.client import Client, Event, Gone
from gateway.tests.e2e.stranger import READ, Stranger, card, serving
from gateway.tests.served import Served

Serve = Callable[..., Served]
Start = Callable[..., dict[str, Any]]
WORKFLOW = """
workflow: slowly
version: 1.0.0
steps:
  - {name: first, role: execute, component: slow, action: slow.read, input_mapping: {ms: input.ms}}
  - {name: count, role: execute, component: counter, action: counter.add_once}
  - {name: last, role: execute, component: slow, action: slow.read, input_mapping: {ms: input.ms}}
output: '{"took": last.output.took_ms, "note": input.note}'
limits: {deadline_ms: 120000}
"""
HELD = """
workflow: held
version: 1.0.0
steps: [{name: first, role: execute, component: gate, action: gate.pass}]
output: first.output
limits: {deadline_ms: 120000}
"""
PATIENT = {"ACP_GRACE_DRAIN_GRACE_MS": "60000"}
"""For calls that a test lets end: a busy machine must not cut them off."""


@pytest.fixture(scope="module")
def started(start_components: Start) -> dict[str, Any]:
    return start_components("slow", "counter")


@pytest.fixture
def begin(serve: Serve, started: dict[str, Any]) -> Callable[[], Served]:
    """A gateway of this test that knows the components and the workflow; again = a restart."""

    def start() -> Served:
        served = serve(environ=PATIENT)
        with Client(served.url) as client:
            for one in started.values():
                client.register(one["url"])
            client.put_workflow(WORKFLOW)
        return served

    return start


class Gate:
    """A component whose call is answered once `opens` is set."""

    def __init__(self) -> None:
        self.opens, self.called = threading.Event(), threading.Semaphore(0)
        actions = {"gate.pass": {**READ, "timeout_ms": 100_000}}
        self.stranger = Stranger(
            card("gate", "EXECUTOR", actions=actions), {"execute": self._execute}
        )

    def _execute(self, body: str) -> str:
        self.called.release()
        self.opens.wait(100)
        return '{"output": "passed"}'

    def held(self, client: Client) -> str:
        """A session whose call waits here."""
        client.register(self.stranger.url)
        client.put_workflow(HELD)
        session_id = client.open("held")
        assert self.called.acquire(timeout=30)
        return session_id


@pytest.fixture
def gate() -> Iterator[Gate]:
    made = Gate()
    with serving(made.stranger):
        yield made
        made.opens.set()


def open_slow(client: Client, ms: int, note: str = "") -> str:
    return client.open("slowly", json.dumps({"ms": ms, "note": note}))


def until_sent(events: Iterator[Event]) -> list[Event]:
    """Events up to the first attempt that was started."""
    seen = []
    for event in events:
        seen.append(event)
        if event.type == "AttemptStarted":
            return seen
    raise AssertionError(f"the stream ended before anything was sent: {seen}")


def test_an_event_stream_goes_on_where_it_broke_over_a_kill(begin: Callable[[], Served]) -> None:
    served = begin()
    with Client(served.url) as client:
        session_id = open_slow(client, 300)
        seen = until_sent(client.events(session_id))
        served.kill()
    with Client(begin().url) as client:
        rest = list(client.events(session_id, after=seen[-1].id))
        whole = list(client.events(session_id))
        assert client.session(session_id)["status"] == "SUCCEEDED"
        assert [event.id for event in whole] == list(range(1, len(whole) + 1))
        assert seen + rest == whole
        assert whole[-1].type == "SessionEnded"
        assert client.events_reply(session_id, after=whole[-1].id) == 204
        assert list(client.events(session_id, after=whole[-2].id)) == whole[-1:]


def test_a_call_in_flight_may_end_when_the_gateway_is_told_to_stop(
    begin: Callable[[], Served], started: dict[str, Any]
) -> None:
    served = begin()
    with Client(served.url) as client:
        session_id = open_slow(client, 1000)
        until_sent(client.events(session_id))
        assert served.stop() == 0, "it waits for the call, not for the whole grace"
    with Client(begin().url) as client:
        assert client.ended(session_id)["status"] == "SUCCEEDED"
        rows = client.trajectory(session_id)["calls"]
        assert [(row["step"], row["attempt"]) for row in rows] == [
            ("first", 1), ("count", 1), ("last", 1),
        ]  # fmt: skip
        assert all("error" not in row for row in rows)
        counted = effects(started, rows[1]["call_id"])
        assert counted == 1


def effects(started: dict[str, Any], call_id: str) -> int:
    file = Path(started["counter"]["log"]).parent / "state" / "counter" / "counter.db"
    with closing(sqlite3.connect(file)) as rows:
        asked = rows.execute("SELECT count(*) FROM effects WHERE call_id = ?", (call_id,))
        found: int = asked.fetchone()[0]
        return found


def test_a_second_signal_stops_at_once_and_loses_nothing(
    begin: Callable[[], Served], gate: Gate
) -> None:
    served = begin()
    with Client(served.url) as client:
        session_id = gate.held(client)
        served.process.send_signal(signal.SIGTERM)
        for status in readiness(client):
            if status != 200:
                break
    served.process.send_signal(signal.SIGTERM)
    assert served.process.wait(20) == 130, "the call still waits, and nobody waits for it"
    gate.opens.set()
    with Client(begin().url) as client:
        view = client.ended(session_id)
        assert view["status"] == "SUCCEEDED"
        attempts = [row for row in client.trajectory(session_id)["calls"] if row["step"] == "first"]
        assert len(attempts) == 2


def readiness(client: Client) -> Iterator[int]:
    """The answers of /readyz, until nobody answers any more."""
    with suppress(Gone):
        while True:
            yield client.get("/readyz").status


def test_while_it_drains_it_says_so_and_opens_nothing_new(
    begin: Callable[[], Served], gate: Gate
) -> None:
    """The listener went first once: nobody was told why, and call-backs had nowhere to go."""
    served = begin()
    with Client(served.url) as client, Client(served.url) as other:
        gate.held(client)
        assert other.get("/readyz").status == 200
        served.process.send_signal(signal.SIGTERM)
        until = monotonic() + 20
        while other.get("/readyz").status == 200:
            assert monotonic() < until, "a draining gateway is not ready"
        refused = other.get("/readyz")
        assert refused.status == 503
        assert "shutting down" in refused.text
        body = {"workflow": "slowly", "input": {"ms": 1, "note": ""}}
        assert other.post("/v1/sessions", body).status == 503
        assert other.get("/healthz").status == 200
        gate.opens.set()
        assert set(readiness(other)) <= {503}
    assert served.process.wait(15) == 0


SECRET = "Zx9-payload-that-must-vanish"


def holding(folder: Path, text: str) -> list[str]:
    """Files below the folder in which the text stands as it is."""
    found = []
    for path in sorted(folder.rglob("*")):
        with suppress(FileNotFoundError, IsADirectoryError):  # the store puts files away meanwhile
            if text.encode() in path.read_bytes():
                found.append(str(path.relative_to(folder)))
    return found


def test_a_deleted_session_leaves_no_payload_anywhere_in_the_data_directory(
    begin: Callable[[], Served],
) -> None:
    served = begin()
    with Client(served.url) as client:
        kept = open_slow(client, 0, "another session's note")
        session_id = open_slow(client, 0, SECRET)
        client.ended(kept), client.ended(session_id)
        feedback = {"kind": "COMMENT", "comment": f"about {SECRET}", "author": "somebody"}
        assert client.post(f"/v1/sessions/{session_id}/feedback", feedback).status < 300
        assert SECRET in client.get(f"/v1/sessions/{session_id}/trajectory").text
        assert client.delete(f"/v1/sessions/{session_id}").status in (200, 204)
        assert client.delete(f"/v1/sessions/{session_id}").status in (200, 204)
        assert holding(served.data_dir, SECRET) == []
        check_tombstone(client, session_id)
    served.stop()
    assert holding(served.data_dir, SECRET) == []
    with Client(begin().url) as client:
        check_tombstone(client, session_id)
        assert "another session's note" in client.get(f"/v1/sessions/{kept}").text
        listed = client.get("/v1/sessions").json["sessions"]
        assert kept in [one["session_id"] for one in listed]
        assert SECRET not in json.dumps(listed)
    served.stop()
    assert holding(served.data_dir, SECRET) == []
    assert holding(served.data_dir, "another session's note")


def check_tombstone(client: Client, session_id: str) -> None:
    view = client.get(f"/v1/sessions/{session_id}")
    assert view.status == 200
    assert SECRET not in view.text
    assert client.get(f"/v1/sessions/{session_id}/trajectory").status in (404, 410)
    assert client.events_reply(session_id, after=0) in (404, 410)


def test_a_deletion_that_a_kill_interrupts_is_finished_by_the_next_start(
    begin: Callable[[], Served],
) -> None:
    served = begin()
    with Client(served.url) as client:
        sessions = [open_slow(client, 0, f"{SECRET} {number}") for number in range(12)]
        for session_id in sessions:
            client.ended(session_id)

        def delete(session_id: str) -> None:
            with Client(served.url) as one, suppress(Gone):  # the kill below cuts some of them off
                one.delete(f"/v1/sessions/{session_id}")

        threads = [threading.Thread(target=delete, args=(one,)) for one in sessions]
        for thread in threads:
            thread.start()
        threads[0].join()
        served.kill()
        for thread in threads:
            thread.join()
    served = begin()
    with Client(served.url) as client:
        gone = [
            one for one in sessions if client.get(f"/v1/sessions/{one}/trajectory").status != 200
        ]
        for session_id in sessions:
            assert client.delete(f"/v1/sessions/{session_id}").status in (200, 204)
        assert sessions[0] in gone
        assert holding(served.data_dir, SECRET) == []
