"""Export: the newest line of each session, byte for byte, into a place of its own.

Reads the log twice, first only to learn which line of a session is its newest and who was erased.
A session that is deleted while it runs is taken out again. Complete or absent: the manifest is put
last, and what a killed export left is taken away by the next one into the same place. Blocks.
"""

import contextlib
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from acp_spec.model.ids import is_session_id, time_ms_of
from acp_spec.model.times import parse_rfc3339
from gateway.stores.archive.manifest import order_of
from gateway.stores.archive.object_store import ObjectStore
from gateway.stores.copies import manifest as names
from gateway.stores.copies.log_lines import LogLine, LogLines
from gateway.stores.copies.manifest import CopiedFile, ExportManifest, Form, Selection
from gateway.stores.copies.writing import FileWriter
from gateway.stores.records.log_tail import Place
from gateway.stores.trajectory_log import Erased, erased_by, head_of, is_blank, said_by

FILE_BYTES: Final = 256 << 20
"""Lines of one object, or a batch more."""

Tell = Callable[[int], None]
"""So many lines of the log more were read."""

_Order = tuple[int, tuple[str, int, str], int]
"""Sequence, file, offset: the highest is the newest, and no two lines share one."""


class PlaceTaken(Exception):
    """Something is there already that is not an export that was cut off."""


class _Newest(NamedTuple):
    order: _Order
    is_wanted: bool


class _Kept(NamedTuple):
    """An object, and the part of the log that it was made of."""

    start: Place
    end: Place
    file: CopiedFile


