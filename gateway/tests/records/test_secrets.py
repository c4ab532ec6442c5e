"""Secrets go in, and are nowhere but where they must be: with the component and the trajectory."""

import json
from pathlib import Path
from typing import Final

import pytest
from typer.testing import CliRunner

from gateway.cli.serve import app
from gateway.stores.row_hash import hash_of
from gateway.tests.e2e.client import Client
from gateway.tests.e2e.desk import desk, rows, until_rows
from gateway.tests.e2e.stranger import READ, elements, member

NAMED: Final = "hunter2-of-the-vault"
DECLARED: Final = "maiden name Quetzalcoatl"
ANSWERED: Final = "one-time 88-17-03-ZZ"
BADGE: Final = "EMP-990017"
CARD: Final = "5555 5555 5555 4444"
KEY: Final = "sk-9f8e7d6c5b4a39281706f5e4d3c2"
BEARER: Final = "Mdmx9.tt-41"
SECRETS: Final = (NAMED, DECLARED, ANSWERED, BADGE, CARD, KEY, BEARER)

ACTION: Final = {
    **READ,
    "input_schema": {
        "properties": {"x": {"properties": {"mother": {"type": "string", "writeOnly": True}}}}
    },
    "output_schema": {"properties": {"code": {"type": "string", "x-acp-secret": True}}},
}
INPUT: Final[dict[str, object]] = {
    "pass_word": "",
    "password": NAMED,
    "mother": DECLARED,
    "text": f"pay with {CARD}, {BADGE} says, curl -H 'Authorization: Bearer {BEARER}'",
    "json": json.dumps({"api_key": KEY}),
}


def answer(body: str) -> str | tuple[int, str]:
    """It tells all it was told: in its output, a claim, its model's prompt, or its error."""
    if "break" in body:
        said = f"no {NAMED}, nor {DECLARED}: card {CARD}"
        failed = {"code": "INVALID_ARGUMENT", "reason": "NO", "message": said}
        return 400, json.dumps({"error": failed | {"details": {"pin": 1, "key": KEY}}})
    told = {
        "output": {"code": ANSWERED, "said": f"{ANSWERED} for {DECLARED}"},
        "claims": [{"text": f"{DECLARED} has {CARD}", "value": KEY}],
        "llm_calls": [{"id": "l", "prompt": [f"user: {NAMED}"], "response": {"token": KEY}}],
    }
    return json.dumps(told)


def settings(folder: Path) -> Path:
    file = folder / "settings.yaml"
    file.write_text(
        "records: {start: with_gateway}\nlog: {level: debug}\n"
        "secrets: {patterns: {staff: 'EMP-[0-9]{6}'}}\n"
    )
    return file


def test_no_row_page_log_line_or_metric_has_a_secret_that_went_through(tmp_path: Path) -> None:
    with desk(tmp_path, "--config", str(settings(tmp_path)), action=ACTION, execute=answer) as (
        served,
        client,
    ):
        good = client.open("desk", json.dumps(INPUT), labels={"api_key": KEY})
        bad = client.open("desk", json.dumps(INPUT | {"break": True}))
        assert client.ended(good)["status"] == "SUCCEEDED"
        assert client.ended(bad)["status"] == "FAILED"
        comment = f"#late it said {NAMED} and password: {KEY}"
        feedback = {"kind": "COMMENT", "comment": comment, "author": "ann"}
        assert client.post(f"/v1/sessions/{good}/feedback", feedback).status < 300
        until_rows(client, "SELECT count() FROM v_feedback", [[1]])
        until_rows(client, "SELECT count() FROM v_sessions", [[2]])

        _no_table_has_any(client)
        _no_page_has_any(client, good, bad)
        _what_is_no_secret_is_there(client, good)
        _the_trajectory_has_all(client, good)
        assert not [secret for secret in SECRETS if secret in client.get("/metrics").text]
        log = served.log()
    assert "records_up" in log
    assert not [secret for secret in SECRETS if secret in log]


