"""A broken world made smaller while it stays broken: fewer fault kinds, fewer sessions.

Chance hangs on names, so what is left out changes nothing of what stays, except by its absence.
"""

import time
from collections.abc import Callable
from dataclasses import replace

from gateway.simulation import faults
from gateway.simulation.campaign import lived
from gateway.simulation.house import MakeHouse
from gateway.simulation.scenario import Scenario

SECONDS_MAX = 30.0
"""A smaller world is worth so much waiting; what is found until then is told."""

IsBroken = Callable[[Scenario], bool]


def shrunk(scenario: Scenario, make: MakeHouse, *, law: str) -> Scenario:
    """The smallest world found in which the same law is broken."""
    until_s = time.monotonic() + SECONDS_MAX

    def is_broken(candidate: Scenario) -> bool:
        if time.monotonic() > until_s:
            return False
        return any(one.law == law for one in lived(candidate, make).violations)

    for _ in range(2):
        before = scenario
        scenario = _without_faults(scenario, is_broken)
        scenario = _with_fewer(scenario, is_broken)
        if scenario == before:
            break
    return scenario


def _without_faults(scenario: Scenario, is_broken: IsBroken) -> Scenario:
    for kinds in (tuple(faults.WORLD), faults.KINDS[: -len(faults.WORLD)]):
        together = replace(scenario, without=scenario.without | set(kinds))
        if is_broken(together):
            scenario = together
            continue
        for kind in kinds:
            candidate = replace(scenario, without=scenario.without | {kind})
            if kind not in scenario.without and is_broken(candidate):
                scenario = candidate
    return scenario


def _with_fewer(scenario: Scenario, is_broken: IsBroken) -> Scenario:
    """Leave out half of them, a quarter, ... one by one (as delta debugging does)."""
    numbers = list(scenario.numbers())
    size = len(numbers) // 2
    while size:
        start = 0
        while start < len(numbers) and len(numbers) > 1:
            kept = numbers[:start] + numbers[start + size :]
            candidate = replace(scenario, only=frozenset(kept))
            if kept and is_broken(candidate):
                numbers, scenario = kept, candidate
            else:
                start += size
        size //= 2
    return scenario


def command(scenario: Scenario, mutant: str = "") -> str:
    """What replays it."""
    words = ["acp simulate", f"--seed {scenario.seed}", f"--world {scenario.world}"]
    if scenario.only is not None:
        words.append("--only " + ",".join(map(str, sorted(scenario.only))))
    if scenario.without:
        left = [kind for kind in faults.KINDS if kind not in scenario.without]
        words.append(f"--with '{','.join(left)}'")
    if mutant:
        words.append(f"--mutant {mutant}")
    return " ".join(words)
