"""The checker's own test: a gateway with a bug in it breaks the law that the bug is about."""

import shlex
import subprocess
import sys

import pytest

from gateway.assembly.simulated import make_house
from gateway.simulation.campaign import Order, sums
from gateway.simulation.exchanging import exchanged
from gateway.simulation.mutants import MUTANTS

SECONDS_MAX = 60.0
RARE = {
    "retry-for-ever",
    "outlive-the-key",
    "lost-is-undone",
    "re-decide-at-recovery",
    "silence-is-proof",
    "deliver-twice",
    "leak-a-probe",
    "probe-with-all",
    "ignore-the-breaker",
    "long-memory",
    "forget-the-deadline",
    "believe-the-candidate",
}
"""These need a coincidence: some seconds until it happens."""

ALL = [pytest.param(name, marks=[pytest.mark.long] if name in RARE else []) for name in MUTANTS]


def test_there_are_mutants_enough() -> None:
    assert len(MUTANTS) >= 15


@pytest.mark.parametrize("name", ALL)
def test_the_mutant_is_found_by_the_law_it_breaks(name: str) -> None:
    mutant = MUTANTS[name]
    order = Order(seed=1, sessions=0, seconds=SECONDS_MAX, workers=1)
    with exchanged(mutant):
        broken = next((part.broken for part in sums(order, make_house) if part.broken), [])
    assert broken, f"{mutant.story}: nobody noticed in {SECONDS_MAX} s"
    assert broken[0][1].law in mutant.laws, broken[0]


def test_a_gateway_without_a_bug_breaks_nothing_where_the_mutants_do() -> None:
    for part in sums(Order(seed=1, sessions=160, workers=1), make_house):
        assert not part.broken


@pytest.mark.long
def test_what_was_found_is_told_small_and_with_the_command_that_replays_it() -> None:
    words = [sys.executable, "-m", "gateway", "simulate", "--workers", "1"]
    found = subprocess.run(
        [*words, "--mutant", "send-before-sync", "--sessions", "40"],
        capture_output=True,
        check=True,
        text=True,
    )
    assert "BROKEN: append first, act second" in found.stderr
    again = next(line for line in found.stderr.splitlines() if "again: acp " in line)
    names = shlex.split(again.partition("again: acp ")[2])
    assert "--only" in names
    told = subprocess.run(
        [sys.executable, "-m", "gateway", *names], capture_output=True, check=False, text=True
    )
    assert told.returncode == 1
    assert "append first, act second" in told.stderr
