"""Who asks the records for a session at a least version gets no older rows, whatever happened."""

import shutil
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from gateway.cli.records import app as records_command
from gateway.stores.records.tests.childhood import patiently
from gateway.tests.e2e.client import Client, Reply
from gateway.tests.e2e.desk import desk, until_rows

COUNTED = "SELECT feedback_count FROM v_sessions WHERE session_id = '{}'"


def asked(client: Client, session: str, version: str) -> Reply:
    body = {"sql": COUNTED.format(session), "min_versions": {session: version}}
    return client.post("/v1/records/query", body)


def judged(client: Client, session: str, number: int) -> str:
    """Give feedback; the version that the session has with it."""
    feedback = {"kind": "RATING", "score": number, "author": f"a{number}"}
    reply = client.post(f"/v1/sessions/{session}/feedback", feedback)
    assert reply.status < 300, reply.text
    version: str = reply.json["state_version"]
    return version


def answer_of(client: Client, session: str, version: str) -> Any:
    """The rows at that version; before, only 409 STALE_STATE (503 while the store starts)."""
    for _ in patiently():
        reply = asked(client, session, version)
        if reply.status == 200:
            return reply.json["rows"]
        assert (reply.status, reply.reason) in ((409, "STALE_STATE"), (503, "UNAVAILABLE"))
    raise AssertionError("patience has an end")


def test_feedback_is_in_the_answer_or_the_answer_is_stale_state(tmp_path: Path) -> None:
    with desk(tmp_path) as (served, client):
        session = client.open("desk", "1")
        version = client.ended(session)["state_version"]
        assert answer_of(client, session, version) == [[0]]
        for number in (1, 2, 3):
            assert answer_of(client, session, judged(client, session, number)) == [[number]]

        plan, executed, feedback = client.session(session)["state_version"].split(".")
        later = f"{plan}.{executed}.{int(feedback) + 1}"
        stale = asked(client, session, later)
        assert (stale.status, stale.reason) == (409, "STALE_STATE")
        assert session in stale.message
        assert asked(client, "01J8ZC4B6Q0000000000000009", "0.0.0").status == 409
        running = {"min_versions": {session: later}, "sql": "SELECT 1"}
        assert client.post("/v1/records/query", running).status == 409
        for wrong in ({session: "3"}, {"' OR 1": "1.0.0"}, {session: ""}):
            refused = client.post("/v1/records/query", {"sql": "SELECT 1", "min_versions": wrong})
            assert refused.status == 400
            assert "min_versions" in refused.message
        words = ["query", "SELECT 1", "--gateway", served.url, "--min-version"]
        assert CliRunner().invoke(records_command, [*words, f"{session}={version}"]).exit_code == 0
        behind = CliRunner().invoke(records_command, [*words, f"{session}={later}"])
        assert behind.exit_code != 0
        assert "STALE_STATE" in behind.output


def test_what_a_power_cut_took_is_stale_state_until_verify_names_and_heals_it(
    tmp_path: Path,
) -> None:
    with desk(tmp_path) as (served, client):
        session = client.open("desk", "1")
        version = client.ended(session)["state_version"]
        assert answer_of(client, session, version) == [[0]]
        judged_at = judged(client, session, 1)
        assert answer_of(client, session, judged_at) == [[1]]
        served.kill()
    for part in (tmp_path / "data" / "records" / "store").glob("store/*/*/202*_*_*_*"):
        shutil.rmtree(part)
    with desk(tmp_path) as (served, client):
        until_rows(client, "SELECT count() FROM v_sessions", [[0]])
        lost = asked(client, session, version)
        assert (lost.status, lost.reason) == (409, "STALE_STATE")
        assert "not there yet" in lost.message
        words = ["verify", "--gateway", served.url]
        healed = CliRunner().invoke(records_command, words)
        assert healed.exit_code == 0, healed.output
        assert "1 of 1 sessions differed and are healed" in healed.output
        assert session in healed.output
        assert answer_of(client, session, judged_at) == [[1]]
        for _ in patiently():
            if "acp_records_drifted_sessions 1.0" in client.get("/metrics").text:
                break
        assert "identical: 1 sessions" in CliRunner().invoke(records_command, words).output
