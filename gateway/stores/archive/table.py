"""The Parquet form: one row per line, typed columns, and the line itself.

`trajectory` holds the line's text as it stood, so that the table can be turned back into the file
byte for byte (`offset` says where the line stood). The typed columns say what is asked most often;
they are empty where this version cannot read the line. The columns are documented in
docs/archive.md, held against `COLUMNS` by a test.
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from acp_spec.model.trajectory import Trajectory
from gateway.stores.archive.object_store import EXTRA, ExtraMissing
from gateway.stores.forms import UnreadableRecord, read_record
from gateway.stores.trajectory_log import is_blank

if TYPE_CHECKING:
    import pyarrow

Value = str | int | float | bool | bytes | None | list[str]
Cells = dict[str, Value]

GROUP_BYTES: Final = 8 << 20
"""Lines of one row group: what a reader needs in memory to look at one of them."""

COLUMNS: Final[dict[str, str]] = {
    "offset": "int64",
    "kind": "string",
    "session_id": "string",
    "sequence": "int64",
    "schema_version": "string",
    "lineage_id": "string",
    "tenant": "string",
    "workflow": "string",
    "status": "string",
    "error_reason": "string",
    "fell_back": "bool",
    "opened_at": "timestamp",
    "ended_at": "timestamp",
    "duration_ms": "int64",
    "calls": "int32",
    "attempts": "int32",
    "actions": "list",
    "components": "list",
    "feedback": "int32",
    "quality": "double",
    "trajectory": "string",
    "trajectory_bytes": "binary",
}
"""Name -> type; `kind` is SESSION, TOMBSTONE, BLANK or OTHER. `trajectory_bytes`: only of a line
that is no text, whose `trajectory` is then empty."""

SESSION, TOMBSTONE, BLANK, OTHER = "SESSION", "TOMBSTONE", "BLANK", "OTHER"


class Said(NamedTuple):
    """What a line is: its kind, and the cells that its head tells."""

    kind: str
    cells: Cells


class _Head(msgspec.Struct):
    session_id: str
    sequence: int = 0
    schema_version: str = ""
    erased_at: str = ""


_heads = msgspec.json.Decoder(_Head)


def read(line: bytes) -> Said:
    """What one line's head says; the rest of it is decoded for a table only."""
    if is_blank(line):
        return Said(BLANK, {})
    try:
        head = _heads.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return Said(OTHER, {})
    cells: Cells = {
        "session_id": head.session_id,
        "sequence": head.sequence,
        "schema_version": head.schema_version,
    }
    return Said(TOMBSTONE if head.erased_at else SESSION, cells)


def _typed(one: Trajectory) -> Cells:
    opened, ended = one.opened_at_ms or None, one.ended_at_ms
    quality = [row.value for row in one.rewards.quality if row.value is not None]
    return {
        "lineage_id": one.lineage_id,
        "tenant": one.tenant,
        "workflow": one.workflow,
        "status": one.status.value,
        "error_reason": one.error.reason if one.error is not None else None,
        "fell_back": one.fell_back,
        "opened_at": opened,
        "ended_at": ended,
        "duration_ms": ended - opened if opened is not None and ended is not None else None,
        "calls": len({row.call_id for row in one.calls}),
        "attempts": len(one.calls),
        "actions": [row.action for row in one.calls],
        "components": [f"{row.component}@{row.component_version}" for row in one.calls],
        "feedback": len(one.feedback),
        "quality": sum(quality) / len(quality) if quality else None,
    }


class TableWriter:
    """Writes rows, a group at a time. Raises ExtraMissing without pyarrow."""

    def __init__(self, path: Path) -> None:
        arrow, parquet = _libraries()
        self._arrow = arrow
        self._schema = _schema(arrow)
        self._writer = parquet.ParquetWriter(
            path, self._schema, compression="zstd", compression_level=3, write_page_checksum=True
        )
        self._rows: dict[str, list[Value]] = {name: [] for name in COLUMNS}
        self._bytes = 0

    def add(self, line: bytes, *, offset: int, said: Said) -> None:
        """One line."""
        cells: Cells = {**said.cells, "offset": offset, "kind": said.kind}
        if said.kind == SESSION:
            with contextlib.suppress(UnreadableRecord):
                cells |= _typed(read_record(line))
        try:
            cells["trajectory"] = line.decode()
        except UnicodeDecodeError:
            cells["trajectory_bytes"] = line
        for name, column in self._rows.items():
            column.append(cells.get(name))
        self._bytes += len(line)
        if self._bytes >= GROUP_BYTES:
            self._flush()

    def close(self) -> None:
        """All of it is in the file."""
        self._flush()
        self._writer.close()

    def abandon(self) -> None:
        """What was written is of no use: the disk did not take all of it."""
        with contextlib.suppress(OSError):
            self._writer.close()

    def _flush(self) -> None:
        if self._rows["offset"]:
            self._writer.write_table(self._arrow.table(self._rows, schema=self._schema))
        self._rows = {name: [] for name in COLUMNS}
        self._bytes = 0


def lines_in(path: Path) -> Iterator[bytes]:
    """Every line of a table, a row group at a time. Raises OSError or ValueError when damaged."""
    _, parquet = _libraries()
    wanted = ["trajectory", "trajectory_bytes"]
    with parquet.ParquetFile(path, page_checksum_verification=True) as table:
        for batch in table.iter_batches(batch_size=1024, columns=wanted):
            for row in batch.to_pylist():
                text = row["trajectory"]
                yield row["trajectory_bytes"] if text is None else text.encode()


def _schema(arrow: ModuleType) -> "pyarrow.Schema":
    kinds = {
        "string": arrow.string(),
        "int64": arrow.int64(),
        "int32": arrow.int32(),
        "double": arrow.float64(),
        "bool": arrow.bool_(),
        "timestamp": arrow.timestamp("ms", tz="UTC"),
        "list": arrow.list_(arrow.string()),
        "binary": arrow.binary(),
    }
    return arrow.schema([(name, kinds[kind]) for name, kind in COLUMNS.items()])


def _libraries() -> tuple[ModuleType, ModuleType]:
    try:
        import pyarrow
        import pyarrow.parquet as parquet
    except ImportError as problem:
        raise ExtraMissing(f"Parquet needs pyarrow: {EXTRA}") from problem
    return pyarrow, parquet