def _no_table_has_any(client: Client) -> None:
    listed = "SELECT name FROM system.tables WHERE database = currentDatabase()"
    tables = [name for (name,) in rows(client, listed)]
    assert len(tables) >= 20
    filled = 0
    for table in tables:
        reply = client.post("/v1/records/query", {"sql": f"SELECT * FROM {table}"})
        assert reply.status == 200, reply.text
        filled += bool(reply.json["rows"])
        told = reply.text + json.dumps(reply.json, ensure_ascii=False)
        assert not [secret for secret in SECRETS if secret in told], table
    assert filled >= 12


def _no_page_has_any(client: Client, good: str, bad: str) -> None:
    """What the dashboard's pages are made of, by the same settings as the rows."""
    paths = [f"lineage/{good}/against/{bad}", "lineage?component=desk"]
    paths += [f"dashboard/{name}" for name in ("overview", "sessions", "workflows/desk")]
    for one in (good, bad):
        paths += [f"lineage/{one}/run", f"dashboard/sessions/{one}"]
    for path in paths:
        reply = client.get(f"/v1/{path}")
        assert reply.status == 200, reply.text
        told = reply.text + json.dumps(reply.json, ensure_ascii=False)
        assert not [secret for secret in SECRETS if secret in told], path
    assert "***(staff)" in client.get(f"/v1/dashboard/sessions/{good}").text


def _what_is_no_secret_is_there(client: Client, good: str) -> None:
    asked = "arguments, output, arguments_hash, arguments_bytes"
    ((arguments, output, digest, size),) = rows(
        client, f"SELECT {asked} FROM v_calls WHERE session_id = '{good}'"
    )
    sent = f'{{"x": {json.dumps(INPUT)}}}'
    shown = json.loads(arguments)["x"]
    assert shown["mother"] == shown["password"] == "***"
    assert shown["text"].startswith("pay with ***(card), ***(staff) says")
    assert json.loads(output) == {"code": "***", "said": "*** for ***"}
    exact = _payload(client, good, "arguments")
    assert json.loads(exact) == json.loads(sent)
    assert (digest, size) == (hash_of(exact.encode()), len(exact.encode()))


def _payload(client: Client, session: str, name: str) -> str:
    text = client.get(f"/v1/sessions/{session}/trajectory").text
    return member(elements(member(text, "calls"))[0], name)


def _the_trajectory_has_all(client: Client, good: str) -> None:
    trajectory = client.get(f"/v1/sessions/{good}/trajectory").json
    said = json.dumps(trajectory, ensure_ascii=False)
    assert not [secret for secret in SECRETS if secret not in said]


@pytest.mark.parametrize(
    ("setting", "why"),
    [
        ("{patterns: {staff: '(a+)+b'}}", "secrets.patterns (from"),
        ("{patterns: {cards: ''}}", "no kind to switch off"),
        ("{fields: [a..b]}", "secrets.fields (from"),
    ],
)
def test_a_pattern_or_field_that_cannot_be_used_stops_the_start_and_says_why(
    tmp_path: Path, setting: str, why: str
) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text(f"secrets: {setting}\n")
    refused = CliRunner().invoke(app, ["--config", str(file), "--data-dir", str(tmp_path / "d")])
    assert refused.exit_code == 2
    assert why in refused.output


def test_what_counts_as_a_secret_from_now_on_is_masked_in_rows_of_before_too(
    tmp_path: Path,
) -> None:
    with desk(tmp_path) as (_, client):
        session = client.open("desk", json.dumps({"badge": "blue-17"}))
        client.ended(session)
        until_rows(client, "SELECT input FROM v_sessions", [['{"badge": "blue-17"}']])
    file = tmp_path / "settings.yaml"
    file.write_text("secrets: {fields: [badge]}\n")
    with desk(tmp_path, "--config", str(file)) as (_, client):
        until_rows(client, "SELECT input FROM v_sessions", [['{"badge": "***"}']])
        comparison = client.get("/v1/records/status").json["feed"]["comparison"]
        assert "what counts as a secret was changed" in comparison["why"]
