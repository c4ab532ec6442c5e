"""A store that tells when reading finds damage: the reader gets the error, one place hears of it.

It changes nothing that is read or written, and says it once: a damaged block is found again and
again.
"""

from collections.abc import Callable, Iterator

from gateway.stores.errors import StoreCorrupt
from gateway.stores.ports import Batch, Store, Table


class WatchedStore:
    """`ports.Store` around another; `on_damage(problem)` runs at the first StoreCorrupt."""

    def __init__(self, store: Store, on_damage: Callable[[StoreCorrupt], None]) -> None:
        self._store = store
        self._on_damage = on_damage
        self._is_told = False
        self.batch = store.batch
        self.sync = store.sync

    def write(self, batch: Batch) -> None:
        try:
            self._store.write(batch)
        except StoreCorrupt as problem:
            self._tell(problem)
            raise

    def get(self, table: Table, key: bytes) -> bytes | None:
        try:
            return self._store.get(table, key)
        except StoreCorrupt as problem:
            self._tell(problem)
            raise

    def scan(
        self, table: Table, prefix: bytes, *, after: bytes = b"", reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        try:
            yield from self._store.scan(table, prefix, after=after, reverse=reverse)
        except StoreCorrupt as problem:
            self._tell(problem)
            raise

    def erase(self, table: Table, *keys: bytes) -> None:
        try:
            self._store.erase(table, *keys)
        except StoreCorrupt as problem:
            self._tell(problem)
            raise

    def close(self) -> None:
        self._store.close()

    def _tell(self, problem: StoreCorrupt) -> None:
        if not self._is_told:
            self._is_told = True
            self._on_damage(problem)
