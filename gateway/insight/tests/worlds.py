"""Workflows of two or three simulated components, as whole populations and as draws from them.

A population holds every way through the workflow as often as it is likely, so that what is computed
from it can be held against a value known on paper, without chance.
"""

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from math import lcm

import msgspec
import numpy as np

from gateway.insight.samples import SessionSample, StepSample

Outcomes = Mapping[str, Fraction]
"""What a component gives, with its probability."""
Behaviour = Callable[[str], Outcomes]
"""From its input (as text) to its outcomes."""

HALF = Fraction(1, 2)


def always(outcome: str) -> Behaviour:
    return lambda given: {outcome: Fraction(1)}


def coin(chance: Fraction) -> Behaviour:
    """1 with this chance, else 0, whatever it is given."""
    return lambda given: {"1": chance, "0": 1 - chance}


def by_input(table: Mapping[str, Behaviour]) -> Behaviour:
    return lambda given: table[given](given)


class World:
    """`wiring[name]` gives a component's input from the session's and the outcomes before it."""

    def __init__(
        self,
        behaviours: Mapping[str, Behaviour],
        reward: Callable[[Mapping[str, str]], float],
        *,
        inputs: Outcomes | None = None,
        wiring: Mapping[str, Callable[[Mapping[str, str]], str]] | None = None,
    ) -> None:
        self._behaviours = behaviours
        self._reward = reward
        self._inputs = inputs or {"x": Fraction(1)}
        self._wiring = wiring or {}

    def ways(self) -> list[tuple[Fraction, SessionSample]]:
        """Every way with its probability."""
        found: list[tuple[Fraction, SessionSample]] = []
        for given, chance in self._inputs.items():
            found += self._ways({"input": given}, (), chance)
        return [(chance, one) for chance, one in found if chance]

    def _ways(
        self, known: Mapping[str, str], steps: tuple[StepSample, ...], chance: Fraction
    ) -> list[tuple[Fraction, SessionSample]]:
        left = [name for name in self._behaviours if name not in known]
        if not left:
            reward = self._reward(known)
            return [(chance, SessionSample(given=known["input"], steps=steps, reward=reward))]
        name = left[0]
        given = self._wiring[name](known) if name in self._wiring else known["input"]
        found = []
        for came, share in self._behaviours[name](given).items():
            step = StepSample(slot=name, component=name, link=name, given=given, came=came)
            found += self._ways({**known, name: came}, (*steps, step), chance * share)
        return found

    def population(self) -> list[SessionSample]:
        """Each way as often as it is likely."""
        ways = self.ways()
        size = lcm(*(chance.denominator for chance, _ in ways))
        return [one for chance, one in ways for _ in range(int(chance * size))]

    def drawn(self, sessions: int, chance: np.random.Generator) -> list[SessionSample]:
        ways = self.ways()
        weights = [float(share) for share, _ in ways]
        return [ways[place][1] for place in chance.choice(len(ways), size=sessions, p=weights)]


def named(names: Sequence[str], slots: Sequence[SessionSample]) -> list[SessionSample]:
    """The same sessions, served by components of other names, in the order of their steps."""
    return [
        msgspec.structs.replace(
            one,
            steps=tuple(
                msgspec.structs.replace(step, component=name)
                for step, name in zip(one.steps, names, strict=True)
            ),
        )
        for one in slots
    ]
