"""`acp ... | head`: who reads no more, and a standard output that takes no more."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

RULES = """
rewards: r
version: 1.0.0
rules:
  - {name: n, kind: outcome, each: feedback, part: session, value: feedback.score}
"""


def _run(words: list[str], *, into: int) -> "subprocess.CompletedProcess[bytes]":
    command = [sys.executable, "-m", "gateway", *words]
    return subprocess.run(command, stdout=into, stderr=subprocess.PIPE, check=False, timeout=120)


@pytest.mark.parametrize(
    ("words", "code"),
    [(["--help"], 0), (["rewards", "check", "RULES", "--json"], 0), (["doctor", "--nonsense"], 2)],
)
def test_a_reader_that_has_enough_is_no_failure_and_hides_none(
    words: list[str], code: int, tmp_path: Path
) -> None:
    """A script with pipefail stopped at `| head -1`: 1 is a check that failed."""
    (tmp_path / "rules.yaml").write_text(RULES)
    words = [str(tmp_path / "rules.yaml") if word == "RULES" else word for word in words]
    reads, writes = os.pipe()
    os.close(reads)
    ended = _run(words, into=writes)
    os.close(writes)
    assert ended.returncode == code, ended.stderr
    assert b"Broken" not in ended.stderr


def test_a_full_disk_behind_standard_output_is_told_in_a_line(tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text(RULES)
    with Path("/dev/full").open("wb") as full:
        ended = _run(["rewards", "check", str(tmp_path / "rules.yaml")], into=full.fileno())
    assert ended.returncode == 2
    assert ended.stderr == b"error: standard output cannot be written: No space left on device\n"


def test_without_a_standard_output_the_exit_code_says_it_all(tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text(RULES)
    words = [sys.executable, "-m", "gateway", "rewards", "check", str(tmp_path / "rules.yaml")]
    shell = ["sh", "-c", 'exec "$@" >&-', "sh", *words]
    assert subprocess.run(shell, check=False, timeout=120).returncode == 0
