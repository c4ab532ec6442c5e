"""The archived files of one gateway: kept, read back, rewritten without a session, dropped.

The one writer is the archive's pass. A file is complete or absent: both forms are put, read back
and compared with what was packed; then the manifest names them; then older objects go. Killed in
between, the next `sweep` takes away what no manifest names. Blocks.
"""

import contextlib
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import msgspec

from gateway.stores.archive.manifest import (
    MANIFEST,
    PACKED,
    SIGN,
    TABLE,
    Manifest,
    StoredObject,
    decode,
    file_of,
    manifest_name,
    object_name,
    order_of,
)
from gateway.stores.archive.object_store import ObjectStore, StoreUnreachable
from gateway.stores.archive.packing import Damaged, described, pack, rebuild, unpack
from gateway.stores.trajectory_log import blanked

FORMS: Final = 2
"""JSON lines and Parquet."""

NAMED_MAX: Final = 100
"""Sessions named of a damaged file; beyond that they are only counted."""


class ArchiveDamaged(ValueError):
    """Neither form of an archived file can be read; the message names the sessions in it."""

    def __init__(self, manifest: Manifest, why: str) -> None:
        ids = sorted({one.session_id for one in manifest.sessions})
        more = f" and {len(ids) - NAMED_MAX} more" if len(ids) > NAMED_MAX else ""
        named = ", ".join(ids[:NAMED_MAX]) + more
        super().__init__(f"archived file {manifest.file} is damaged ({why}); it holds {named}")


