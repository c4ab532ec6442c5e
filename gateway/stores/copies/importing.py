"""Import: the lines of an export into the trajectory log of a gateway that does not run.

From there the records, the trainer and insight find them as they find any other. Again changes
nothing; a killed one is gone on with. What is there is never overwritten, what was erased never
comes back, and what this version cannot read is put aside with its place. Blocks.
"""

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from gateway.stores.archive.object_store import ObjectStore
from gateway.stores.archive.packing import Damaged, described
from gateway.stores.copies.known import Known, Standing
from gateway.stores.copies.log_lines import LogLines
from gateway.stores.copies.manifest import (
    BEGUN,
    MANIFEST,
    CopiedFile,
    ExportManifest,
    ExportUnreadable,
    Form,
    decode,
)
from gateway.stores.copies.writing import RESTORE
from gateway.stores.durable import WriteThrough
from gateway.stores.forms import UnreadableRecord, read_record
from gateway.stores.ports import Store, Table
from gateway.stores.records.feed import Aside
from gateway.stores.tables import sequence_row
from gateway.stores.trajectory_log import BATCH_LINES_MAX, Line, TrajectoryLog, head_of

NAMED_MAX: Final = 100
"""Sessions and places named; beyond that they are only counted."""

_BATCH_BYTES: Final = 4 << 20

Tell = Callable[[int], None]
"""So many lines of the import more are dealt with."""


class ImportReport(msgspec.Struct, kw_only=True):
    """What became of the lines. `differing`: sessions that are there with other content at the same
    sequence; `aside`: places that this version cannot read; `damaged`: objects, and why.
    """

    imported: int = 0
    there_already: int = 0
    older: int = 0
    erased: int = 0
    differ: int = 0
    quarantined: int = 0
    differing: list[str] = []
    aside: list[str] = []
    damaged: list[str] = []


class Target(NamedTuple):
    """A stopped gateway's directory. `lines`: its log as it is read; `aside`: the file for what
    cannot be used.
    """

    store: Store
    log: TrajectoryLog
    lines: LogLines
    aside: Path


class Importing:
    """One import. Raises TargetDamaged, OSError; what was imported until then stays."""

    def __init__(
        self, source: ObjectStore, target: Target, *, work: Path, tell: Tell = lambda _: None
    ) -> None:
        self._source = source
        self._target = target
        self._work = work
        self._tell = tell
        self._waiting = list[bytes]()
        self._waiting_bytes = 0
        self.report = ImportReport()

    def run(self, manifest: ExportManifest, now_ms: int) -> ImportReport:
        """All of it; what was imported is on disk when it returns."""
        settle_last_lines(self._target)
        ids = frozenset(one.session_id for file in manifest.files for one in file.sessions)
        known = Known(self._target.lines, self._target.store, session_ids=ids)
        if self._target.lines.damaged:
            raise TargetDamaged("; ".join(self._target.lines.damaged.values()))
        for file in manifest.files:
            try:
                for number, line in self._lines_of(file, manifest.form):
                    self._take(known, line, place=f"{file.stored.name}:{number}")
                    self._append(now_ms, at_least=BATCH_LINES_MAX)
            except (Damaged, FileNotFoundError) as problem:
                self.report.damaged.append(str(problem))
            self._append(now_ms, at_least=1)
            self._tell(file.lines)
        self._target.log.close()
        return self.report

    def _lines_of(self, file: CopiedFile, form: Form) -> Iterator[tuple[int, bytes]]:
        """Numbered from 1. Raises Damaged before the first one."""
        with (
            tempfile.NamedTemporaryFile(dir=self._work) as packed,
            tempfile.NamedTemporaryFile(dir=self._work) as raw,
        ):
            try:
                self._source.fetch(file.stored.name, packed.file)
            except FileNotFoundError:
                raise Damaged(f"{file.stored.name}: it is not there") from None
            packed.flush()
            if described(file.stored.name, Path(packed.name)) != file.stored:
                raise Damaged(f"{file.stored.name}: its checksum is another one")
            RESTORE[form](Path(packed.name), Path(raw.name), raw_sha256=file.raw_sha256)
            with Path(raw.name).open("rb") as lines:
                yield from enumerate(lines, 1)

    def _take(self, known: Known, line: bytes, *, place: str) -> None:
        head = head_of(line)
        why = _unusable(line, head)
        if head is None or why:
            self._put_aside(place, head, why=why)
            return
        standing = known.standing(head, line)
        counter = _COUNTED[standing]
        setattr(self.report, counter, getattr(self.report, counter) + 1)
        if standing is Standing.DIFFERS and len(self.report.differing) < NAMED_MAX:
            self.report.differing.append(head.session_id)
        if standing is Standing.NEW:
            known.add_line(head, line)
            self._waiting.append(line)
            self._waiting_bytes += len(line)

    def _append(self, now_ms: int, *, at_least: int) -> None:
        if len(self._waiting) >= at_least or self._waiting_bytes >= _BATCH_BYTES:
            self._target.log.append(self._waiting, now_ms)
            self._waiting, self._waiting_bytes = [], 0

    def _put_aside(self, place: str, head: Line | None, *, why: str) -> None:
        """In the file where the records put theirs; what stands there already is left."""
        self.report.quarantined += 1
        if len(self.report.aside) < NAMED_MAX:
            self.report.aside.append(f"{place}: {why}")
        name, _, number = place.rpartition(":")
        session_id = head.session_id if head is not None else ""
        one = Aside(file=f"import {name}", start=int(number), session_id=session_id, why=why)
        row = msgspec.json.encode(one) + b"\n"
        path = self._target.aside
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a+b") as file:
            file.seek(0)
            if row not in file:
                file.write(row)


_COUNTED: Final = {
    Standing.NEW: "imported",
    Standing.THERE: "there_already",
    Standing.OLDER: "older",
    Standing.ERASED: "erased",
    Standing.DIFFERS: "differ",
}


class TargetDamaged(Exception):
    """What the target's archive holds cannot all be read: nothing was imported."""


def settle_last_lines(target: Target) -> None:
    """What the gateway's next start does first, done before newer lines hide it: a crash may have
    left rows in its outbox whose lines are in the log.
    """
    rows = WriteThrough(target.store)
    for line in target.log.recover():
        rows.delete(Table.OUTBOX, sequence_row(*line))
    target.store.sync()


def manifest_at(source: ObjectStore, work: Path) -> ExportManifest:
    """Raises ExportUnreadable where there is no whole export; OSError."""
    with tempfile.NamedTemporaryFile(dir=work) as file:
        try:
            source.fetch(MANIFEST, file.file)
        except FileNotFoundError:
            raise ExportUnreadable(_absent(source)) from None
        file.flush()
        return decode(Path(file.name).read_bytes())


def _absent(source: ObjectStore) -> str:
    again = "run `acp records export` into it again"
    if BEGUN in source.names(""):
        return f"there is no {MANIFEST}, the export was cut off before its end: {again}"
    return f"there is no {MANIFEST}: is it the folder of an export? If so, {again}"


def _unusable(line: bytes, head: Line | None) -> str:
    """Why this version cannot use it; empty: it can."""
    if head is None or not line.endswith(b"\n"):
        return "no whole line of a trajectory"
    try:
        read_record(line)
    except UnreadableRecord as problem:
        return str(problem)
    return ""
