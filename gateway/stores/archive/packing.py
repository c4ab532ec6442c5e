"""Packing a log file for the archive as zstd JSON lines and as Parquet, and getting it back.

Streams: what is in memory is one line and one row group of the table. Each of the two forms holds
every line, so that a damaged one is made again from the other.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import zstandard

from gateway.stores.archive.manifest import LineOf, StoredObject
from gateway.stores.archive.table import BLANK, SESSION, TOMBSTONE, TableWriter, lines_in, read

LEVEL: Final = 9
"""Of zstd: 230 MB/s to 2.9 % of the size; 12 takes twice as long for 2.7 %, 3 gives 3.1 %."""

CHUNK: Final = 1 << 20


class Damaged(ValueError):
    """An object does not hold what its manifest says."""


@dataclass(slots=True)
class Contents:
    """What was found in a file while it was packed."""

    raw_bytes: int = 0
    raw_sha256: str = ""
    lines: int = 0
    tombstones: int = 0
    blank: int = 0
    unreadable: int = 0
    schema_versions: Counter[str] = field(default_factory=Counter[str])
    sessions: list[LineOf] = field(default_factory=list[LineOf])


def pack(lines: Iterable[bytes], packed: Path, *, table: Path) -> Contents:
    """Write both forms of these lines. Raises OSError, ExtraMissing."""
    found = Contents()
    digest = hashlib.sha256()
    rows = TableWriter(table)
    compressor = zstandard.ZstdCompressor(level=LEVEL, write_checksum=True)
    try:
        with packed.open("wb") as file, compressor.stream_writer(file) as stream:
            for line in lines:
                stream.write(line)
                digest.update(line)
                _count(found, line, rows=rows)
                found.raw_bytes += len(line)
        rows.close()
    except OSError:
        rows.abandon()
        raise
    found.raw_sha256 = digest.hexdigest()
    return found


def _count(found: Contents, line: bytes, *, rows: TableWriter) -> None:
    said = read(line)
    rows.add(line, offset=found.raw_bytes, said=said)
    if said.kind == BLANK:
        found.blank += 1
    elif said.kind == TOMBSTONE:
        found.tombstones += 1
    elif said.kind == SESSION:
        found.lines += 1
        found.sessions.append(
            LineOf(str(said.cells["session_id"]), int(str(said.cells["sequence"])))
        )
        found.schema_versions[str(said.cells["schema_version"])] += 1
    else:
        found.unreadable += 1


def described(name: str, path: Path) -> StoredObject:
    """A file as an object of this name."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            digest.update(chunk)
    return StoredObject(name=name, bytes=path.stat().st_size, sha256=digest.hexdigest())


def unpack(packed: Path, target: Path, *, raw_sha256: str) -> None:
    """The file as it stood in the log. Raises Damaged, OSError."""
    digest = hashlib.sha256()
    try:
        with packed.open("rb") as file, target.open("wb") as raw:
            reader = zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True)
            while chunk := reader.read(CHUNK):
                digest.update(chunk)
                raw.write(chunk)
    except zstandard.ZstdError as problem:
        raise Damaged(f"{packed.name}: {problem}") from problem
    if digest.hexdigest() != raw_sha256:
        raise Damaged(f"{packed.name}: not the lines that its manifest names")


def rebuild(table: Path, target: Path, *, raw_sha256: str) -> None:
    """The same from the Parquet form. Raises Damaged, OSError."""
    digest = hashlib.sha256()
    try:
        with target.open("wb") as raw:
            for line in lines_in(table):
                digest.update(line)
                raw.write(line)
    except ValueError as problem:
        raise Damaged(f"{table.name}: {problem}") from problem
    if digest.hexdigest() != raw_sha256:
        raise Damaged(f"{table.name}: not the lines that its manifest names")
