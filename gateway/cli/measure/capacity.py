"""What saturates first, and at what load: the utilisation law, with measured demands.

A session demands D units of a resource that has C units a second; at X sessions a second it is
busy to X * D / C, so it carries at most C / D. The least of these is the system's limit, whatever
the others are. Nothing here measures.
"""

from collections.abc import Sequence

import msgspec


class Resource(msgspec.Struct, frozen=True, kw_only=True):
    """Something every session needs a share of. `how`: where both numbers come from."""

    name: str
    unit: str
    capacity_per_s: float
    demand: float
    how: str

    @property
    def sessions_per_s(self) -> float:
        return self.capacity_per_s / self.demand if self.demand > 0 else float("inf")

    def busy_at(self, sessions_per_s: float) -> float:
        """The share of it that is used at this load; over 1 it cannot keep up."""
        return sessions_per_s * self.demand / self.capacity_per_s


class Saturation(msgspec.Struct, frozen=True, kw_only=True):
    """One row of the answer, with its arithmetic in words."""

    resource: str
    sessions_per_s_max: float
    busy_at_promise: float
    arithmetic: str


def saturations(resources: Sequence[Resource], *, promised_per_s: float) -> list[Saturation]:
    """Every resource that is used at all, the first to saturate first."""
    used = [one for one in resources if one.demand > 0]
    ordered = sorted(used, key=lambda one: one.sessions_per_s)
    return [
        Saturation(
            resource=one.name,
            sessions_per_s_max=round(one.sessions_per_s, 1),
            busy_at_promise=round(one.busy_at(promised_per_s), 3),
            arithmetic=_arithmetic(one),
        )
        for one in ordered
    ]


def _arithmetic(one: Resource) -> str:
    return (
        f"{number(one.capacity_per_s)} {one.unit}/s / {number(one.demand)} {one.unit} a session"
        f" = {number(one.sessions_per_s)} sessions/s ({one.how})"
    )


def number(value: float) -> str:
    """Four digits that matter, and no powers of ten."""
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"
