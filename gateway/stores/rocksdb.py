"""The store on disk: RocksDB through rocksdict, one column family per table.

A batch goes to the write-ahead log before `write` returns, so a killed process loses nothing;
`sync` makes the log durable. Tuned for little memory beside one event loop. Nothing else imports
rocksdict, and its exceptions are translated here, once.
"""

import errno
import os
from collections.abc import Iterator
from pathlib import Path

from rocksdict import (
    AccessType,
    BlockBasedOptions,
    BottommostLevelCompaction,
    Cache,
    ColumnFamily,
    CompactOptions,
    DBCompressionType,
    DBRecoveryMode,
    Options,
    Rdict,
    RdictIter,
    ReadOptions,
    WriteBatch,
)

from gateway.stores.errors import (
    DirectoryUnusable,
    StoreBusy,
    StoreCorrupt,
    StoreError,
    StoreFailed,
    StoreTooNew,
)
from gateway.stores.memory import prefix_end
from gateway.stores.ports import Batch, Table
from gateway.stores.tables import FORMAT, FORMAT_KEY

KIB, MIB = 1 << 10, 1 << 20

JOURNAL_BUFFER_BYTES = 16 * MIB
"""Memtable of the journal: ~1,000 sessions of 15 KB a flush; two may be held at once."""

OTHER_BUFFER_BYTES = 4 * MIB
QUEUE_BUFFER_BYTES = MIB
"""OUTBOX is written and deleted at once; a small memtable keeps few tombstones before a scan."""

BUFFERS_BYTES_MAX = 48 * MIB
"""All memtables together: an idle gateway stays far below 120 MB."""

WAL_BYTES_MAX = 64 * MIB
"""Log kept for tables that are seldom written; also bounds the time of a reopen (0.5 s)."""

