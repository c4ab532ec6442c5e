"""One pass of the archive: erase what was deleted, move what is old enough, drop what is over.

Killed at any step, the next pass goes on without losing or doubling a line: a file leaves the log
only when the archive has it whole, was read back and says so, and when the records' feed is beyond
it. The newest file never leaves, as the gateway may be writing it. Blocks.
"""

from collections.abc import Callable
from pathlib import Path

import msgspec

from acp_spec.model.ids import is_session_id, time_ms_of
from acp_spec.model.times import rfc3339
from gateway.stores.archive.cold_tier import ArchiveDamaged, ColdTier
from gateway.stores.archive.leaving import day_before, leaving, written_on
from gateway.stores.archive.manifest import Manifest, ManifestUnreadable, order_of
from gateway.stores.archive.marker import Left, left, mark
from gateway.stores.archive.object_store import sync_directory
from gateway.stores.archive.order import (
    ArchiveOrder,
    Checked,
    Dropped,
    Erased,
    Expiring,
    Moved,
    Over,
    Said,
    Trouble,
)

Tell = Callable[[Said], None]
Agree = Callable[[], bool]
"""Waits until the gateway has dealt with what was told; False: it is gone, stop."""


class Archiving:
    """One pass. Raises OSError where the store or the disk does not work: try again later."""

    def __init__(self, order: ArchiveOrder, cold: ColdTier, *, tell: Tell, agree: Agree) -> None:
        self._order = order
        self._cold = cold
        self._tell = tell
        self._agree = agree
        self._log = Path(order.log_dir)
        self._now = rfc3339(order.now_ms)

    def run(self) -> None:
        """All of it, in the order that a deletion needs: what was told to go goes first."""
        if left(self._log).through:
            self._cold.check_place()
        self._cold.sweep()
        self._erase()
        waiting = self._move()
        if self._order.keep_days:
            self._expire()
        if self._order.check:
            self._check()
        self._tell(Over(files=len(self._cold.files()), waiting=waiting))

    # ---- deletion ------------------------------------------------------------------------------

    def _erase(self) -> None:
        ids = frozenset(self._order.erase)
        if not ids:
            return
        hindered = set[str]()
        for manifest in self._cold.manifests(_safely_before(min(map(_opened_ms, ids)))):
            if not manifest.holds(ids):
                continue
            try:
                self._cold.erase(manifest, ids, now=self._now)
            except ArchiveDamaged as problem:
                self._tell(Trouble(what=f"cannot delete from it: {problem}"))
                hindered |= ids & {one.session_id for one in manifest.sessions}
        self._tell(Erased(session_ids=tuple(sorted(ids - hindered))))

    # ---- out of the hot tier -------------------------------------------------------------------

    def _move(self) -> int:
        """How many files are old enough but have to wait for the records."""
        last_day = day_before(self._order.now_ms, self._order.hot_days)
        found = leaving(self._log, Path(self._order.records_dir), last_day=last_day)
        for name in found.free:
            try:
                self._move_one(name)
            except (ArchiveDamaged, ManifestUnreadable) as problem:
                self._tell(Trouble(what=f"{name} stays where it is: {problem}"))
                break  # files leave in their order: readers count on it
        return found.waiting

    def _move_one(self, name: str) -> None:
        path = self._log / name
        manifest = self._cold.manifest(name)
        if manifest is None or not self._is_same(path, manifest):
            with path.open("rb") as lines:
                manifest = self._cold.keep(name, lines, now=self._now)
        told = left(self._log)
        if not told.through:
            self._cold.sign_place()
        through = max(told.through, name, key=order_of)
        self._mark(told, through=through)
        path.unlink()
        sync_directory(path.parent)
        self._tell(
            Moved(
                file=name,
                raw_bytes=manifest.raw_bytes,
                stored_bytes=manifest.packed.bytes + manifest.table.bytes,
                lines=manifest.lines,
            )
        )

    def _is_same(self, path: Path, manifest: Manifest) -> bool:
        """Whether the archive has this file as it stands: a pass was killed before it left."""
        return path.stat().st_size == manifest.raw_bytes and _sha256(path) == manifest.raw_sha256

    def _mark(self, told: Left, *, through: str = "", expired_before: str = "") -> None:
        changed = msgspec.structs.replace(
            told,
            url=self._order.url,
            gateway_id=self._order.gateway_id,
            through=through or told.through,
            expired_before=max(told.expired_before, expired_before),
        )
        if changed != told:
            mark(self._log, changed)

    # ---- retention -----------------------------------------------------------------------------

    def _expire(self) -> None:
        before = day_before(self._order.now_ms, self._order.keep_days)
        for file in self._cold.files():
            if written_on(file) >= before:
                break
            manifest = self._cold.manifest(file)
            if manifest is None:
                continue
            ids = tuple(sorted({one.session_id for one in manifest.sessions}))
            self._tell(Expiring(file=file, before=before, session_ids=ids))
            if not self._agree():
                return
            self._cold.drop(manifest)
            self._tell(Dropped(file=file))
        told = left(self._log)
        if told.through:
            self._mark(told, expired_before=before)

    # ---- all of it -----------------------------------------------------------------------------

    def _check(self) -> None:
        for file in self._cold.files():
            try:
                manifest = self._cold.manifest(file)
                faults = self._cold.faults(manifest) if manifest is not None else []
                if manifest is not None and faults:
                    self._cold.heal(manifest, now=self._now)
                self._tell(Checked(file=file, healed=bool(faults)))
            except (ArchiveDamaged, ManifestUnreadable) as problem:
                self._tell(Trouble(what=str(problem)))


def _opened_ms(session_id: str) -> int:
    return time_ms_of(session_id) if is_session_id(session_id) else 0


def _safely_before(time_ms: int) -> str:
    """A clock that was set back between two processes is no reason to miss a line."""
    return day_before(time_ms, 1)


def _sha256(path: Path) -> str:
    import hashlib

    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
