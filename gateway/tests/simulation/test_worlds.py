"""The real gateway under everything that can go wrong at once: no law breaks, and chance repeats.

A failing world is lived again with the command that the assertion prints.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from acp_spec.model.enums import SessionStatus
from gateway.assembly.simulated import make_house
from gateway.simulation import faults
from gateway.simulation.campaign import Order, Sum, figures, lived, sums
from gateway.simulation.scenario import SESSIONS, Scenario
from gateway.simulation.shrinking import command
from gateway.stores.reader import TrajectoryReader

SHORT_WORLDS = 16
LONG_WORLDS = 1_000
"""For each of two tests; five minutes of one core together. Counted and not timed, so that a slower
machine sees no fewer and a faster one no others."""


def check(total: Sum) -> None:
    for scenario, violation in total.broken:
        raise AssertionError(f"{violation}; again: {command(scenario)}")


def test_no_law_breaks_in_some_thousand_sessions_and_what_they_meet_is_told() -> None:
    order = Order(seed=29, sessions=SHORT_WORLDS * SESSIONS, workers=1)
    total = Sum()
    for part in sums(order, make_house):
        check(part)
        total.join(part)
    told = figures(total, order, seconds=1.0)
    assert told["violations"] == 0
    assert total.calls_median >= 4
    assert float(str(told["fault_share"])) >= 0.3
    met = {kind for kind in faults.KINDS if total.met[kind]}
    of_attempts = {kind for _, kind in (*faults.WIRE, *faults.OPERATION)}
    assert of_attempts <= met, "a kind that meets nobody proves nothing"
    assert len(met & set(faults.WORLD)) > 6, "those of whole worlds take more worlds to see all"
    ends = {SessionStatus.SUCCEEDED, SessionStatus.FAILED, SessionStatus.CANCELLED}
    assert all(total.ends[end.value] > 5 for end in ends)
    assert total.lives > total.worlds, "gateways died, and came back"


def test_calls_that_a_slow_sync_bunched_keep_the_rate_they_were_admitted_by() -> None:
    """Three calls within 31 ms at a target of 20 a second: two of them had waited for the disk."""
    found = lived(Scenario(seed=101, world=617), make_house)
    assert not found.violations


def test_a_disk_that_fails_when_all_is_over_brings_one_life_more_and_then_rest() -> None:
    """The k-th write, which was to fail, came 3 s after the last session's end."""
    found = lived(Scenario(seed=77, world=1507), make_house)
    assert not found.violations


def test_what_the_sync_thread_does_beside_syncs_is_none_that_a_call_may_wait_for() -> None:
    """A session was erased while the disk was slow, and the checker took that for a sync."""
    found = lived(Scenario(seed=101, world=426), make_house)
    assert not found.violations


def test_versions_are_tried_on_the_sessions_of_a_world_and_their_twins_ask_what_only_reads() -> (
    None
):
    both = [lived(Scenario(seed=1, world=world), make_house) for world in (5, 20)]
    assert not [one for found in both for one in found.violations]
    assert sum(found.met["rollout"] for found in both) > 3
    assert sum(found.twins for found in both) > 3


def test_the_same_seed_gives_the_same_story() -> None:
    first, again = (lived(Scenario(seed=5, world=3), make_house) for _ in range(2))
    assert first.digest == again.digest
    assert (first.steps, first.virtual_s) == (again.steps, again.virtual_s)
    assert lived(Scenario(seed=6, world=3), make_house).digest != first.digest


def test_the_story_does_not_hang_on_how_python_hashes() -> None:
    digests = set()
    for hash_seed in ("0", "77"):
        done = subprocess.run(
            [sys.executable, "-m", "gateway", "simulate", "--seed", "3", "--sessions", "80"],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            check=True,
        )
        digests.add(json.loads(done.stdout.splitlines()[-1])["digest"])
    assert len(digests) == 1


def test_leaving_out_sessions_and_faults_leaves_the_others_as_they_were() -> None:
    """What makes a scenario small must not make it another one."""
    whole = Scenario(seed=8, world=1)
    calm = lived(Scenario(seed=8, world=1, without=frozenset(faults.KINDS)), make_house)
    assert not calm.faulty
    assert not calm.violations
    few = lived(Scenario(seed=8, world=1, only=frozenset({2, 5})), make_house)
    assert few.sessions <= 2
    assert lived(whole, make_house).digest == lived(whole, make_house).digest


def test_trajectories_are_written_as_a_gateway_writes_them_and_recover_by_the_policy_file(
    tmp_path: Path,
) -> None:
    policy, out = tmp_path / "policy.yaml", tmp_path / "out"
    policy.write_text("recovery: {policy: backoff, base_ms: 11, max_ms: 22}\n", encoding="utf-8")
    done = subprocess.run(
        [
            *(sys.executable, "-m", "gateway", "simulate", "--seed", "4", "--sessions", "80"),
            *("--out", str(out), "--policy", str(policy), "--json"),
        ],
        capture_output=True,
        check=True,
    )
    told = json.loads(done.stdout.splitlines()[-1])
    reader = TrajectoryReader(out, reviewed_only=False)
    read = list(reader)
    assert not reader.counts.places
    assert 0.8 * told["sessions"] < len(read) <= told["sessions"]
    assert all(row.ended_at for row in read)
    waits = [
        option.params.get("wait_ms", 0)
        for row in read
        if row.workflow
        for decision in row.decisions
        if decision.features["retry_after_ms"] is None
        for option in decision.options
    ]
    short = [wait_ms for wait_ms in waits if wait_ms <= 22]
    assert len(waits) > 20
    assert len(short) > 0.9 * len(waits), "the others wait for an open breaker"


def test_a_policy_file_that_is_none_is_refused(tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text("policy: {nonsense: 1}\n", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "gateway", "simulate", "--policy", str(policy)],
        capture_output=True,
        check=False,
    )
    assert done.returncode == 2
    assert b"policy.yaml" in done.stderr


@pytest.mark.long
@pytest.mark.parametrize("seed", [101, 102])
def test_no_law_breaks_for_minutes(seed: int) -> None:
    order = Order(seed=seed, sessions=LONG_WORLDS * SESSIONS, workers=1)
    for part in sums(order, make_house):
        check(part)
