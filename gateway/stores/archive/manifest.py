"""The manifest of an archived file: what it holds, where, and how to tell that it is whole.

An archived file is complete or absent: its two objects (zstd JSON lines and Parquet) count only
once a manifest names them, and the manifest is put last. A rewritten file has a higher revision and
objects of new names, so that a reader and a crash see the old or the new one. Pure but for names.
"""

import re
from pathlib import Path
from typing import Final

import msgspec

MANIFEST: Final = ".manifest.json"
PACKED: Final = ".jsonl.zst"
TABLE: Final = ".parquet"
SIGN: Final = "gateway.json"
"""Beside a gateway's days: this is its archive, and not a place where nothing is mounted."""

FORMAT: Final = 1
_LOG_SUFFIX: Final = ".jsonl"
_DATE: Final = "date="
_REVISION: Final = re.compile(r"(.+)\.r\d+\.(?:jsonl\.zst|parquet)")


class StoredObject(msgspec.Struct, frozen=True, kw_only=True):
    """One object: its name below the archive's root, its size and checksum."""

    name: str
    bytes: int
    sha256: str


class LineOf(msgspec.Struct, frozen=True, array_like=True):
    """One line that stands in the file: a session as it was at one sequence."""

    session_id: str
    sequence: int


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """`file`: its name in the trajectory log, `YYYY-MM-DD/NNNN.jsonl`. The unpacked JSON lines are
    byte for byte that file (`raw_*`), with blanks of equal length where sessions were erased.

    `lines` = sessions' lines, `tombstones`, `blank` and `unreadable` ones together.
    `schema_versions`: how many lines of each. `first_sequence`, `last_sequence`: lowest, highest.
    """

    format: int = FORMAT
    gateway_id: str
    file: str
    revision: int
    raw_bytes: int
    raw_sha256: str
    lines: int
    tombstones: int
    blank: int
    unreadable: int
    first_sequence: int
    last_sequence: int
    schema_versions: dict[str, int]
    packed: StoredObject
    table: StoredObject
    written_at: str
    sessions: tuple[LineOf, ...]

    def holds(self, session_ids: frozenset[str]) -> bool:
        """Whether a line of one of them stands in the file."""
        return any(one.session_id in session_ids for one in self.sessions)


class ManifestUnreadable(ValueError):
    """No manifest of ours, or one of a newer version."""


def decode(data: bytes, name: str) -> Manifest:
    """Raises ManifestUnreadable."""
    try:
        found = msgspec.json.decode(data, type=Manifest)
    except (msgspec.DecodeError, UnicodeDecodeError) as problem:
        raise ManifestUnreadable(f"{name}: {problem}") from None
    if found.format > FORMAT:
        raise ManifestUnreadable(f"{name}: written by a newer version (format {found.format})")
    return found


def stem_of(gateway_id: str, file: str) -> str:
    """What the names of a log file's objects begin with: `ID/date=YYYY-MM-DD/NNNN`."""
    day, _, name = file.partition("/")
    return f"{gateway_id}/{_DATE}{day}/{name.removesuffix(_LOG_SUFFIX)}"


def file_of(name: str) -> str:
    """The log file of any object's name."""
    day, _, rest = name.partition(f"/{_DATE}")[2].partition("/")
    return f"{day}/{rest.partition('.')[0]}{_LOG_SUFFIX}"


def manifest_name(gateway_id: str, file: str) -> str:
    return stem_of(gateway_id, file) + MANIFEST


def object_name(gateway_id: str, file: str, *, revision: int, suffix: str) -> str:
    """Each revision has names of its own."""
    return f"{stem_of(gateway_id, file)}.r{revision}{suffix}"


def is_named(path: Path) -> bool:
    """Whether a file counts: of an archive only what its manifest names, else any."""
    stem = _REVISION.fullmatch(path.name)
    if stem is None:
        return True
    try:
        manifest = decode(path.with_name(stem[1] + MANIFEST).read_bytes(), path.name)
    except (FileNotFoundError, ManifestUnreadable):
        return False
    return manifest.packed.name.endswith("/" + path.name)


def order_of(file: str) -> tuple[str, int, str]:
    """The order in which log files were written: by day, then by number."""
    day, _, name = file.partition("/")
    return day, len(name), name
