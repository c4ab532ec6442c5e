"""Writing lines into one object of an export, in either form, and getting them back.

Streams: what is in memory is one line, or one row group of the table.
"""

import contextlib
import hashlib
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, Protocol

import zstandard

from gateway.stores.archive.manifest import LineOf
from gateway.stores.archive.packing import LEVEL, described, rebuild, unpack
from gateway.stores.archive.table import Said, TableWriter, read
from gateway.stores.copies.manifest import CopiedFile, Form


class _Rows(Protocol):
    def add(self, line: bytes, *, offset: int, said: Said) -> None: ...

    def close(self) -> None: ...


class _PackedLines:
    """zstd JSON lines."""

    def __init__(self, path: Path) -> None:
        compressor = zstandard.ZstdCompressor(level=LEVEL, write_checksum=True)
        self._open = contextlib.ExitStack()
        file = self._open.enter_context(path.open("wb"))
        self._stream = self._open.enter_context(compressor.stream_writer(file))

    def add(self, line: bytes, *, offset: int, said: Said) -> None:
        """One line; where it stands and what it says is the table's business."""
        del offset, said
        self._stream.write(line)

    def close(self) -> None:
        """All of it is in the file."""
        self._open.close()


_WRITERS: Final[Mapping[Form, Callable[[Path], _Rows]]] = {
    Form.JSONL: _PackedLines,
    Form.PARQUET: TableWriter,
}
RESTORE: Final = {Form.JSONL: unpack, Form.PARQUET: rebuild}
"""An object -> its JSON lines, held against their checksum."""


class FileWriter:
    """One object on its way. Raises ExtraMissing for a table without pyarrow."""

    def __init__(self, path: Path, form: Form) -> None:
        self._path = path
        self._rows = _WRITERS[form](path)
        self._digest = hashlib.sha256()
        self._versions = Counter[str]()
        self._sessions = list[LineOf]()
        self.raw_bytes = 0

    def add(self, line: bytes) -> None:
        """One session's line."""
        said = read(line)
        self._rows.add(line, offset=self.raw_bytes, said=said)
        self._digest.update(line)
        self.raw_bytes += len(line)
        self._versions[str(said.cells["schema_version"])] += 1
        one = LineOf(str(said.cells["session_id"]), int(str(said.cells["sequence"])))
        self._sessions.append(one)

    def close(self, date: str, name: str) -> CopiedFile:
        """All of it is on disk; what the manifest says of it."""
        self._rows.close()
        sequences = [one.sequence for one in self._sessions]
        return CopiedFile(
            date=date,
            stored=described(name, self._path),
            raw_bytes=self.raw_bytes,
            raw_sha256=self._digest.hexdigest(),
            lines=len(self._sessions),
            schema_versions=dict(self._versions),
            first_sequence=min(sequences, default=0),
            last_sequence=max(sequences, default=0),
            sessions=tuple(self._sessions),
        )
