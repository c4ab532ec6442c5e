"""kill -9 under load: what was acknowledged is there after the restart, ends, and was done once.

Clients open sessions all the time; a killer kills the gateway at random moments, also while it
starts. The counter's own file is the witness: a row per effect, on disk before it answered.
"""

import http.client
import json
import os
import random
import sqlite3
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from gateway.cli.offline import replayed
from gateway.stores.reader import TrajectoryReader
from gateway.tests.e2e.client import TERMINAL, Client
from gateway.tests.served import Served, serve_gateway

CLIENTS = 6
PAUSE_S = 0.02
LAST_ONES_S = 60.0
REPLAYED = 25
"""Sessions whose journals are replayed; each opens the store once more."""
WORKFLOW = """
workflow: counted
version: 1.0.0
steps:
  - {name: look, role: execute, component: counter, action: counter.total}
  - {name: keyed, role: execute, component: counter, action: counter.add}
  - {name: once, role: execute, component: counter, action: counter.add_once, on_error: continue}
  - {name: plan, role: plan, component: echo}
  - {name: act, role: execute, plan: plan}
output: act.output
limits: {deadline_ms: 120000}
"""
TAKES_ALL = {"ACP_OVERLOAD_QUEUE_TARGET_MS": "0"}
"""A crowd on a slow machine is to be taken, not shed: what is lost is the question here."""


@dataclass
class Load:
    """Clients that open sessions on one address, whoever answers there."""

    port: int
    acknowledged: list[str] = field(default_factory=list)
    changed: threading.Condition = field(default_factory=threading.Condition)
    stop: threading.Event = field(default_factory=threading.Event)
    refusals: list[str] = field(default_factory=list)

    def run(self, number: int) -> None:
        count = 0
        while not self.stop.is_set():
            count += 1
            try:
                status, text = self._open(f"{number}-{count}")
            except (OSError, http.client.HTTPException):
                self.stop.wait(PAUSE_S)
                continue
            if status not in (200, 201):
                self.refusals.append(text)
                self.stop.wait(PAUSE_S)
                continue
            with self.changed:
                self.acknowledged.append(json.loads(text)["session_id"])
                self.changed.notify_all()

    def _open(self, key: str) -> tuple[int, str]:
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)) as gateway:
            body = json.dumps({"workflow": "counted", "input": key, "session_key": key})
            gateway.request("POST", "/v1/sessions", body, {"content-type": "application/json"})
            answer = gateway.getresponse()
            return answer.status, answer.read().decode()

    def wait_for(self, more: int) -> None:
        """Return once `more` further sessions were acknowledged."""
        with self.changed:
            wanted = len(self.acknowledged) + more
            assert self.changed.wait_for(lambda: len(self.acknowledged) >= wanted, timeout=30)

    @contextmanager
    def running(self) -> Iterator[None]:
        threads = [threading.Thread(target=self.run, args=(n,)) for n in range(CLIENTS)]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self.stop.set()
            for thread in threads:
                thread.join()


@dataclass(frozen=True)
class Place:
    """Where one gateway lives over all its lives."""

    folder: Path
    port: int

    def start(self) -> Served:
        flags = ("--http", f"127.0.0.1:{self.port}")
        log = self.folder / "gateway.log"
        return serve_gateway(*flags, data_dir=self.folder / "data", log_file=log, environ=TAKES_ALL)

    def start_and_kill(self, chance: random.Random, stop: threading.Event) -> None:
        """Kill a gateway while it starts, perhaps in the midst of its recovery."""
        command = [
            *(sys.executable, "-m", "gateway", "serve", "--data-dir", str(self.folder / "data")),
            *("--http", f"127.0.0.1:{self.port}", "--grpc", "127.0.0.1:0"),
        ]
        environ = {**os.environ, **TAKES_ALL}
        process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environ
        )
        stop.wait(chance.uniform(0.3, 2.0))
        process.kill()
        process.wait()


@pytest.fixture
def place(tmp_path: Path, free_port: Callable[[], int]) -> Place:
    return Place(tmp_path, free_port())


