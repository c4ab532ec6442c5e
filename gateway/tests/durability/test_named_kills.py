"""kill -9 at named points: nothing acknowledged is lost, nothing is done twice, replay agrees.

Each life of the gateway is armed for one passage of one point (`killing`). The counter's own file
is the witness of what was done. The table of hits is printed, and each point must have its share.
"""

import random
import signal
import sqlite3
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from gateway.cli.offline import replayed
from gateway.cli.sessions import app as sessions_command
from gateway.stores.records.tests.childhood import patiently
from gateway.stores.trajectory_log import erased_by, head_of, is_blank, log_files
from gateway.tests.durability.killing import POINTS
from gateway.tests.durability.lives import Clients, Launcher, Ledger
from gateway.tests.e2e.client import TERMINAL, Client
from gateway.tests.e2e.stranger import READ, Stranger, card, serving

WORKFLOW = """
workflow: counted
version: 1.0.0
steps:
  - {name: look, role: execute, component: counter, action: counter.total}
  - {name: keyed, role: execute, component: counter, action: counter.add}
  - {name: once, role: execute, component: counter, action: counter.add_once, on_error: continue}
output: keyed.output
limits: {deadline_ms: 300000}
"""
IN_RECOVERY = ("during recovery", "after recovery append")
LEAVES_WORK = ("before send", "after send", "at answer", "after answer")
PASSAGES_MAX = {
    "in an outbox line": 2,
    "between outbox lines and rows": 2,
    "before outbox rows go": 2,
    "after outbox rows went": 2,
    "during registration": 3,
}
PASSAGES_MAX |= {"before key erased": 2, "after key erased": 2, "during recovery": 4}
PASSAGES_MAX |= {"after recovery append": 2}
DYING_S_MAX = 15.0
HELD_SESSIONS = 4
RECORDS_S_MAX = 900.0
"""Each life leaves a file of its own, and every file is a batch; on a machine where both cores are
taken the records' process, which yields to all others, needs a second for each."""


class Killings:
    """All lives of one directory."""

    def __init__(self, launcher: Launcher, started: dict[str, Any], *, seed: int) -> None:
        self.launcher = launcher
        self.chance = random.Random(seed)
        self.hits: Counter[str] = Counter()
        self.ledger = Ledger()
        self.counter_url = started["counter"]["url"]
        self.effects_file = (
            Path(started["counter"]["log"]).parent / "state" / "counter" / "counter.db"
        )
        self._numbers = count(1)
        self.stranger = Stranger(card("newcomer", "EXECUTOR", actions={"n": READ}), {})

    def prepare(self) -> None:
        """A life of its own: a component, a workflow, and sessions that every recovery meets."""
        assert self.launcher.start()
        with Client(f"http://127.0.0.1:{self.launcher.port}") as client:
            client.register(self.counter_url)
            client.put_workflow(WORKFLOW)
            for _ in range(HELD_SESSIONS):
                client.open("counted", mode="MANUAL")
        self.launcher.end()

    def kill_at(self, point: str) -> None:
        """Lives until one has died at `point`; one that does not get there is ended."""
        for attempt in range(4):
            passages = 1 if attempt else self.chance.randint(1, PASSAGES_MAX.get(point, 25))
            if self._one_life(point, passages):
                self.hits[point] += 1
                return
        raise AssertionError(f"nobody came past {point!r}")

    def _one_life(self, point: str, passages: int) -> bool:
        if not self.launcher.start(point, passages):
            return True
        clients = Clients(self.launcher.port, self.ledger, register=self._registration)
        threads = clients.begin()
        died = self.launcher.wait(1.0 if point in IN_RECOVERY else DYING_S_MAX)
        if not died:
            self.launcher.end()
        for thread in threads:
            thread.join()
        return died

    def _registration(self) -> dict[str, object]:
        self.stranger.card["name"] = f"newcomer-{next(self._numbers)}"
        return {"url": self.stranger.url, "transport": "HTTP", "lease_seconds": 3600}


@pytest.fixture
def launcher(tmp_path: Path, free_port: Callable[[], int]) -> Iterator[Launcher]:
    one = Launcher(tmp_path, free_port())
    yield one
    one.close()


def order_of_kills(each: int, chance: random.Random) -> list[str]:
    """Every point `each` times; a kill in recovery follows one that leaves work to recover."""
    others = [point for point in POINTS if point not in IN_RECOVERY] * each
    chance.shuffle(others)
    waiting = list(IN_RECOVERY) * each
    found = []
    for point in others:
        found.append(point)
        if point in LEAVES_WORK and waiting:
            found.append(waiting.pop())
    return found + waiting


def kill_and_check(
    launcher: Launcher, started: dict[str, Any], *, each: int, seed: int, with_records: bool
) -> Killings:
    killings = Killings(launcher, started, seed=seed)
    with serving(killings.stranger):
        killings.prepare()
        for point in order_of_kills(each, killings.chance):
            killings.kill_at(point)
        assert launcher.start()
        with Client(f"http://127.0.0.1:{launcher.port}") as client:
            check_sessions(client, killings.ledger)
            check_registrations(client, killings.ledger)
            check_effects(client, killings)
            if with_records:
                check_records(client, killings.ledger)
        assert launcher.end(signal.SIGTERM) == 0
    data = launcher.folder / "data"
    check_lines(data, killings.ledger)
    check_replays(data, killings.ledger)
    return killings


