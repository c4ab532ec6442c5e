"""The dashboard's data, wired: from the records, the index, the registry and the sessions."""

from gateway.assembly.parameters import RowParts
from gateway.runtime.dashboard.dashboard import Dashboard, DashboardParts
from gateway.runtime.dashboard.open_sessions import OpenSessions
from gateway.runtime.records import Records
from gateway.runtime.registry import Registry
from gateway.runtime.service import SessionService


def dashboard_of(
    records: Records,
    sessions: SessionService,
    *,
    open_now: OpenSessions,
    registry: Registry,
    row: RowParts,
) -> Dashboard:
    """The dashboard of one gateway."""
    return Dashboard(
        DashboardParts(
            records=records,
            sessions=sessions,
            open_now=open_now,
            components=registry.list,
            targets=row.targets,
            clock=row.clock,
        )
    )