CACHE_BYTES = 8 * MIB
OPEN_FILES_MAX = 512
DIRECTORY_MODE = 0o700  # it holds the keys of sessions

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""What a file system says that has no room for more: the disk, the quota, the file."""

_NOT_OURS = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR)
"""What it says where this user may not write, or where no directory can be."""

_SEALED = frozenset({Table.JOURNAL, Table.KEY})
_BUFFER_BYTES = {Table.JOURNAL: JOURNAL_BUFFER_BYTES, Table.OUTBOX: QUEUE_BUFFER_BYTES}


class RocksBatch:
    """One RocksDB write batch."""

    def __init__(self, families: dict[Table, ColumnFamily]) -> None:
        self._families = families
        self.native = WriteBatch(raw_mode=True)

    def put(self, table: Table, key: bytes, value: bytes) -> None:
        self.native.put(key, value, self._families[table])

    def delete(self, table: Table, key: bytes) -> None:
        self.native.delete(key, self._families[table])


class RocksStore:
    """`ports.Store` in a directory.

    Opening raises StoreBusy, StoreCorrupt, StoreTooNew, DirectoryUnusable or StoreFailed. A torn
    end of the log is normal (the process was killed in a write); damage before it is not, and
    refused: `salvage` opens all the same and drops what stands behind the damage. `read_only` looks
    at what is written so far, also while a gateway runs on it, and sees nothing that comes later.
    """

    def __init__(self, path: Path, *, salvage: bool = False, read_only: bool = False) -> None:
        self._path = path
        self._closed = False
        access = AccessType.read_only() if read_only else AccessType.read_write()
        if read_only and not (path / "CURRENT").exists():
            raise StoreFailed(f"there is no store in {path}: is the data directory right?")
        try:
            path.mkdir(parents=True, exist_ok=True, mode=DIRECTORY_MODE)
        except OSError as error:
            raise _unusable(path, str(error.strerror)) from error
        _refuse_unknown_tables(path)
        try:
            self._db = Rdict(
                str(path),
                _database_options(salvage),
                column_families=_families(),
                access_type=access,
            )
        except Exception as error:  # rocksdict raises bare Exception
            raise _translated(error, path, opening=True) from error
        self._tables = {table: self._db.get_column_family(table.value) for table in Table}
        self._handles = {table: self._db.get_column_family_handle(table.value) for table in Table}
        self._check_format()

    def batch(self) -> RocksBatch:
        return RocksBatch(self._handles)

    def write(self, batch: Batch) -> None:
        assert isinstance(batch, RocksBatch), "a batch goes to the store that made it"
        try:
            self._db.write(batch.native)
        except Exception as error:
            raise _translated(error, self._path) from error

    def sync(self) -> None:
        try:
            self._db.flush_wal(True)
        except Exception as error:
            raise _translated(error, self._path) from error

    def get(self, table: Table, key: bytes) -> bytes | None:
        try:
            value: bytes | None = self._tables[table].get(key)
        except Exception as error:
            raise _translated(error, self._path) from error
        return value

    def scan(
        self, table: Table, prefix: bytes, *, after: bytes = b"", reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        """A snapshot of the moment of the first row; close the iterator if you stop early.

        Raises StoreCorrupt where a row cannot be read: less than all is never given as all.
        """
        end = prefix_end(prefix)
        # rocksdict 0.3.29: set_iterate_lower_bound sets the upper one; so `key < prefix` ends it.
        options = ReadOptions()
        if end is not None:
            options.set_iterate_upper_bound(end)
        start = _start(prefix, end, after=after, reverse=reverse)
        try:
            # Not `items()`: rocksdict's ends without a word where a block is damaged.
            rows = self._tables[table].iter(options)
            _seek(rows, start, reverse=reverse)
            step = rows.prev if reverse else rows.next
            while rows.valid():
                key = rows.key()
                assert isinstance(key, bytes), "raw mode: keys are bytes"
                if key < prefix:
                    return
                if key != after:
                    yield key, rows.value()
                step()
            rows.status()
        except Exception as error:
            raise _translated(error, self._path) from error

    def erase(self, table: Table, *keys: bytes) -> None:
        """Delete, then drive every copy out: memtables, log files, and old table files.

        Flushing every table lets RocksDB unlink the log files that held the rows; compacting the
        keys' range rewrites the table files without them. Some 50 ms: not for the event loop.
        """
        if not keys:
            return
        compact = CompactOptions()
        compact.set_bottommost_level_compaction(BottommostLevelCompaction.force())
        try:
            for key in keys:
                self._tables[table].delete(key)
            for family in self._tables.values():
                family.flush()
            self._tables[table].compact_range(min(keys), max(keys) + b"\0", compact)
        except Exception as error:
            raise _translated(error, self._path) from error

    def close(self) -> None:
        """Idempotent. What was written stays; raises StoreFailed if the last of it cannot."""
        if not self._closed:
            self._closed = True
            problems: list[Exception] = []
            # Every handle keeps the directory locked until it is closed, or dropped.
            for handle in (*self._tables.values(), self._db):
                try:
                    handle.close()
                except Exception as error:  # the disk is full: the others are closed all the same
                    problems.append(error)
            self._handles.clear()
            if problems:
                raise _translated(problems[0], self._path) from problems[0]

    def _check_format(self) -> None:
        found = self.get(Table.META, FORMAT_KEY)
        if found is None:
            self._tables[Table.META].put(FORMAT_KEY, str(FORMAT).encode())
        elif not found.isdigit() or int(found) > FORMAT:
            self.close()
            raise _too_new(self._path, f"its format is {found!r}, this gateway knows {FORMAT}")


def _seek(rows: RdictIter, start: bytes | None, *, reverse: bool) -> None:
    """To the first row of a scan: `start` or the next one in its direction."""
    if start is not None:
        (rows.seek_for_prev if reverse else rows.seek)(start)
    elif reverse:
        rows.seek_to_last()
    else:
        rows.seek_to_first()


def _start(prefix: bytes, end: bytes | None, *, after: bytes, reverse: bool) -> bytes | None:
    """The key at which a scan begins; `after` itself is skipped by the scan."""
    if not reverse:
        return max(prefix, after) or None
    candidates = [key for key in (after, end) if key]
    return min(candidates) if candidates else None


def _database_options(salvage: bool) -> Options:
    options = Options(raw_mode=True)
    options.create_if_missing(True)
    options.create_missing_column_families(True)
    options.set_db_write_buffer_size(BUFFERS_BYTES_MAX)
    options.set_max_total_wal_size(WAL_BYTES_MAX)
    options.set_max_open_files(OPEN_FILES_MAX)
    options.set_max_background_jobs(2)
    options.set_allow_concurrent_memtable_write(False)  # one writer: a batch takes 10 us, not 12
    options.set_keep_log_file_num(2)
    options.set_max_log_file_size(MIB)
    options.set_stats_dump_period_sec(0)
    options.set_stats_persist_period_sec(0)
    # Recycled log files would keep the bytes of erased keys.
    options.set_recycle_log_file_num(0)
    options.set_wal_recovery_mode(
        DBRecoveryMode.point_in_time()
        if salvage
        else DBRecoveryMode.tolerate_corrupted_tail_records()
    )
    return options


def _families() -> dict[str, Options]:
    cache = Cache(CACHE_BYTES)
    families = {table.value: _family_options(table, cache) for table in Table}
    families["default"] = Options(raw_mode=True)
    return families


def _family_options(table: Table, cache: Cache) -> Options:
    options = Options(raw_mode=True)
    blocks = BlockBasedOptions()
    blocks.set_block_cache(cache)
    options.set_block_based_table_factory(blocks)
    options.set_write_buffer_size(_BUFFER_BYTES.get(table, OTHER_BUFFER_BYTES))
    # What is encrypted does not compress.
    sealed = table in _SEALED
    options.set_compression_type(DBCompressionType.none() if sealed else DBCompressionType.lz4())
    if table in (Table.OUTBOX, Table.INDEX):
        options.add_compact_on_deletion_collector_factory(512, 256, 0.5)
    return options


def _refuse_unknown_tables(path: Path) -> None:
    if not (path / "CURRENT").exists():
        return
    try:
        found = set(Rdict.list_cf(str(path)))
    except Exception as error:
        raise _translated(error, path, opening=True) from error
    unknown = found - {table.value for table in Table} - {"default"}
    if unknown:
        raise _too_new(path, f"it has the tables {', '.join(sorted(unknown))}")


def _too_new(path: Path, why: str) -> StoreTooNew:
    return StoreTooNew(
        f"{path} was written by a newer gateway ({why}): start that version, or use another"
        " --data-dir"
    )


def _translated(error: Exception, path: Path, *, opening: bool = False) -> StoreError:
    """The one table of RocksDB's messages."""
    text = str(error)
    if opening and "lock" in text.lower() and "LOCK" in text:
        return StoreBusy(
            f"{path} is in use by another process: stop it, or give this one another --data-dir"
        )
    if text.startswith("Corruption") or (opening and not text.startswith("IO error")):
        return StoreCorrupt(
            f"{path} is damaged ({text}): restore it from a backup; or start with the setting"
            " `journal.salvage: true` (ACP_JOURNAL_SALVAGE=true), which keeps what stands before"
            " the damage; or move it away and start empty"
        )
    if any(os.strerror(number) in text for number in _FULL):
        return StoreFailed(f"no space left for {path}: free some, then restart ({text})")
    if opening and any(os.strerror(number) in text for number in _NOT_OURS):
        return _unusable(path, text)
    return StoreFailed(f"{path}: {text or type(error).__name__}")


def _unusable(path: Path, why: str) -> DirectoryUnusable:
    return DirectoryUnusable(
        f"cannot use the data directory {path}: {why}; give another --data-dir, or let this"
        " user make, read and write it"
    )
