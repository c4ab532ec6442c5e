"""The dashboard's data, wired: from the records, the index, the registry and the sessions."""

from typing import NamedTuple

from gateway.assembly.contributing import contributions_of
from gateway.assembly.masking import masker_of
from gateway.assembly.parameters import RowParts
from gateway.config.settings import Settings
from gateway.runtime.dashboard.dashboard import Dashboard, DashboardParts
from gateway.runtime.dashboard.open_sessions import OpenSessions
from gateway.runtime.dashboard.variance import Compute
from gateway.runtime.records import Records
from gateway.runtime.service import SessionService
from gateway.telemetry.metrics import Metrics


class Surroundings(NamedTuple):
    """What was set, and what is scraped."""

    settings: Settings
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
            compute=_contributions(around.settings),
            masker=masker_of(around.settings),
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


def _contributions(settings: Settings) -> Compute:
    """Over the hot tier: what may be in the archive is not told of by half."""
    archive = settings.archive
    hot_days = archive.hot_days if archive.enabled else None
    return contributions_of(settings.data_dir, hot_days=hot_days)
