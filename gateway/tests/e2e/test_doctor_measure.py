"""`acp doctor --measure` against a real gateway: it says what it found, and leaves nothing open."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gateway.tests.e2e.client import Client
from gateway.tests.served import Served

QUICK = ("--sessions", "24", "--seconds", "0.2")


def measured(target: str, *flags: str, folder: Path) -> tuple[int, dict[str, Any]]:
    command = [sys.executable, "-m", "gateway", "doctor", "--measure", "--json", *QUICK]
    ran = subprocess.run(
        [*command, "--target", target, "--data-dir", str(folder), *flags],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.stdout, ran.stderr
    document: dict[str, Any] = json.loads(ran.stdout)
    return ran.returncode, document


def test_every_part_is_measured_and_what_saturates_first_is_named(
    served: Served, start_components: Callable[..., dict[str, Any]], client: Client, tmp_path: Path
) -> None:
    echo = start_components("echo")["echo"]
    client.register(echo["url"])
    code, told = measured(served.url, folder=tmp_path)
    assert told["api"]["opened"] == 24
    assert told["api"]["left"] == 0
    assert told["api"]["open_cpu_us"] > 0
    assert told["disk"]["syncs_per_s"] > 0
    (way,) = [one for one in told["ways"] if one["component"].startswith("echo@")]
    assert way["round_trip_p50_ms"] > 0
    named = {one["resource"] for one in told["capacity"]}
    assert {"gateway CPU (its one loop)", "disk syncs", "disk writes"} <= named
    assert told["first"] == told["capacity"][0]
    fails = any(one["verdict"] == "fails" for one in told["claims"])
    assert code == (1 if fails else 0)
    assert not list(tmp_path.iterdir())


def test_its_sessions_are_removed_again(served: Served, client: Client, tmp_path: Path) -> None:
    measured(served.url, folder=tmp_path)
    page = client.get("/v1/sessions", status="RUNNING", workflow="acp-doctor").json
    assert page.get("sessions", []) == []
    left = client.get("/v1/sessions", workflow="acp-doctor", limit="500").json
    assert all(client.session(one["session_id"])["erased_at"] for one in left.get("sessions", []))


def test_a_claim_that_does_not_hold_is_exit_code_1(
    served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ACP_LIMITS_MAX_OPEN_SESSIONS", "10")
    code, told = measured(served.url, folder=tmp_path)
    assert code == 1
    (claim,) = [one for one in told["claims"] if one["claim"] == "limits.max_open_sessions"]
    assert claim["verdict"] == "fails"
    assert "ACP_LIMITS_MAX_OPEN_SESSIONS" in claim["advice"]


def test_without_a_gateway_the_rest_is_measured_and_its_claims_are_told_as_unmeasured(
    free_port: Callable[[], int], tmp_path: Path
) -> None:
    _, told = measured(f"http://127.0.0.1:{free_port()}", folder=tmp_path)
    assert told["api"] is None
    assert told["disk"]["syncs_per_s"] > 0
    unmeasured = [one for one in told["claims"] if one["verdict"] == "not measured"]
    assert any("the gateway at" in one["claim"] for one in unmeasured)
    assert "disk syncs" in {one["resource"] for one in told["capacity"]}