def check_sessions(client: Client, ledger: Ledger) -> None:
    """Every acknowledged session is known and ends; an end that was told has not changed."""
    ends: Counter[str] = Counter()
    for session_id in ledger.opened:
        status = client.ended(session_id, within_s=120)["status"]
        ends[status] += 1
        assert ledger.ended.get(session_id, status) == status
    assert set(ends) <= set(TERMINAL)
    # On a slow machine a session lives through several kills, and its retries are counted.
    assert ends["SUCCEEDED"] > 0.5 * len(ledger.opened), ends
    for session_id in ledger.deleted:
        assert client.get(f"/v1/sessions/{session_id}/trajectory").status == 404
        assert "output" not in client.session(session_id)


def check_registrations(client: Client, ledger: Ledger) -> None:
    there = {one["component_id"] for one in client.get("/v1/components").json["components"]}
    assert there >= set(ledger.registered)


def check_effects(client: Client, killings: Killings) -> None:
    """Nothing was done twice, BY_KEY or not; what a session says was done was done."""
    with closing(sqlite3.connect(killings.effects_file)) as rows:
        done = Counter(call for (call,) in rows.execute("SELECT call_id FROM effects"))
    assert done, "the counter counted something"
    assert set(done.values()) == {1}, "a call had its effect twice"
    for session_id in killings.ledger.opened:
        if session_id in killings.ledger.maybe_deleted:
            continue
        last = {row["step"]: row for row in client.trajectory(session_id)["calls"]}
        for step in ("keyed", "once"):
            if step in last and "error" not in last[step]:
                assert done[last[step]["call_id"]] == 1, (session_id, last[step])


def check_records(client: Client, ledger: Ledger) -> None:
    """The rows are the hot state's sessions at its versions, and verify finds nothing to mend."""
    whole = [one for one in ledger.opened if one not in ledger.maybe_deleted]
    for some in batched(whole, 500):
        versions = {one: client.session(one)["state_version"] for one in some}
        body = {"sql": "SELECT 1", "min_versions": versions}
        for _ in patiently(RECORDS_S_MAX):
            reply = client.post("/v1/records/query", body)
            assert reply.status in (200, 409, 503), reply.text  # behind, or starting
            if reply.status == 200:
                break
    for gone in batched(ledger.deleted, 500):
        listed = ", ".join(f"'{one}'" for one in gone)
        sql = f"SELECT session_id FROM v_sessions WHERE session_id IN ({listed})"
        assert client.post("/v1/records/query", {"sql": sql}).json["rows"] == []
    compared = client.get("/v1/records/status").json["feed"]["comparisons"]
    client.post("/v1/records/verify")
    for _ in patiently(RECORDS_S_MAX):
        feed = client.get("/v1/records/status").json["feed"]
        if feed["comparisons"] > compared:
            assert feed["comparison"]["outcome"] == "IDENTICAL", feed
            return


def batched(names: Iterable[str], size: int) -> Iterator[list[str]]:
    rest = list(names)
    while rest:
        yield rest[:size]
        rest = rest[size:]


def check_lines(data: Path, ledger: Ledger) -> None:
    """Every session that ended has its one line for each sequence; a deleted one has none."""
    every = [line for file in log_files(data / "trajectories") for line in lines_of(file)]
    heads = [head_of(line) for line in every if not is_blank(line) and not erased_by(line)]
    assert None not in heads, "every line is whole"
    lines = Counter(head for head in heads if head is not None)
    assert set(lines.values()) <= {1}, lines.most_common(3)
    told = {line.session_id for line in lines}
    assert told >= set(ledger.opened) - ledger.maybe_deleted
    assert not told & set(ledger.deleted)


def lines_of(file: Path) -> list[bytes]:
    return file.read_bytes().splitlines()


def check_replays(data: Path, ledger: Ledger) -> None:
    """The journal alone commands the same again, for every session."""
    whole = [one for one in ledger.opened if one not in ledger.maybe_deleted]
    assert [one for one in whole if not replayed(data, one).same] == []
    said = CliRunner().invoke(sessions_command, ["replay", whole[-1], "--data-dir", str(data)])
    assert (said.exit_code, "the same" in said.output) == (0, True), said.output


def tell_hits(killings: Killings) -> None:
    """The table of hits, on standard output (`pytest -s` shows it)."""
    ledger = killings.ledger
    table = [f"{killings.hits[point]:4d} x {point}" for point in POINTS]
    table.append(
        f"{killings.hits.total():4d} kills, {len(ledger.opened)} sessions acknowledged,"
        f" {len(ledger.ended)} ends, {len(ledger.registered)} registrations,"
        f" {len(ledger.deleted)} deletions; refused: {dict(ledger.refused)}"
    )
    sys.stdout.write("\n" + "\n".join(table) + "\n")


def test_a_kill_at_each_of_the_named_points(
    launcher: Launcher, start_components: Callable[..., dict[str, Any]]
) -> None:
    started = start_components("counter")
    killings = kill_and_check(launcher, started, each=1, seed=1, with_records=True)
    tell_hits(killings)
    assert all(killings.hits[point] >= 1 for point in POINTS)


@pytest.mark.long
def test_two_hundred_kills_at_named_points(
    launcher: Launcher, start_components: Callable[..., dict[str, Any]]
) -> None:
    started = start_components("counter")
    # What the records read are the lines that are checked here; 350 lives leave 350 batches.
    killings = kill_and_check(launcher, started, each=10, seed=2, with_records=False)
    tell_hits(killings)
    assert all(killings.hits[point] >= 10 for point in POINTS)