class ColdTier:
    """One gateway's part of a store. `work`: a directory for what is being packed or looked at."""

    def __init__(self, store: ObjectStore, gateway_id: str, *, work: Path) -> None:
        self._store = store
        self.gateway_id = gateway_id
        self._work = work
        self._sign = f"{gateway_id}/{SIGN}"

    # ---- what is there -------------------------------------------------------------------------

    def files(self) -> list[str]:
        """The log files that lie here, in the order in which they were written."""
        found = [file_of(name) for name in self._names() if name.endswith(MANIFEST)]
        return sorted(found, key=order_of)

    def manifest(self, file: str) -> Manifest | None:
        """None for a file that is not here. Raises ManifestUnreadable, OSError."""
        name = manifest_name(self.gateway_id, file)
        with self._scratch() as path:
            try:
                with path.open("wb") as target:
                    self._store.fetch(name, target)
            except FileNotFoundError:
                return None
            return decode(path.read_bytes(), name)

    def manifests(self, since_day: str = "") -> Iterator[Manifest]:
        """Of the files written on that day and later."""
        for file in self.files():
            if file >= since_day and (found := self.manifest(file)) is not None:
                yield found

    def raw(self, manifest: Manifest, target: Path) -> None:
        """The file as it stood in the log. Raises ArchiveDamaged if neither form is whole."""
        faults = []
        for stored, restore in ((manifest.packed, unpack), (manifest.table, rebuild)):
            with self._scratch() as path:
                try:
                    self._fetch(stored, path)
                    restore(path, target, raw_sha256=manifest.raw_sha256)
                except (Damaged, FileNotFoundError) as problem:
                    faults.append(str(problem))
                else:
                    return
        raise ArchiveDamaged(manifest, "; ".join(faults))

    def faults(self, manifest: Manifest) -> list[str]:
        """What is wrong with the two forms of a file; none: both are whole."""
        found = []
        for stored in (manifest.packed, manifest.table):
            with self._scratch() as path:
                try:
                    self._fetch(stored, path)
                except (Damaged, FileNotFoundError) as problem:
                    found.append(str(problem))
        return found

    def check_place(self) -> None:
        """Raises StoreUnreachable where this gateway's files should be and never were: a directory
        that is not mounted looks like an empty one, and nothing may be taken for deleted there.
        """
        if self._sign not in self._store.names(self.gateway_id):
            why = f"the archive's store has no {self._sign}: is it mounted, and archive.url right?"
            raise StoreUnreachable(why)

    # ---- what changes it -----------------------------------------------------------------------

    def sign_place(self) -> None:
        """From here on `check_place` knows it."""
        with self._scratch() as path:
            path.write_bytes(msgspec.json.encode({"gateway_id": self.gateway_id}))
            self._store.put(self._sign, path)

    def keep(self, file: str, lines: Iterable[bytes], *, now: str) -> Manifest:
        """Put a file here, or a newer form of one; whole and read back when it returns."""
        known = self.manifest(file)
        revision = known.revision + 1 if known is not None else 1
        with self._scratch() as packed, self._scratch() as table:
            found = pack(lines, packed, table=table)
            kept = [
                self._put(path, object_name(self.gateway_id, file, revision=revision, suffix=form))
                for path, form in ((packed, PACKED), (table, TABLE))
            ]
        sequences = [one.sequence for one in found.sessions]
        manifest = Manifest(
            gateway_id=self.gateway_id,
            file=file,
            revision=revision,
            raw_bytes=found.raw_bytes,
            raw_sha256=found.raw_sha256,
            lines=found.lines,
            tombstones=found.tombstones,
            blank=found.blank,
            unreadable=found.unreadable,
            first_sequence=min(sequences, default=0),
            last_sequence=max(sequences, default=0),
            schema_versions=dict(found.schema_versions),
            packed=kept[0],
            table=kept[1],
            written_at=now,
            sessions=tuple(found.sessions),
        )
        self._check(manifest)
        self._put_manifest(manifest)
        if known is not None:
            self._delete_objects(known)
        return manifest

    def erase(self, manifest: Manifest, session_ids: frozenset[str], *, now: str) -> None:
        """Rewrite a file without these sessions. Raises ArchiveDamaged, OSError."""
        with self._scratch() as raw:
            self.raw(manifest, raw)
            with raw.open("rb") as lines:
                self.keep(manifest.file, blanked(lines, session_ids), now=now)

    def heal(self, manifest: Manifest, *, now: str) -> None:
        """Make a form that is damaged again from the other. Raises ArchiveDamaged."""
        self.erase(manifest, frozenset(), now=now)

    def drop(self, manifest: Manifest) -> None:
        """Take a file away for good."""
        self._store.delete(manifest_name(self.gateway_id, manifest.file))
        self._delete_objects(manifest)

    def sweep(self) -> None:
        """Take away what no manifest names: what a pass left that was killed."""
        beside: dict[str, list[str]] = {}
        with_manifest = set[str]()
        for name in self._names():
            file = file_of(name)
            if name.endswith(MANIFEST):
                with_manifest.add(file)
            else:
                beside.setdefault(file, []).append(name)
        orphans = [
            name
            for file, names in beside.items()
            for name in self._orphans(names, file if file in with_manifest else "")
        ]
        for name in orphans:
            self._store.delete(name)

    # ---- inside --------------------------------------------------------------------------------

    def _orphans(self, names: list[str], file: str) -> list[str]:
        """Of the objects beside a file's manifest. Two are the two that it names: puts come before
        it and deletes after, so a pass that was killed leaves three or four.
        """
        if file and len(names) == FORMS:
            return []
        found = self.manifest(file) if file else None
        kept = (found.packed.name, found.table.name) if found is not None else ()
        return [name for name in names if name not in kept]

    def _names(self) -> list[str]:
        return [name for name in self._store.names(self.gateway_id) if name != self._sign]

    def _put(self, path: Path, name: str) -> StoredObject:
        stored = described(name, path)
        self._store.put(name, path)
        return stored

    def _put_manifest(self, manifest: Manifest) -> None:
        with self._scratch() as path:
            path.write_bytes(msgspec.json.encode(manifest))
            self._store.put(manifest_name(self.gateway_id, manifest.file), path)

    def _check(self, manifest: Manifest) -> None:
        """Both forms as the store gives them back, the JSON lines down to the last byte."""
        with self._scratch() as path, self._scratch() as raw:
            self._fetch(manifest.table, path)
            self._fetch(manifest.packed, path)
            unpack(path, raw, raw_sha256=manifest.raw_sha256)

    def _fetch(self, stored: StoredObject, path: Path) -> None:
        with path.open("wb") as target:
            self._store.fetch(stored.name, target)
        if described(stored.name, path) != stored:
            raise Damaged(f"{stored.name}: its checksum is another one")

    def _delete_objects(self, manifest: Manifest) -> None:
        for stored in (manifest.packed, manifest.table):
            self._store.delete(stored.name)

    @contextlib.contextmanager
    def _scratch(self) -> Iterator[Path]:
        """A file that is gone afterwards."""
        self._work.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=self._work) as file:
            yield Path(file.name)