def kill_often(place: Place, *, kills: int, seed: int, started: dict[str, Any]) -> Load:
    chance, load = random.Random(seed), Load(place.port)
    served = place.start()
    with Client(served.url) as client:
        for name in ("counter", "echo"):
            client.register(started[name]["url"])
        client.put_workflow(WORKFLOW)
    try:
        with load.running():
            for _ in range(kills):
                load.wait_for(chance.randint(1, 30))
                load.stop.wait(chance.uniform(0, 0.05))
                served.kill()
                if chance.random() < 0.2:
                    place.start_and_kill(chance, load.stop)
                served = place.start()
            load.wait_for(5)
        with Client(served.url) as client:
            check_ends(client, load)
            check_effects(client, load, file=counter_file(started))
    finally:
        served.stop()
    check_records(place.folder / "data", load)
    return load


def counter_file(started: dict[str, Any]) -> Path:
    return Path(started["counter"]["log"]).parent / "state" / "counter" / "counter.db"


def check_ends(client: Client, load: Load) -> None:
    """Every acknowledged session is known, and ends."""
    ends = Counter(
        client.ended(session_id, within_s=LAST_ONES_S)["status"] for session_id in load.acknowledged
    )
    assert sum(ends.values()) == len(load.acknowledged)
    assert set(ends) <= set(TERMINAL)
    # On a slow machine a session lives through several kills, and its retries are counted.
    assert ends["SUCCEEDED"] > 0.5 * len(load.acknowledged), ends


def check_effects(client: Client, load: Load, *, file: Path) -> None:
    """No call had its effect twice; what the gateway calls a success had it exactly once."""
    with closing(sqlite3.connect(file)) as rows:
        done = Counter(call for (call,) in rows.execute("SELECT call_id FROM effects"))
    assert max(done.values()) == 1, "a call had its effect twice"
    repeated = unsure = 0
    for session_id in load.acknowledged:
        calls = calls_by_step(client, session_id)
        for step in ("keyed", "once"):
            attempts = calls.get(step, [])
            assert len({row["call_id"] for row in attempts}) <= 1, "a retry opened a new call"
            if attempts and "error" not in attempts[-1]:
                assert done[attempts[-1]["call_id"]] == 1, (step, attempts)
        keyed, once = calls.get("keyed", []), calls.get("once", [])
        repeated += len(keyed) > 1 and "error" not in keyed[-1]
        unsure += bool(once) and "error" in once[-1]
        sent = [row for row in once if row.get("sent_at")]
        assert len(sent) <= 1, ("sent again although it may have been done", once)
    assert repeated > 0, "no kill met a BY_KEY call in flight: kill more often"
    assert unsure > 0, "no kill met a NONE call in flight: kill more often"


def check_records(data_dir: Path, load: Load) -> None:
    """Each session's trajectory was delivered once, and journals replay to the same commands."""
    reader = TrajectoryReader(data_dir, newest_only=False, reviewed_only=False)
    delivered = Counter((one.session_id, one.sequence) for one in reader)
    assert reader.counts.torn + reader.counts.malformed == 0, reader.counts.places
    assert max(delivered.values()) == 1, "a trajectory was delivered twice"
    assert set(load.acknowledged) <= {session_id for session_id, _ in delivered}
    for session_id in load.acknowledged[:: max(1, len(load.acknowledged) // REPLAYED)]:
        result = replayed(data_dir, session_id)
        assert result.same, (session_id, result.difference)


def calls_by_step(client: Client, session_id: str) -> dict[str, list[Any]]:
    calls: dict[str, list[Any]] = {}
    for row in client.trajectory(session_id)["calls"]:
        calls.setdefault(row["step"], []).append(row)
    return calls


def test_twenty_kills_lose_no_acknowledged_session_and_do_nothing_twice(
    place: Place, start_components: Callable[..., dict[str, Any]]
) -> None:
    started = start_components("counter", "echo")
    load = kill_often(place, kills=20, seed=1, started=started)
    assert len(load.acknowledged) > 100
    assert load.refusals == []


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2, 4))
def test_many_kills_lose_no_acknowledged_session_and_do_nothing_twice(
    place: Place, start_components: Callable[..., dict[str, Any]], seed: int
) -> None:
    started = start_components("counter", "echo")
    load = kill_often(place, kills=30, seed=seed, started=started)
    assert len(load.acknowledged) > 100
