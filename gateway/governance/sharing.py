"""Who gets how much of a queue: shares of tenants by weight, levels of priority, and ageing.

Priority orders a tenant's own sessions; between tenants weights do, so that nobody gets ahead of
others by calling everything urgent. A level is worth a fixed time of waiting: what is low waits
longer, never for ever.
"""

import msgspec

LEVEL_MS = 1_000
"""One level of priority is worth so much age: long for a queue that stands at 100 ms."""

PRIORITY_MAX = 10
"""Levels beyond count as this one: the lowest is passed for 20 s by the highest, no longer."""

UNDER_WAY = 2
"""Levels ahead for a session whose work has begun: it would be thrown away."""

OF_PRIORITY = {-2: 0.5, -1: 0.7, 0: 0.9, 1: 1.0}
"""Part of the target delay at which a newcomer of that level is let in; levels beyond as the last.
Half of it is enough for order among newcomers, and keeps the slots behind the queue busy."""

LIGHT = 2.0
"""For a tenant below its share: at its lowest priority as much as any above theirs may have."""


class Crowd(msgspec.Struct, frozen=True, kw_only=True):
    """Sessions open: of this tenant, of all; `weight` of this one, of all that have some open."""

    own: int
    total: int
    weight: float = 1.0
    total_weight: float = 1.0

    @property
    def share(self) -> float:
        """What this tenant may hold, were all of it divided by weight."""
        return self.total * self.weight / max(self.total_weight, self.weight)


def level(priority: int) -> int:
    """A priority as it counts."""
    return max(-PRIORITY_MAX, min(PRIORITY_MAX, priority))


def rank_ms(
    opened_at_ms: int, priority: int, *, step_priority: int = 0, under_way: bool = False
) -> int:
    """The place in a line: the smaller goes first. Age is what every level is paid in."""
    levels = level(priority) + level(step_priority) + (UNDER_WAY if under_way else 0)
    return opened_at_ms - levels * LEVEL_MS


def allowance(crowd: Crowd, priority: int) -> float:
    """The part of the target delay at which such a newcomer is still let in.

    Who holds less than its share is let in where others are not, whatever they call urgent. The
    lower the priority, the shorter the queue that a session is let into.
    """
    of_priority = OF_PRIORITY[max(-2, min(1, priority))]
    return of_priority * (LIGHT if crowd.own < crowd.share else 1.0)


def crowds(crowd: Crowd) -> bool:
    """Whether this tenant holds more than its share, at others' cost."""
    return crowd.own < crowd.total and crowd.own > crowd.share