class Exporting:
    """One export. Raises PlaceTaken, ExtraMissing, OSError; then there is no manifest."""

    def __init__(
        self,
        lines: LogLines,
        store: ObjectStore,
        *,
        form: Form,
        selection: Selection,
        work: Path,
    ) -> None:
        self._lines = lines
        self._store = store
        self._form = form
        self._selection = selection
        self._work = work
        self.tell: Tell = lambda _: None
        self._newest: dict[str, _Newest] = {}
        self._erased = set[str]()
        self._unreadable = 0
        self._numbers = Counter[str]()

    def run(self, now: str) -> ExportManifest:
        """All of it; the manifest is in its place when it returns."""
        self._begin(now)
        end = self._survey()
        kept = self._without_late(list(self._kept(end)), end)
        files = tuple(one.file for one in kept)
        made = ExportManifest(
            form=self._form,
            written_at=now,
            selection=self._selection,
            sessions=sum(one.lines for one in files),
            raw_bytes=sum(one.raw_bytes for one in files),
            stored_bytes=sum(one.stored.bytes for one in files),
            erased=len(self._erased),
            unreadable=self._unreadable,
            damaged=tuple(sorted(self._lines.damaged.values())),
            files=files,
        )
        self._put(names.MANIFEST, msgspec.json.encode(made))
        self._store.delete(names.BEGUN)
        return made

    # ---- the place -----------------------------------------------------------------------------

    def _begin(self, now: str) -> None:
        """An empty place, but for what an export left there that was cut off."""
        found = self._store.names("")
        if names.MANIFEST in found:
            raise PlaceTaken("an export is there already: name an empty place, or delete it first")
        others = [one for one in found if not names.is_ours(one)]
        if others or (found and not any(names.BEGUN in one for one in found)):
            named = (others or found)[0]
            raise PlaceTaken(f"it is not empty, there is {named}: name a place of its own")
        self._put(names.BEGUN, msgspec.json.encode({"written_at": now}))
        for one in found:
            if one != names.BEGUN:
                self._store.delete(one)

    def _put(self, name: str, data: bytes) -> None:
        with self._scratch() as path:
            path.write_bytes(data)
            self._store.put(name, path)

    @contextlib.contextmanager
    def _scratch(self) -> Iterator[Path]:
        """A file that is gone afterwards."""
        with tempfile.NamedTemporaryFile(dir=self._work) as file:
            yield Path(file.name)

    # ---- what there is -------------------------------------------------------------------------

    def _survey(self) -> Place:
        """Learn of every line; the end of the log as this export takes it."""
        end = Place()
        for batch, lines in self._lines.batches(end):
            for line in lines:
                self._learn(line)
            end = batch.after
            self.tell(len(lines))
        return end

    def _learn(self, line: LogLine) -> None:
        if is_blank(line.data):
            return
        head = said_by(line.data)
        if isinstance(head, Erased):
            self._erased.add(head.session_id)
            return
        if head is None:
            self._unreadable += 1
            return
        order = _order(head.sequence, line)
        known = self._newest.get(head.session_id)
        if known is None or order > known.order:
            is_wanted = _is_selected(line.data, self._selection)
            self._newest[head.session_id] = _Newest(order, is_wanted)

    def _is_wanted(self, line: LogLine) -> bool:
        head = head_of(line.data)
        if head is None or head.session_id in self._erased:
            return False
        newest = self._newest.get(head.session_id)
        return newest == _Newest(_order(head.sequence, line), True)

    # ---- the objects ---------------------------------------------------------------------------

    def _kept(self, end: Place) -> Iterator[_Kept]:
        start = Place()
        while start.order < end.order:
            after, file = self._written(start, end, name="")
            if file is not None:
                yield _Kept(start, after, file)
            start = after

    def _written(self, start: Place, end: Place, *, name: str) -> tuple[Place, CopiedFile | None]:
        """One object of lines of one day from `start` on, and where it ends; None for none."""
        with self._scratch() as path:
            writer: FileWriter | None = None
            date = ""
            for batch, lines in self._lines.batches(start):
                day = batch.file.partition("/")[0]
                is_full = writer is not None and writer.raw_bytes >= FILE_BYTES
                if start.order >= end.order or is_full or day != (date or day):
                    break
                date = day
                for line in filter(self._is_wanted, lines):
                    writer = writer or FileWriter(path, self._form)
                    writer.add(line.data)
                start = batch.after
                self.tell(len(lines))
            else:
                start = max(start, end, key=lambda place: place.order)
            if writer is None:
                return start, None
            file = writer.close(date, name or self._name(date))
            self._store.put(file.stored.name, path)
            return start, file

    def _name(self, date: str) -> str:
        self._numbers[date] += 1
        return names.object_name(date, self._numbers[date], form=self._form)

    # ---- deletion meanwhile --------------------------------------------------------------------

    def _without_late(self, kept: list[_Kept], end: Place) -> list[_Kept]:
        """Without the sessions that were deleted since the log was surveyed."""
        while True:
            late = set[str]()
            for batch, lines in self._lines.batches(end):
                gone = (erased_by(line.data) for line in lines)
                late |= {one.session_id for one in gone if one is not None}
                end = batch.after
            self._erased |= late
            if not any(_holds(one.file, late) for one in kept):
                return kept
            kept = [new for one in kept for new in self._rewritten(one, late)]

    def _rewritten(self, one: _Kept, late: set[str]) -> list[_Kept]:
        if not _holds(one.file, late):
            return [one]
        _, file = self._written(one.start, one.end, name=one.file.stored.name)
        if file is None:
            self._store.delete(one.file.stored.name)
            return []
        return [one._replace(file=file)]


class _Details(msgspec.Struct):
    """What a selection goes by; `opened_at_ms`: of the oldest form."""

    session_id: str
    workflow: str = ""
    tenant: str = ""
    opened_at: str = ""
    opened_at_ms: int = 0


_details = msgspec.json.Decoder(_Details)


def _is_selected(line: bytes, selection: Selection) -> bool:
    """Of a line that nobody can look into only an export of everything takes a copy."""
    if selection == Selection():
        return True
    try:
        found = _details.decode(line)
    except msgspec.DecodeError:
        return False
    opened_ms = parse_rfc3339(found.opened_at) or found.opened_at_ms
    if not opened_ms and is_session_id(found.session_id):
        opened_ms = time_ms_of(found.session_id)
    return selection.takes(opened_ms=opened_ms, workflow=found.workflow, tenant=found.tenant)


def _order(sequence: int, line: LogLine) -> _Order:
    return sequence, order_of(line.file), line.offset


def _holds(file: CopiedFile, session_ids: set[str]) -> bool:
    return any(one.session_id in session_ids for one in file.sessions)
