"""What `acp doctor` says: something about everything, and what to do where it is not well."""

import contextlib
import json
import socket
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from acp_spec.model.sandbox import Guard
from gateway.cli import checks
from gateway.cli.checks import Mark, Tool


def test_the_doctor_speaks_of_everything_and_finds_that_tests_can_run_here(
    root: typer.Typer, tmp_path: Path
) -> None:
    ran = CliRunner().invoke(root, ["doctor", "--data-dir", str(tmp_path / "new"), "--json"])
    found = [json.loads(line) for line in ran.stdout.splitlines()]
    words = " ".join(one["what"] for one in found)
    for what in ("Python", "libraries", "8080", "8081", "cobc", "go", "javac", "node"):
        assert what in words
    guards = {f"sandbox {guard.value}" for guard in Guard}
    assert guards | {"disk space", "disk syncs"} <= {one["what"] for one in found}
    assert ran.exit_code == 0
    assert all(one["advice"] for one in found if one["mark"] != "ok")
    assert not (tmp_path / "new").exists(), "looking changes nothing"


def test_a_missing_tool_names_its_package() -> None:
    found = checks.tool(Tool("no-such-program", "--version", "Klingon", "klingon-tools"))
    assert found.mark is Mark.LESS
    assert "apt-get install klingon-tools" in found.advice


def test_a_tool_that_does_not_run_is_not_good() -> None:
    assert checks.tool(Tool("false", "--version", "Nothing", "coreutils")).mark is Mark.LESS


def test_a_taken_port_is_no_obstacle_but_told() -> None:
    with socket.socket() as taken:
        with contextlib.suppress(OSError):
            taken.bind(("127.0.0.1", 8080))
        found = next(iter(checks.ports()))
    assert found.mark is Mark.LESS
    assert "--http" in found.advice


def test_a_directory_that_cannot_be_written_is_broken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(_: Path) -> float:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(checks, "_syncs_per_s", refused)
    found = checks.syncs(tmp_path)
    assert found.mark is Mark.BROKEN
    assert "writable" in found.advice
