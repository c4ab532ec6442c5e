"""A place that takes no file is told before the work, in one line, and never as a failed check."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from acp_spec.sdk.cli import Exit
from gateway.cli import contract, replay_traffic, simulate

CONTRACT = "workflow: desk\ninput_schema: {type: object}\n"
REPLAY = ("--workflow", "desk", "--candidate", "desk@2.0.0", "--gateway", "http://127.0.0.1:1")


@pytest.mark.parametrize("option", ["--junit", "--markdown"])
@pytest.mark.parametrize(("place", "told"), [("no/x", "no folder"), (".", "is a folder")])
def test_a_report_without_a_place_is_a_wrong_use_of_the_check(
    option: str, place: str, told: str, tmp_path: Path
) -> None:
    """A pipeline read exit code 1 as a contract that does not hold; it was a traceback."""
    file = tmp_path / "contract.yaml"
    file.write_text(CONTRACT, encoding="utf-8")
    words = ["check", str(file), option, str(tmp_path / place)]
    result = CliRunner().invoke(contract.app, words)
    assert result.exit_code == Exit.USAGE, result.output
    assert f"{option}: " in result.output
    assert told in result.output
    assert CliRunner().invoke(contract.app, words[:2]).exit_code == Exit.OK


def test_what_cannot_be_written_after_all_is_told_behind_the_figures(tmp_path: Path) -> None:
    file = tmp_path / "contract.yaml"
    file.write_text(CONTRACT, encoding="utf-8")
    full = Path("/dev/full")
    result = CliRunner().invoke(contract.app, ["check", str(file), "--junit", str(full)])
    assert result.exit_code == Exit.USAGE, result.output
    assert "the contract holds" in result.output
    assert "--junit: /dev/full cannot be written: No space left on device" in result.output


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--report", "no/x"), "--report: there is no folder"),
        (("--success-drop", "nan"), "--success-drop: nan is no limit"),
        (("--equal-least", "nan"), "--equal-least: nan is no limit"),
        (("--limit", "-1"), "--limit"),
    ],
)
def test_a_replay_whose_verdict_would_be_none_does_not_begin(
    words: tuple[str, ...], told: str, tmp_path: Path
) -> None:
    result = CliRunner().invoke(replay_traffic.app, [*REPLAY, "--from", str(tmp_path), *words])
    assert result.exit_code == Exit.USAGE, result.output
    assert told in result.output


@pytest.mark.parametrize(
    "words",
    [
        ("--workers", "0"),
        ("--sessions", "0"),
        ("--seconds", "-1"),
        ("--world", "-1"),
        ("--world", "3", "--only", "99999"),
    ],
)
def test_a_simulation_of_nothing_proves_nothing(words: tuple[str, ...]) -> None:
    """Without a worker no session ran, no law was broken, and the exit code was 0."""
    assert CliRunner().invoke(simulate.app, list(words)).exit_code == Exit.USAGE


def test_trajectories_without_a_place_are_told_before_the_simulation(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    result = CliRunner().invoke(simulate.app, ["--out", str(file / "sub")])
    assert result.exit_code == Exit.USAGE, result.output
    assert "cannot be made: Not a directory" in result.output
