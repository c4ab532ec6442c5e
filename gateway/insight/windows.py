"""Which sessions belong to a window: by time, workflow, and the versions that served them.

Only sessions that came to an end of their own by their components count: a cancelled one, a twin,
and one that the workflow's rules answered say nothing about components.
"""

import enum

import msgspec

from acp_spec.model.enums import SessionStatus
from acp_spec.model.trajectory import Trajectory


class LeftOut(enum.Enum):
    """Why a session is in no window, although it was read."""

    OTHER = "another time, workflow or version"
    NOT_ENDED = "not ended"
    CANCELLED = "cancelled"
    TWIN = "a twin, nobody's session"
    BY_RULES = "answered by the workflow's rules"


class Window(msgspec.Struct, frozen=True, kw_only=True):
    """`since_ms <= opened < until_ms` (None: no bound). `workflow`: a name, or name@version.
    `tenant`: whose sessions; empty: everybody's.
    `versions`: component -> version; each of them served in the session, and no other version."""

    since_ms: int | None = None
    until_ms: int | None = None
    workflow: str = ""
    tenant: str = ""
    versions: dict[str, str] = {}

    def left_out(self, one: Trajectory) -> LeftOut | None:
        """Why the session does not count here; None when it does."""
        if not self.holds(one):
            return LeftOut.OTHER
        if one.twin_of:
            return LeftOut.TWIN
        if one.status is SessionStatus.CANCELLED:
            return LeftOut.CANCELLED
        if one.status not in (SessionStatus.SUCCEEDED, SessionStatus.FAILED):
            return LeftOut.NOT_ENDED
        if one.fallback is not None and not one.fallback.probe:
            return LeftOut.BY_RULES
        return None

    def holds(self, one: Trajectory) -> bool:
        """Whether it opened in this time, and is of this workflow and these versions."""
        return self.spans(one.opened_at_ms) and self.concerns(one)

    def ended_in(self, one: Trajectory) -> bool:
        """The same by the time of its end, as metrics count it."""
        ended = one.ended_at_ms
        return ended is not None and self.spans(ended) and self.concerns(one)

    def spans(self, at_ms: int) -> bool:
        after = self.since_ms is None or at_ms >= self.since_ms
        return after and (self.until_ms is None or at_ms < self.until_ms)

    def concerns(self, one: Trajectory) -> bool:
        """Whether it is of this workflow, and only these versions of these components served it."""
        name = one.workflow.partition("@")[0]
        if self.tenant and self.tenant != one.tenant:
            return False
        if self.workflow and self.workflow not in (one.workflow, name):
            return False
        return all(served(one, name) == {version} for name, version in self.versions.items())


def served(one: Trajectory, component: str) -> set[str]:
    """The versions of a component that answered in this session."""
    return {row.component_version for row in one.calls if row.component == component}
