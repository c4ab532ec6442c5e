"""The archive's pass, as this gateway starts it, and what tells that one is due.

A pass gets its order on standard input, where also the secrets of the store go; its log is what it
tells on standard output.
"""

import importlib.util
import os
from collections.abc import Callable
from typing import Final

import msgspec

from gateway.assembly.ordered_process import OrderedProcess, begun
from gateway.config.credentials import CredentialUnavailable, resolve_credential
from gateway.config.settings import Settings
from gateway.runtime.archive import Archive, ArchiveParts, Launch, Wish
from gateway.runtime.clock import Clock
from gateway.stores.archive.leaving import day_before, leaving
from gateway.stores.archive.marker import left
from gateway.stores.archive.object_store import is_directory, look_at
from gateway.stores.archive.order import ArchiveOrder, Said
from gateway.stores.trajectory_log import FOLDER
from gateway.telemetry.logs import get_log
from gateway.telemetry.metrics import Metrics

MODULE: Final = "gateway.stores.archive.child"
ARCHIVE_FOLDER: Final = "archive"
RECORDS_FOLDER: Final = "records"
WORK_FOLDER: Final = "archive-work"
NEVER_DAYS: Final = 1_000_000
"""Nothing is that old: for an archive that is not enabled, but may still have to forget."""

LINE_BYTES_MAX: Final = 64 << 20
"""Of what a pass tells: a file of a million sessions that expires is named in one line."""

log = get_log("gateway.archive")

HINT: Final = "the archive is an extra: pip install 'acp-decision-gateway[records]'"


def archive_parts(settings: Settings, name: str, *, clock: Clock) -> ArchiveParts:
    """What the archive of this gateway is made of. `name`: the gateway's id."""
    log_dir = settings.data_dir / FOLDER
    if settings.archive.enabled:
        tell_if_missing("archive_cannot_be_reached", lambda: _see_the_place(settings))
    return ArchiveParts(
        launch=_launch(settings, name, clock=clock),
        due=lambda: is_due(settings, clock.now_ms()),
        has_left=lambda: bool(left(log_dir).through),
        missing=lambda: _missing(settings),
        every_s=settings.archive.every_ms / 1000,
    )


def tell_if_missing(event: str, look: Callable[[], object]) -> None:
    """Told at the start, as nobody asks the store before something has to go there. It may come
    yet, so it keeps nobody from starting."""
    try:
        look()
    except OSError as problem:
        log.warning(event, what=str(problem))


def _see_the_place(settings: Settings) -> None:
    """What can be seen of it without asking anybody far away. Raises OSError."""
    archive_options(settings)
    look_at(archive_url(settings))


def watch_archive(metrics: Metrics, archive: Archive) -> None:
    """Gauges that are read when somebody scrapes."""
    reads = {
        "archive_files": ("Files in the archive", lambda: archive.counted.files),
        "archive_erasing": (
            "Deletions that have not reached the archive yet",
            lambda: archive.erasing,
        ),
        "archive_waiting_files": (
            "Files old enough to leave the log that the records have not got yet",
            lambda: archive.counted.waiting,
        ),
        "archive_failed_passes": (
            "Passes in a row that did not end well",
            lambda: archive.counted.tries,
        ),
    }
    for name, (text, read) in reads.items():
        metrics.watch(name, text, read=read)


def archive_url(settings: Settings) -> str:
    """Where the archive is."""
    return settings.archive.url or str((settings.data_dir / ARCHIVE_FOLDER).absolute())


def archive_options(settings: Settings) -> dict[str, str]:
    """Options of its store, with the secrets. Raises OSError naming the one that is not there."""
    given = settings.archive.credentials.items()
    try:
        secrets = {name: resolve_credential(ref, environ=os.environ) for name, ref in given}
    except CredentialUnavailable as problem:
        raise OSError(f"archive.credentials: {problem}") from problem
    return {**settings.archive.options, **secrets}


def is_due(settings: Settings, now_ms: int) -> bool:
    """Whether a file is old enough to leave, and may, or has had its time. Reads file names."""
    archive, log_dir = settings.archive, settings.data_dir / FOLDER
    if not archive.enabled:
        return False
    told = left(log_dir)
    kept_from = day_before(now_ms, archive.keep_days)
    if archive.keep_days and told.through and told.expired_before < kept_from:
        return True
    last_day = day_before(now_ms, archive.hot_days)
    records_dir = settings.data_dir / RECORDS_FOLDER
    return bool(leaving(log_dir, records_dir, last_day=last_day).free)


def _missing(settings: Settings) -> str:
    needed = ["pyarrow"] if is_directory(settings.archive.url) else ["pyarrow", "fsspec"]
    return "" if all(importlib.util.find_spec(name) for name in needed) else HINT


class _Pass(OrderedProcess):
    """One pass, as it goes on."""

    async def said(self) -> Said | None:
        line = await self.line()
        return msgspec.json.decode(line, type=Said) if line else None

    def agree(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(b"\n")


def _launch(settings: Settings, name: str, *, clock: Clock) -> Launch:
    async def start(wish: Wish) -> _Pass:
        order = _order(settings, name, wish=wish, now_ms=clock.now_ms())
        return _Pass(await begun(MODULE, order, line_bytes_max=LINE_BYTES_MAX))

    return start


def _order(settings: Settings, name: str, *, wish: Wish, now_ms: int) -> ArchiveOrder:
    archive, data_dir = settings.archive, settings.data_dir.absolute()
    return ArchiveOrder(
        log_dir=str(data_dir / FOLDER),
        records_dir=str(data_dir / RECORDS_FOLDER),
        work_dir=str(data_dir / WORK_FOLDER),
        url=archive_url(settings),
        options=archive_options(settings),
        gateway_id=name,
        now_ms=now_ms,
        hot_days=archive.hot_days if archive.enabled else NEVER_DAYS,
        keep_days=archive.keep_days if archive.enabled else 0,
        erase=wish.erase,
        check=wish.check,
    )
