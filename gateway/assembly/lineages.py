"""Lineages as this gateway knows them: where sessions are, and where logs and traces lie."""

from pathlib import Path

from gateway.assembly.masking import masker_of
from gateway.config.settings import Settings
from gateway.runtime.driver import Driver
from gateway.runtime.lineage import LineagePlaces, Lineages, Trajectories
from gateway.runtime.lineage_search import LineageSearch
from gateway.runtime.records import Records

_STANDARD_ERROR = Path("/proc/self/fd/2")


def lineages_of(
    settings: Settings, sessions: Trajectories, *, driver: Driver, records: Records
) -> Lineages:
    """The lineages of this gateway's sessions."""
    return Lineages(
        sessions=sessions,
        search=LineageSearch(
            in_memory=driver.sessions.states,
            synced=driver.committer.synced,
            open_sessions=lambda: driver.open_sessions,
            query=records.query,
        ),
        masker=masker_of(settings),
        places=LineagePlaces(
            trace_url=settings.tracing.url_template,
            is_tracing=settings.tracing.enabled,
            log_url=settings.log.url_template,
            log_file=_log_file(),
        ),
    )


def _log_file() -> str:
    """Where log lines go, if that is a file: a terminal and a pipe keep nothing."""
    try:
        place = _STANDARD_ERROR.resolve(strict=True)
        return str(place) if place.is_file() else ""
    except OSError:
        return ""
