"""The commands as a person calls them: what they print, and how they exit."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from gateway.cli.tests.conftest import Acp, Served
from gateway.transports.tests.in_memory import WORKFLOW


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "hotline.yaml"
    path.write_bytes(WORKFLOW)
    return path


def test_help_names_every_group_and_every_exit_code() -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "gateway", "--help"], capture_output=True, text=True, check=True
    )
    for name in ("serve", "run", "components", "workflows", "sessions", "lineage", "tokens"):
        assert f"  {name}" in ran.stdout
    assert "doctor" in ran.stdout
    assert "130  stopped by Ctrl-C" in ran.stdout


def test_help_imports_no_server_and_no_client() -> None:
    program = (
        "import sys\nsys.argv = ['acp', '--help']\nfrom gateway.cli import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "heavy = {'uvicorn', 'grpc', 'httpx', 'rocksdict', 'pydantic', 'google.protobuf', "
        "'numpy'}\n"
        "print(sorted(heavy & sys.modules.keys()))\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert ran.stdout.splitlines()[-1] == "[]"


def test_the_life_of_a_workflow(acp: Acp, file: Path) -> None:
    assert "valid" in acp("workflows", "validate", str(file)).stdout
    assert "hotline@1.0.0 is stored (active)" in acp("workflows", "put", str(file)).stdout
    assert acp("workflows", "put", str(file)).exit_code == 0
    (row,) = acp("workflows", "list", "--json").stdout.splitlines()
    assert json.loads(row)["name"] == "hotline"
    assert acp("workflows", "show", "hotline", "1.0.0").stdout.startswith("workflow: hotline")
    assert "is active" in acp("workflows", "activate", "hotline", "1.0.0").stdout


def test_a_wrong_workflow_is_told_by_place_and_exit_code(acp: Acp, file: Path) -> None:
    file.write_bytes(WORKFLOW.replace(b"role: plan", b"role: plane"))
    checked = acp("workflows", "validate", str(file))
    assert checked.exit_code == 1
    assert f"{file}:5:" in checked.stdout
    put = acp("workflows", "put", str(file))
    assert put.exit_code == 2
    assert "line 5" in put.stderr
    missing = acp("workflows", "put", "nowhere.yaml")
    assert missing.exit_code == 2
    assert "cannot be read" in missing.stderr


def test_running_a_file_over_many_inputs(
    acp: Acp, served: Served, file: Path, tmp_path: Path
) -> None:
    served.house.sessions.ends_at_once = True
    lines = tmp_path / "inputs.jsonl"
    lines.write_text('{"query": "a"}\n\n{"query": 0.10}\n')
    ran = acp("run", str(file), "--input-file", str(lines), "--label", "for=test")
    assert ran.exit_code == 0, ran.output
    assert ran.stdout.count("SUCCEEDED") == 2
    assert '{"query": 0.10}' in ran.stdout
    assert "2 SUCCEEDED; see `acp sessions trace" in ran.stderr
    kept = served.house.sessions.kept.values()
    assert {one.request.workflow for one in kept} == {"hotline@1.0.0"}
    assert all(one.request.labels == {"for": "test"} for one in kept)


def test_running_a_table_gives_each_row_as_an_object(
    acp: Acp, served: Served, tmp_path: Path
) -> None:
    served.house.sessions.ends_at_once = True
    table = tmp_path / "inputs.csv"
    table.write_text('text,category\n"What, now?",card\nno\n', encoding="utf-8")
    ran = acp("run", "hotline", "--input-file", str(table), "--json", "--limit", "1")
    (view,) = [json.loads(line) for line in ran.stdout.splitlines()]
    assert view["output"] == {"text": "What, now?", "category": "card"}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--input", "{"), "--input"),
        (("--input-file", "nowhere.jsonl"), "cannot be read"),
        (("--label", "novalue"), "name=value"),
    ],
)
def test_a_wrong_input_is_told_before_anything_runs(
    acp: Acp, served: Served, arguments: tuple[str, ...], said: str
) -> None:
    ran = acp("run", "hotline", *arguments)
    assert ran.exit_code == 2
    assert said in ran.stderr
    assert not served.house.sessions.kept


def test_a_session_that_does_not_succeed_is_exit_code_1(acp: Acp, served: Served) -> None:
    unknown = acp("run", "unknown")
    assert (unknown.exit_code, "no workflow" in unknown.stderr) == (3, True)


def test_looking_at_sessions(acp: Acp, served: Served) -> None:
    served.house.sessions.ends_at_once = True
    for _ in range(3):
        acp("run", "hotline", "--input", "{}")
    rows = acp("sessions", "list", "--json").stdout.splitlines()
    ids = [json.loads(row)["session_id"] for row in rows]
    assert len(ids) == 3
    assert ids == sorted(ids, reverse=True), "the newest stands where one looks first"
    assert len(acp("sessions", "list", "--json", "--limit", "2").stdout.splitlines()) == 2
    table = acp("sessions", "list").stdout
    assert all(one in table for one in ids), "an id is never cut"
    assert acp("sessions", "list", "--status", "happy").exit_code == 2
    shown = json.loads(acp("sessions", "show", ids[0], "--json").stdout)
    assert shown["session_id"] == ids[0]
    lineage = acp("lineage", shown["lineage_id"], "--json")
    assert json.loads(lineage.stdout)["head"]["session_id"] == ids[0]
    assert ids[0] in acp("sessions", "trajectory", ids[0]).stdout
    assert "is SUCCEEDED" in acp("sessions", "cancel", ids[0]).stdout
    assert acp("sessions", "delete", ids[0], stdin="n\n").exit_code == 8
    assert acp("sessions", "delete", ids[0], "--yes").exit_code == 0
    assert acp("sessions", "delete", ids[1], "--json", "--yes").stdout.startswith("{")
    gone = acp("sessions", "show", ids[0])
    assert (gone.exit_code, "NOT_FOUND" in gone.stderr) == (3, True)


def test_following_prints_each_event_until_the_session_ends(acp: Acp, served: Served) -> None:
    served.house.sessions.ends_at_once = True
    acp("run", "hotline")
    (session_id,) = served.house.sessions.kept
    served.soon(lambda: served.house.sessions.happen(session_id, "Opened", b'{"a": 0.10}'))
    served.soon(lambda: served.house.sessions.happen(session_id, "Ended"))
    followed = acp("sessions", "follow", session_id, "--json").stdout.splitlines()
    assert [json.loads(line)["type"] for line in followed] == ["Opened", "Ended"]
    assert '{"a": 0.10}' in followed[0]
    assert "Ended" in acp("sessions", "follow", session_id, "--after", "1").stdout
    assert acp("sessions", "follow", session_id, "--after", "2").stdout == ""


def test_the_life_of_a_component(acp: Acp) -> None:
    added = acp("components", "add", "http://ledger:9000")
    component_id = added.stdout.split()[0]
    assert "ledger@1.0.0 registered" in added.stdout
    assert component_id in acp("components", "list").stdout
    assert '"ledger"' in acp("components", "show", component_id).stdout
    assert acp("components", "drain", component_id).exit_code == 0
    assert acp("components", "remove", component_id).exit_code == 0
    assert acp("components", "show", component_id).exit_code == 3


def test_tokens_through_a_running_gateway(acp: Acp) -> None:
    made = acp("tokens", "create", "--scope", "submit", "--scope", "annotate", "--label", "ci")
    assert made.stdout.startswith("acp_")
    row = json.loads(acp("tokens", "list", "--json").stdout)
    assert (row["label"], row["scopes"]) == ("ci", ["annotate", "submit"])
    assert acp("tokens", "revoke", row["token_id"]).exit_code == 0
    assert acp("tokens", "list", "--json").stdout == ""
    assert acp("tokens", "create", "--scope", "root").exit_code == 2


def test_a_gateway_that_is_not_there_is_exit_code_5_and_says_what_to_do(
    root: typer.Typer, free_port: object
) -> None:
    assert callable(free_port)
    url = f"http://127.0.0.1:{free_port()}"
    ran = CliRunner().invoke(root, ["sessions", "list", "--gateway", url])
    assert ran.exit_code == 5
    assert "acp serve" in ran.stderr
    as_json = CliRunner().invoke(root, ["sessions", "show", "x", "--gateway", url, "--json"])
    assert json.loads(as_json.stderr)["error"]["reason"] == "UNAVAILABLE"


def test_print_config_shows_every_setting_with_its_source(
    root: typer.Typer, tmp_path: Path
) -> None:
    config = tmp_path / "acp.yaml"
    config.write_text("limits: {live_sessions: 7}\n")
    arguments = ["serve", "--config", str(config), "--http", "127.0.0.1:0", "--print-config"]
    shown = CliRunner().invoke(root, arguments, env={"ACP_JOURNAL_SYNC": "false"})
    assert shown.exit_code == 0
    for setting, source in [
        ("limits.live_sessions", str(config)),
        ("http.bind", "--http"),
        ("journal.sync", "ACP_JOURNAL_SYNC"),
        ("auth.mode", "default"),
    ]:
        (line,) = [one for one in shown.stdout.splitlines() if f" {setting} " in one]
        assert source in line
    tree = json.loads(CliRunner().invoke(root, [*arguments, "--json"]).stdout)
    assert tree["limits"]["live_sessions"] == 7


def test_settings_that_cannot_be_used_name_their_source(root: typer.Typer) -> None:
    ran = CliRunner().invoke(root, ["serve", "--http", "nonsense"])
    assert ran.exit_code == 2
    assert "http.bind (from --http)" in ran.stderr


def test_erasing_asks_on_standard_error_and_a_program_must_say_yes(
    acp: Acp, served: Served
) -> None:
    served.house.sessions.ends_at_once = True
    acp("run", "hotline", "--input", "{}")
    (session_id,) = served.house.sessions.kept
    asked = acp("sessions", "delete", session_id, stdin="")
    assert (asked.exit_code, asked.stdout) == (8, "")
    assert "for good? [y/N]" in asked.stderr
    program = acp("sessions", "delete", session_id, "--json", stdin="y\n")
    assert (program.exit_code, program.stdout) == (2, "")
    assert "--yes" in json.loads(program.stderr)["error"]["message"]
    assert acp("sessions", "show", session_id).exit_code == 0
