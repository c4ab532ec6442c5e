"""The ports to durable state: small, so that RocksDB, memory and fault-injecting stores fit them.

A `Batch` is atomic. `write` survives a killed process; `sync` returns only once everything written
before it is on disk. Nothing here knows sessions' meaning: keys and values are bytes.
"""

from collections.abc import Iterator
from typing import Protocol

from acp_spec.model.enums import Word


class Table(Word):
    """Column families. One key layout each, documented in `tables.py`."""

    JOURNAL = "journal"
    SESSION = "session"
    SHARD = "shard"
    INDEX = "index"
    KEY = "key"
    REGISTRY = "registry"
    WORKFLOW = "workflow"
    TOKEN = "token"
    OUTBOX = "outbox"
    META = "meta"
    GOVERNANCE = "governance"
    AUDIT = "audit"


class Batch(Protocol):
    """Writes that happen together or not at all."""

    def put(self, table: Table, key: bytes, value: bytes) -> None: ...

    def delete(self, table: Table, key: bytes) -> None: ...


class Store(Protocol):
    """One directory (or memory) of tables; one process at a time.

    What is found when it is opened is on disk: opening makes durable what a killed process had
    only written (RocksDB flushes what it reads back from its log).
    """

    def batch(self) -> Batch: ...

    def write(self, batch: Batch) -> None:
        """Apply atomically; visible and safe from a killed process on return."""

    def sync(self) -> None:
        """Block until everything written so far is on disk. Called from one worker thread."""

    def get(self, table: Table, key: bytes) -> bytes | None: ...

    def scan(
        self, table: Table, prefix: bytes, *, after: bytes = b"", reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        """Rows whose key starts with `prefix`, in key order, strictly beyond `after`."""

    def erase(self, table: Table, *keys: bytes) -> None:
        """Delete rows so that their values are gone from disk too (used for session keys)."""

    def close(self) -> None: ...
