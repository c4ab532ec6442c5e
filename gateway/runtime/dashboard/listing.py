"""One page of sessions from two sources: those that are open, and those that the records have.

Both come newest first by id. A page shows what both have looked at, so that no session is skipped
where one source saw less far than the other, and none comes twice. Pure.
"""

from collections.abc import Mapping

from acp_spec.model.enums import TERMINAL_SESSION
from gateway.runtime.dashboard.answers import DashboardSessions
from gateway.runtime.dashboard.open_sessions import OPEN_STATUSES, Found

OPEN = frozenset(one.value for one in OPEN_STATUSES)
ENDED = frozenset(one.value for one in TERMINAL_SESSION)


def wants_open(filters: Mapping[str, str | int]) -> bool:
    """Whether sessions that are open can pass."""
    return filters.get("status") not in ENDED


def wants_ended(filters: Mapping[str, str | int]) -> bool:
    """Whether the records have to be asked."""
    return filters.get("status") not in OPEN


def merged(found: tuple[Found, ...], *, limit: int) -> DashboardSessions:
    """The page that these make; a session that ended in between is shown as ended."""
    down_to = max(one.down_to for one in found)
    by_id = {item.session_id: item for one in found for item in one.items}
    whole = sorted((name for name in by_id if name >= down_to), reverse=True)
    shown = whole[:limit]
    is_last = not down_to and len(whole) <= limit
    after = "" if is_last else (shown[-1] if len(shown) == limit or not down_to else down_to)
    return DashboardSessions(items=tuple(by_id[name] for name in shown), after=after)
