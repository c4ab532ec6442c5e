"""The archive behind a real gateway: files leave, everybody finds them, deletion reaches them."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from gateway.cli.records import app as records_command
from gateway.stores.archive.tests.attic import places_with
from gateway.stores.records.tests.childhood import patiently
from gateway.tests.e2e.client import Client
from gateway.tests.e2e.stranger import READ, Stranger, card, serving
from gateway.tests.served import Served, serve_gateway

WORKFLOW = """
workflow: desk
version: 1.0.0
steps: [{name: act, role: execute, component: clerk, action: serve, input_mapping: {x: input}}]
output: act.output
"""
SETTINGS = """
archive: {hot_days: 0, every_ms: 3600000}
outbox: {rotate_bytes: 1}
"""
SECRET = "4711-secret"


@contextmanager
def desk(folder: Path) -> Iterator[tuple[Served, Client]]:
    """A gateway whose files leave as soon as newer ones are there."""
    (folder / "settings.yaml").write_text(SETTINGS)
    clerk = Stranger(
        card("clerk", "EXECUTOR", actions={"serve": READ}), {"execute": lambda _: '{"output": 1}'}
    )
    served = serve_gateway(
        *("--config", str(folder / "settings.yaml")),
        data_dir=folder / "data",
        log_file=folder / "log",
        environ={},
    )
    try:
        with Client(served.url) as client, serving(clerk):
            client.register(clerk.url)
            client.put_workflow(WORKFLOW)
            yield served, client
    finally:
        served.stop()


def ended(folder: Path, client: Client, text: str) -> str:
    """A session whose trajectory is in a file of its own."""
    session: str = client.open("desk", f'"{text}"')
    client.ended(session)
    for _ in patiently():
        if list(places_with(folder / "data" / "trajectories", text.encode())):
            break
    return session


def archived(client: Client, files: int) -> Any:
    """Once so many files have left."""
    for _ in patiently():
        status = client.get("/v1/records/archive").json
        if status.get("files", 0) >= files:
            return status
        if status["state"] == "IDLE":
            assert client.post("/v1/records/archive", {}).status == 202
    raise AssertionError("patience has an end")


def failed(client: Client) -> Any:
    """Once a pass did not end well."""
    for _ in patiently():
        status = client.get("/v1/records/archive").json
        if status.get("tries") and status["erasing"] == 1:
            return status
    raise AssertionError("patience has an end")


def until_erased(client: Client) -> None:
    """And the pass that did it has ended."""
    for _ in patiently():
        status = client.get("/v1/records/archive").json
        if status["state"] == "IDLE" and not status.get("erasing"):
            return


def until_rows(client: Client, sql: str, wanted: object) -> None:
    """As soon as the records say so: their process starts, reads both tiers, and goes on."""
    for _ in patiently():
        reply = client.post("/v1/records/query", {"sql": sql})
        if reply.status != 503:
            assert reply.status == 200, reply.text
            if reply.json["rows"] == wanted:
                return


def test_archived_sessions_are_found_judged_and_deleted_everywhere(tmp_path: Path) -> None:
    with desk(tmp_path) as (served, client):
        sessions = [ended(tmp_path, client, f"{SECRET}-{n}") for n in range(4)]
        assert archived(client, files=3)["moved"] == 3
        left = tmp_path / "data" / "archive"
        assert list(places_with(left, f"{SECRET}-0".encode()))
        assert client.get(f"/v1/sessions/{sessions[0]}/trajectory").status == 200

        # The records were never used: they read the archive now, then the log.
        ids = "SELECT session_id FROM v_sessions ORDER BY session_id"
        until_rows(client, ids, [[one] for one in sorted(sessions)])

        # Judged long after it was archived: the newest wins.
        feedback = {"kind": "RATING", "score": 2, "comment": "#late"}
        assert client.post(f"/v1/sessions/{sessions[1]}/feedback", feedback).status < 300
        late = "SELECT session_id FROM v_sessions WHERE has(comment_tags, 'late')"
        until_rows(client, late, [[sessions[1]]])

        client.delete(f"/v1/sessions/{sessions[0]}")
        until_erased(client)
        until_rows(client, ids, [[one] for one in sorted(sessions[1:])])
        until_rows(
            client, f"SELECT count() FROM v_calls WHERE arguments LIKE '%{SECRET}-0%'", [[0]]
        )
        for tier in ("trajectories", "archive", "archive-work"):
            assert not list(places_with(tmp_path / "data" / tier, f"{SECRET}-0".encode())), tier
        for _ in patiently():  # old parts of tables are kept for some seconds
            if not list(places_with(tmp_path / "data" / "records", f"{SECRET}-0".encode())):
                break
        assert list(places_with(left, f"{SECRET}-1".encode())), "the others are as they were"

        shown = CliRunner().invoke(records_command, ["verify", "--gateway", served.url])
        assert (shown.exit_code, "identical" in shown.output) == (0, True), shown.output
        shown = CliRunner().invoke(records_command, ["archive", "--check", "--gateway", served.url])
        assert shown.exit_code == 0, shown.output
        assert "0 healed" in shown.output


def test_a_deletion_survives_a_kill_before_it_reached_the_archive(tmp_path: Path) -> None:
    archive, away = tmp_path / "data" / "archive", tmp_path / "away"
    with desk(tmp_path) as (served, client):
        session = ended(tmp_path, client, SECRET)
        ended(tmp_path, client, "another")
        archived(client, files=1)
        archive.rename(away)  # the store is away
        client.delete(f"/v1/sessions/{session}")
        assert "is it mounted" in failed(client)["troubles"][0]
        served.kill()
    assert list(places_with(away, SECRET.encode()))
    away.rename(archive)
    with desk(tmp_path) as (_, client):
        until_erased(client)
        assert not list(places_with(tmp_path / "data", SECRET.encode()))
        assert "was deleted" in client.get(f"/v1/sessions/{session}/trajectory").message
