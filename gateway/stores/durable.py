"""Small durable rows (tokens, workflows): put now, acknowledge after the disk has them.

In a gateway the committer is the one writer. A command that works on a stopped gateway's directory
uses `WriteThrough`, which keeps the same promise without an event loop's ticks.
"""

from pathlib import Path
from typing import Protocol

from gateway.stores.ports import Store, Table


class Durable(Protocol):
    """What the committer offers to the keepers of small rows."""

    def put(self, table: Table, key: bytes, value: bytes) -> None: ...

    def delete(self, table: Table, key: bytes) -> None: ...

    async def synced(self) -> None:
        """Return once everything put so far is on disk; raises the store's failure."""


class WriteThrough:
    """Writes every row at once; `synced` syncs the store in the caller's thread."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def put(self, table: Table, key: bytes, value: bytes) -> None:
        batch = self._store.batch()
        batch.put(table, key, value)
        self._store.write(batch)

    def delete(self, table: Table, key: bytes) -> None:
        batch = self._store.batch()
        batch.delete(table, key)
        self._store.write(batch)

    async def synced(self) -> None:
        self._store.sync()


def store_path(data_dir: Path) -> Path:
    """Where in a gateway's data directory its store is; commands on a stopped one look here too."""
    return data_dir / "store"
