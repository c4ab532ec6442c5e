"""The command: what it says, and the exit code that a script reads."""

import json
import socket
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from conformance_tests.cli import app
from conformance_tests.tests.conftest import Start

RUNNER = CliRunner()


def test_a_correct_component_gives_zero_and_four_reports(
    start_component: Start, tmp_path: Path
) -> None:
    urls = [part for url in start_component("echo") for part in ("--target", url)]
    done = RUNNER.invoke(app, ["conformance", *urls, "--report", str(tmp_path)])
    assert done.exit_code == 0, done.output
    assert "CONFORMANT" in done.output
    assert json.loads((tmp_path / "report.json").read_text())["conformant"]


def test_nobody_there_is_a_failure_of_every_case() -> None:
    done = RUNNER.invoke(app, ["conformance", "--target", "http://127.0.0.1:9", "--json"])
    assert done.exit_code == 1
    document = json.loads(done.stdout)
    assert document["counts"]["not tested"] == len(document["results"]) > 100


def test_a_run_that_asks_nothing_is_never_conformant(start_component: Start) -> None:
    """A typing mistake in --only, and cases that do not apply: neither may look green."""
    (url,) = [one for one in start_component("echo") if one.startswith("http")]
    asked = ["conformance", "--target", url]
    for names in (["HTT-999"], ["HTT-001", "HTT-999"]):
        only = [part for name in names for part in ("--only", name)]
        wrong = RUNNER.invoke(app, [*asked, *only])
        assert (wrong.exit_code, "HTT-999" in wrong.output) == (2, True), wrong.output
    foreign = RUNNER.invoke(app, [*asked, "--only", "OBS-001"])
    assert (foreign.exit_code, "NOT CONFORMANT" in foreign.output) == (1, True), foreign.output
    matrix = RUNNER.invoke(app, ["conformance", "matrix", "--only", "HTT-999", "--json"])
    assert (matrix.exit_code, "HTT-999" in matrix.output) == (2, True), matrix.output


def test_a_report_that_cannot_be_written_is_told_before_the_run(tmp_path: Path) -> None:
    taken = tmp_path / "file"
    taken.write_text("")
    asked = ["conformance", "--target", "http://127.0.0.1:9", "--report", str(taken / "below")]
    done = RUNNER.invoke(app, asked)
    assert (done.exit_code, "not tested" in done.output) == (2, False), done.output
    assert "--report" in done.output


def about_this(err: str) -> list[str]:
    """What was written; without gRPC's word on connections of other tests, which end when they
    like."""
    return [line for line in err.splitlines() if "Got goaway" not in line]


@pytest.mark.parametrize("bind", ["nonsense", "127.0.0.1", ":0", "127.0.0.1:99999", "h:-1", "h:x"])
def test_an_address_that_is_none_is_one_clear_error(
    bind: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """gRPC wrote a line of its own log about it, to the descriptor; 99999 it took for 34463."""
    done = RUNNER.invoke(app, ["conformance", "--transport", "attach", "--attach-bind", bind])
    assert done.exit_code == 2, done.output
    assert "write host:port" in done.output
    assert about_this(capfd.readouterr().err) == []


def test_an_address_that_is_taken_or_elsewhere_is_one_clear_error(
    capfd: pytest.CaptureFixture[str],
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        for bind in (f"127.0.0.1:{port}", "198.51.100.1:0", "name.invalid:0"):
            asked = ["conformance", "--transport", "attach", "--attach-bind", bind]
            done = RUNNER.invoke(app, asked)
            assert done.exit_code == 2, done.output
            assert f"{bind} cannot be bound" in done.output
    assert about_this(capfd.readouterr().err) == []


def test_a_command_that_ends_at_once_is_told_at_once_and_not_waited_for() -> None:
    asked = ["conformance", "--transport", "attach", "--json", "--command"]
    done = RUNNER.invoke(app, [*asked, f"{sys.executable} -c 'raise SystemExit(7)'"])
    document = json.loads(done.stdout)
    assert (done.exit_code, document["conformant"]) == (1, False)
    assert "has ended with exit code 7" in document["problems"][0]


def test_wrong_use_is_told() -> None:
    for arguments in (
        [],
        ["--target", "ftp://x"],
        ["--target", "http://127.0.0.1:9", "--kind", "thing"],
        ["--target", "grpc://127.0.0.1:9", "--transport", "http"],
        ["--target", "127.0.0.1:9", "--transport", "attach"],
        ["--target", "http://127.0.0.1:9", "--fixtures", "/nowhere.yaml"],
    ):
        assert RUNNER.invoke(app, ["conformance", *arguments]).exit_code == 2, arguments
