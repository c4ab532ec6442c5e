"""Exporting and importing between folders, for tests."""

import tempfile
from pathlib import Path

import msgspec

from acp_spec.model.times import rfc3339
from gateway.stores.archive.object_store import DirectoryStore, ObjectStore
from gateway.stores.copies.exporting import Exporting
from gateway.stores.copies.forgetting import ForgetReport, forget
from gateway.stores.copies.importing import Importing, ImportReport, Target, manifest_at
from gateway.stores.copies.log_lines import LogLines
from gateway.stores.copies.manifest import ExportManifest, Form, Selection
from gateway.stores.memory import MemoryStore
from gateway.stores.ports import Store
from gateway.stores.records.tests.sessions import AT_MS
from gateway.stores.trajectory_log import FOLDER, TrajectoryLog, line_of, log_files

EVERYTHING = Selection()


def exported(
    data_dir: Path,
    place: ObjectStore,
    form: Form = Form.JSONL,
    *,
    selection: Selection = EVERYTHING,
) -> ExportManifest:
    """One export of a data directory."""
    with tempfile.TemporaryDirectory() as work:
        lines = LogLines(data_dir, Path(work))
        exporting = Exporting(lines, place, form=form, selection=selection, work=Path(work))
        return exporting.run(rfc3339(AT_MS))


def imported(place: ObjectStore, data_dir: Path, store: Store | None = None) -> ImportReport:
    """One import into a data directory. Raises ExportUnreadable."""
    with tempfile.TemporaryDirectory() as work:
        manifest = manifest_at(place, Path(work))
        target = _target(data_dir, store or MemoryStore(), Path(work))
        return Importing(place, target, work=Path(work)).run(manifest, AT_MS)


def forgotten(data_dir: Path, *session_ids: str, store: Store | None = None) -> ForgetReport:
    """These sessions deleted from a data directory. Raises OwnSession."""
    with tempfile.TemporaryDirectory() as work:
        target = _target(data_dir, store or MemoryStore(), Path(work))
        return forget(target, session_ids, now_ms=AT_MS)


def _target(data_dir: Path, store: Store, work: Path) -> Target:
    aside = data_dir / "records" / "quarantine.jsonl"
    lines = LogLines(data_dir, work)
    return Target(store=store, log=log_in(data_dir), lines=lines, aside=aside)


def log_in(data_dir: Path) -> TrajectoryLog:
    return TrajectoryLog(data_dir / FOLDER, rotate_bytes=1 << 30, rotate_ms=1 << 40)


def write(data_dir: Path, *lines: bytes) -> None:
    """A file of its own with these lines."""
    log = log_in(data_dir)
    log.append(lines, AT_MS)
    log.close()


def lines_in(data_dir: Path) -> list[bytes]:
    """Every line of the hot tier that is no blanks."""
    files = log_files(data_dir / FOLDER)
    found = [line for path in files for line in path.read_bytes().splitlines(True)]
    return [line for line in found if not line.isspace()]


def place_in(folder: Path) -> DirectoryStore:
    return DirectoryStore(folder)


def small(session: str, sequence: int = 1, **more: object) -> bytes:
    """A short line of a trajectory."""
    fields = {"schema_version": "1.0", "session_id": session, "lineage_id": "l"}
    said = {**fields, "status": "SUCCEEDED", "sequence": sequence, **more}
    return line_of(msgspec.json.encode(said))
