"""The dashboard's data, wired: from the records, the index, the registry and the sessions."""

from pathlib import Path
from typing import NamedTuple

from gateway.assembly.contributing import contributions_of
from gateway.assembly.parameters import RowParts
from gateway.runtime.dashboard.dashboard import Dashboard, DashboardParts
from gateway.runtime.dashboard.open_sessions import OpenSessions
from gateway.runtime.records import Records
from gateway.runtime.service import SessionService
from gateway.telemetry.metrics import Metrics


class Surroundings(NamedTuple):
    """Where the trajectories lie, and what is scraped."""

    data_dir: Path
    metrics: Metrics


def dashboard_of(
    records: Records,
    sessions: SessionService,
    *,
    open_now: OpenSessions,
    row: RowParts,
    around: Surroundings,
) -> Dashboard:
    """The dashboard of one gateway."""
    dashboard = Dashboard(
        DashboardParts(
            records=records,
            sessions=sessions,
            open_now=open_now,
            components=row.registry.list,
            targets=row.targets,
            compute=contributions_of(around.data_dir),
            clock=row.clock,
        )
    )
    around.metrics.watch_labelled(
        "contribution_variance",
        "Variance of the components' contributions, as the dashboard last computed it",
        label="workflow",
        read=dashboard.variances.gauge,
    )
    return dashboard
