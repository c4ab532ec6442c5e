"""Which sessions a question of the dashboard is about: one tenant's, that ended in a window.

As metrics count: by the time of the end, twins never.
"""

from typing import Final

import msgspec

from gateway.stores.records.questions.question import ENDED_STATUSES

_IN_TIME: Final = (
    "ended_at >= fromUnixTimestamp64Milli({from_ms:Int64})"
    " AND ended_at < fromUnixTimestamp64Milli({to_ms:Int64})"
)
_ENDED: Final = (
    "FROM v_sessions WHERE tenant = {tenant:String} AND twin_of = ''"
    f" AND status IN {ENDED_STATUSES} AND {_IN_TIME}"
)
NAMED: Final = "(workflow = {workflow:String} OR startsWith(workflow, {workflow:String} || '@'))"
"""A workflow by its name, or by name@version."""

TOOK_PART: Final = "has(call_components, {component:String})"


class Span(msgspec.Struct, frozen=True, kw_only=True):
    """`from_ms <= ended < to_ms`. `workflow`: a name, or name@version; empty: all of them."""

    tenant: str
    from_ms: int
    to_ms: int
    workflow: str = ""
    component: str = ""

    @property
    def values(self) -> dict[str, str | int]:
        return {
            "tenant": self.tenant,
            "from_ms": self.from_ms,
            "to_ms": self.to_ms,
            "workflow": self.workflow,
            "component": self.component,
        }

    @property
    def ended(self) -> str:
        """The FROM and WHERE of what ended in it."""
        parts = [
            _ENDED,
            *([NAMED] if self.workflow else []),
            *([TOOK_PART] if self.component else []),
        ]
        return " AND ".join(parts)
