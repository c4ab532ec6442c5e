"""The command: what it says, and the exit code that a script reads."""

import json
from pathlib import Path

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
