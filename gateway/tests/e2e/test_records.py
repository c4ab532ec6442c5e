"""The records behind a real gateway: SQL over what ended, whatever becomes of their process."""

import json
import os
import signal
from contextlib import suppress
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gateway.cli.records import app as records_command
from gateway.cli.tokens import app as tokens_command
from gateway.stores.records.tests.childhood import patiently
from gateway.tests.e2e.client import Client
from gateway.tests.e2e.desk import desk, rows, until_rows
from gateway.tests.served import serve_gateway


def child_pid(client: Client) -> int:
    rows(client, "SELECT 1")
    pid: int = client.get("/v1/records/status").json["feed"]["pid"]
    return pid


def is_gone(pid: int) -> bool:
    """A zombie that nobody has waited for is dead."""
    try:
        return ") Z " in Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return True


COUNT = "SELECT session_id, status, call_actions FROM v_sessions ORDER BY session_id"


def test_what_ended_is_asked_for_by_sql_and_what_is_deleted_is_gone(tmp_path: Path) -> None:
    with desk(tmp_path) as (_, client):
        assert client.get("/v1/records/status").json == {"state": "STOPPED"}
        one, two = client.open("desk", "1"), client.open("desk", "2")
        for session in (one, two):
            client.ended(session)
        until_rows(client, COUNT, [[s, "SUCCEEDED", ["serve"]] for s in sorted((one, two))])
        feedback = {"kind": "RATING", "score": 2, "comment": "#late"}
        assert client.post(f"/v1/sessions/{two}/feedback", feedback).status < 300
        until_rows(
            client, "SELECT session_id FROM v_sessions WHERE has(comment_tags, 'late')", [[two]]
        )
        client.delete(f"/v1/sessions/{one}")
        until_rows(client, "SELECT DISTINCT session_id FROM v_calls", [[two]])
        until_rows(client, "SELECT session_id FROM v_sessions", [[two]])


def test_a_records_process_that_is_killed_or_hangs_costs_no_session_and_comes_back(
    tmp_path: Path,
) -> None:
    with desk(tmp_path) as (served, client):
        first = child_pid(client)
        os.kill(first, signal.SIGSTOP)
        hung = client.open("desk", "1")
        assert client.ended(hung)["status"] == "SUCCEEDED"
        with suppress(ProcessLookupError):  # on a slow machine the gateway was first
            os.kill(first, signal.SIGKILL)
        until_rows(client, "SELECT session_id FROM v_sessions", [[hung]])
        assert child_pid(client) != first
        assert client.get("/v1/records/status").json["starts"] >= 2
        assert served.process.poll() is None


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_no_records_process_outlives_its_gateway(tmp_path: Path, end: str) -> None:
    with desk(tmp_path) as (served, client):
        pid = child_pid(client)
        session = client.open("desk", "1")
        client.ended(session)
        served.stop() if end == "stop" else served.kill()
        for _ in patiently():
            if is_gone(pid):
                break
    with desk(tmp_path) as (_, client):  # the next one finds the store free, and all of it
        until_rows(client, "SELECT session_id FROM v_sessions", [[session]])


def test_a_question_that_is_wrong_says_what_is_wrong(tmp_path: Path) -> None:
    with desk(tmp_path, "--config", str(_settings(tmp_path))) as (_, client):
        child_pid(client)  # it runs with the gateway
        for body, why in (
            ({"sql": "DROP TABLE sessions"}, "must begin with"),
            ({"sql": "SELECT 1; SELECT 2"}, "one statement"),
            ({"sql": "SELECT nothing FROM v_sessions"}, "nothing"),
            ({"sql": "SELECT number FROM numbers(100)"}, "max rows"),
            ({"sql": "SELECT * FROM url('http://127.0.0.1:1/', 'RawBLOB')"}, "readonly"),
            ({"sql": "SELECT count() FROM numbers(1e18)", "timeout_ms": 200}, "Timeout"),
            ({}, "sql"),
        ):
            reply = client.post("/v1/records/query", body)
            assert reply.status == 400, (body, reply.text)
            assert why in reply.message, (body, reply.message)
        assert client.post("/v1/records/query", {"sql": "SELECT 7"}).json == {
            "columns": [{"name": "7", "type": "UInt8"}],
            "rows": [[7]],
            "row_count": 1,
        }


def _settings(folder: Path) -> Path:
    file = folder / "settings.yaml"
    file.write_text("records: {start: with_gateway, query_rows_max: 10}\n")
    return file


WHAT_SEES_ALL = (
    ("POST", "query", b'{"sql": "DROP"}', 400),
    ("GET", "status", None, 200),
    ("POST", "verify", b"{}", 202),
    ("POST", "backfill", b"{}", 202),
)
"""What is asked of all records at once, and what an operator of the default tenant is told."""


def test_a_token_of_one_tenant_gets_nothing_that_sees_or_names_all(tmp_path: Path) -> None:
    """A comparison names the sessions that differ, whoever's they are: `status` showed another
    tenant's ids, and anybody's operator could have the whole log read again."""
    made = {
        tenant: CliRunner().invoke(
            tokens_command,
            [
                *("create", "--scope", "operate", "--tenant", tenant, "--json"),
                *("--data-dir", str(tmp_path / "data")),
            ],
        )
        for tenant in ("default", "bank")
    }
    tokens = {tenant: json.loads(result.stdout)["token"] for tenant, result in made.items()}
    settings = tmp_path / "settings.yaml"
    settings.write_text("auth: {mode: required}\n")
    served = serve_gateway(
        "--config", str(settings), data_dir=tmp_path / "data", log_file=tmp_path / "log", environ={}
    )
    try:
        with Client(served.url) as client:
            for method, name, body, status in WHAT_SEES_ALL:
                asked = {
                    tenant: client.call(
                        method,
                        f"/v1/records/{name}",
                        body=body,
                        authorization=f"Bearer {token}",
                    )
                    for tenant, token in tokens.items()
                }
                assert asked["bank"].status == 403, name
                assert "/trajectory" in asked["bank"].message
                assert asked["default"].status == status, asked["default"].text
    finally:
        served.stop()


def test_the_commands_ask_show_and_compare(tmp_path: Path) -> None:
    with desk(tmp_path) as (served, client):
        session = client.open("desk", "1")
        client.ended(session)
        until_rows(client, "SELECT session_id FROM v_sessions", [[session]])

        def acp(*words: str) -> str:
            result = CliRunner().invoke(records_command, [*words, "--gateway", served.url])
            assert result.exit_code == 0, result.output
            return result.stdout

        assert session in acp("query", "SELECT session_id FROM v_sessions")
        assert json.loads(acp("query", "SELECT 1 AS a", "--json"))["rows"] == [[1]]
        assert "identical: 1 sessions" in acp("verify")
        assert json.loads(acp("verify", "--json"))["outcome"] == "IDENTICAL"
        assert "0 bytes of the log to go" in acp("status")
        assert "acp_records_up 1.0" in client.get("/metrics").text
        assert "begun" in acp("backfill")
        refused = CliRunner().invoke(records_command, ["query", "DROP", "--gateway", served.url])
        assert refused.exit_code == 2
