"""The trajectory log in both its tiers: files that left for the archive come first, then the rest.

An archived file is fetched and unpacked when reading comes to it, one at a time; names and offsets
are those that it had in the log, so that a place stays what it is wherever its file lies. Blocks.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Final, Protocol

from gateway.stores.archive.manifest import Manifest, order_of
from gateway.stores.archive.marker import left
from gateway.stores.records import log_tail
from gateway.stores.records.log_tail import Batch, Place
from gateway.stores.records.order import Order

THAWED: Final = "thawed"
_END: Final = 1 << 62
"""Beyond the last line of any file."""


class Cold(Protocol):
    """Where the files that left are (`gateway.stores.archive.cold_tier`)."""

    def files(self) -> list[str]: ...

    def manifest(self, file: str) -> Manifest | None: ...

    def raw(self, manifest: Manifest, target: Path) -> None: ...


OpenCold = Callable[[], Cold]
OnDamaged = Callable[[str, str], None]
"""An archived file that cannot be read, and why; reading goes on behind it."""


def nothing_cold() -> Cold:
    """For a log that no file ever leaves."""
    raise FileNotFoundError("files have left this log, and nobody said where they are")


def cold_tier_of(order: Order, log_directory: Path, *, state_directory: Path) -> OpenCold:
    """The archive of an order, opened when it is needed first."""
    opened: list[Cold] = []

    def open_cold() -> Cold:
        from gateway.stores.archive.cold_tier import ColdTier
        from gateway.stores.archive.object_store import open_store

        if not opened:
            told = left(log_directory)
            store = open_store(order.archive_url or told.url, order.archive_options)
            work = state_directory / THAWED
            cold = ColdTier(store, told.gateway_id, work=work)
            cold.check_place()
            opened.append(cold)
        return opened[0]

    return open_cold


class Tiers:
    """One log. `cold` is asked for when reading comes to a file that has left. Raises OSError."""

    def __init__(
        self, log_directory: Path, state_directory: Path, *, cold: OpenCold, damaged: OnDamaged
    ) -> None:
        self._log = log_directory
        self._thawed = state_directory / THAWED
        self._open = cold
        self._damaged = damaged
        self._drop_thawed()

    def next_batch(self, place: Place) -> Batch | None:
        """The boundaries of what comes after `place`; None while there is nothing."""
        through = left(self._log).through
        if through and order_of(place.file) <= order_of(through):
            found = log_tail.next_batch(self._thawed, place) or self._next_cold(place)
            if found is not None:
                return found
        if self._has_thawed:
            self._drop_thawed()  # content of sessions: no longer than it is needed
        return log_tail.next_batch(self._log, place)

    def lines_of(self, batch: Batch) -> list[bytes]:
        """The batch's lines as they stand now, wherever their file is by now."""
        lines = log_tail.lines_of(self._log, batch)
        if lines or order_of(batch.file) > order_of(left(self._log).through):
            return lines
        self._thaw(batch.file)
        return log_tail.lines_of(self._thawed, batch)

    def bytes_after(self, place: Place) -> int:
        """How much of the hot tier is still to be read."""
        return log_tail.bytes_after(self._log, place)

    def end(self) -> Place:
        """Where the log ends now."""
        return log_tail.end_of(self._log)

    def hot_start(self) -> Place:
        """Where what has not left begins."""
        through = left(self._log).through
        return Place(through, _END) if through else Place()

    def _next_cold(self, place: Place) -> Batch | None:
        """Of the files that left: the one of the place, and those behind it."""
        if place.offset == _END:
            return None  # behind all of them: no reason to open a store that may be far away
        for file in self._open().files():
            if order_of(file) < order_of(place.file):
                continue
            if not self._thaw(file):
                continue
            start = place if file == place.file else Place(file)
            found = log_tail.next_batch(self._thawed, start)
            if found is not None:
                return found
        return None

    def _thaw(self, file: str) -> bool:
        """Make it the one unpacked file; False if it cannot be read or is there no more."""
        from gateway.stores.archive.cold_tier import ArchiveDamaged
        from gateway.stores.archive.manifest import ManifestUnreadable

        target = self._thawed / file
        if target.is_file():
            return True
        self._drop_thawed()
        self._has_thawed = True
        cold = self._open()
        target.parent.mkdir(parents=True, exist_ok=True)
        part = target.with_suffix(".part")
        try:
            manifest = cold.manifest(file)
            if manifest is None:
                return False
            cold.raw(manifest, part)
        except (ArchiveDamaged, ManifestUnreadable) as problem:
            part.unlink(missing_ok=True)
            self._damaged(file, str(problem))
            return False
        part.replace(target)
        return True

    def _drop_thawed(self) -> None:
        for path in self._thawed.glob("*/*"):
            path.unlink()
        self._has_thawed = False
