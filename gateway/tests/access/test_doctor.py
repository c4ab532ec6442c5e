"""`acp doctor --measure` where tokens are demanded: what a token may not do is not measured."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gateway.tests.access.conftest import MINE, Guarded


def measured(guarded: Guarded, token: str, *, folder: Path) -> dict[str, Any]:
    command = [sys.executable, "-m", "gateway", "doctor", "--measure", "--json"]
    command += ["--target", guarded.served.url, "--data-dir", str(folder), "--token", token]
    ran = subprocess.run(
        [*command, "--sessions", "8", "--seconds", "0.1"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.stdout, ran.stderr
    assert token not in ran.stdout + ran.stderr or not token
    told: dict[str, Any] = json.loads(ran.stdout)
    return told


def test_with_every_right_it_opens_and_removes_sessions(guarded: Guarded, tmp_path: Path) -> None:
    told = measured(guarded, guarded.token(MINE), folder=tmp_path)
    assert told["api"]["opened"] == 8
    assert told["api"]["left"] == 0


@pytest.mark.parametrize("name", ["submit", "component", ""])
def test_without_the_right_nothing_of_the_gateway_is_measured_and_it_says_so(
    guarded: Guarded, name: str, tmp_path: Path
) -> None:
    told = measured(guarded, guarded.token(name) if name else "", folder=tmp_path)
    assert told["api"] is None
    (claim,) = [one for one in told["claims"] if one["claim"].startswith("the gateway at")]
    assert claim["verdict"] == "not measured"
    assert claim["measured"]
