"""What has to be kept of a simulated world to live it again, and what came of it."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from gateway.simulation.books import Violation

SESSIONS = 40
"""Sessions of one world: enough to queue for each other, few enough to read about."""

POOL = 48
"""Workflow files that one seed draws from: parsing one costs as much as ten sessions."""

FILES = 6
"""Files of one world."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A world by its name. `only` and `without` make it smaller and leave the rest as it was."""

    seed: int
    world: int
    sessions: int = SESSIONS
    only: frozenset[int] | None = None
    without: frozenset[str] = frozenset()
    recovery: Mapping[str, object] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """What all chance of this world hangs on."""
        return f"{self.seed}/{self.world}"

    def files(self) -> tuple[int, ...]:
        """Numbers of the workflow files that this world runs."""
        first = self.seed % 1_000 * POOL
        return tuple(first + (self.world * 5 + place * 7) % POOL for place in range(FILES))

    def numbers(self) -> tuple[int, ...]:
        every = range(self.sessions)
        return tuple(every if self.only is None else (n for n in every if n in self.only))


@dataclass(slots=True, kw_only=True)
class Lived:
    """What came of a world. `calls`: calls per session; `met`: sessions per fault kind."""

    scenario: Scenario
    violations: list[Violation]
    sessions: int
    calls: list[int]
    faulty: int
    met: Counter[str]
    digest: int
    lives: int
    ends: Counter[str]
    steps: int
    virtual_s: float
    lines: list[bytes]
    twins: int
    """Attempts of twins that left the gateway."""
