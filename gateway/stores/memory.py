"""A store in memory, for tests and simulations; it keeps the order of keys of a real one.

It promises what `ports.Store` says except that nothing outlives the process. `sync` is a no-op.
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator

from gateway.stores.errors import StoreFailed
from gateway.stores.ports import Batch, Table

Operation = tuple[Table, bytes, bytes | None]


class MemoryBatch:
    """Operations in the order they were given; a later one on the same key wins."""

    def __init__(self) -> None:
        self.operations: list[Operation] = []

    def put(self, table: Table, key: bytes, value: bytes) -> None:
        self.operations.append((table, key, value))

    def delete(self, table: Table, key: bytes) -> None:
        self.operations.append((table, key, None))


class _Rows:
    """One table: values by key, and the keys in order."""

    def __init__(self) -> None:
        self.values: dict[bytes, bytes] = {}
        self.keys: list[bytes] = []

    def put(self, key: bytes, value: bytes) -> None:
        if key not in self.values:
            insort(self.keys, key)
        self.values[key] = value

    def delete(self, key: bytes) -> None:
        if self.values.pop(key, None) is not None:
            del self.keys[bisect_left(self.keys, key)]

    def between(self, prefix: bytes, after: bytes, *, reverse: bool) -> list[bytes]:
        start, stop = bisect_left(self.keys, prefix), _end_of(self.keys, prefix)
        if not after:
            found = self.keys[start:stop]
        elif reverse:
            found = self.keys[start : max(start, min(stop, bisect_left(self.keys, after)))]
        else:
            found = self.keys[max(start, bisect_right(self.keys, after)) : stop]
        return found[::-1] if reverse else found


def _end_of(keys: list[bytes], prefix: bytes) -> int:
    upper = prefix_end(prefix)
    return len(keys) if upper is None else bisect_left(keys, upper)


def prefix_end(prefix: bytes) -> bytes | None:
    """The smallest key beyond every key with this prefix; None when there is no such key."""
    trimmed = prefix.rstrip(b"\xff")
    return trimmed[:-1] + bytes([trimmed[-1] + 1]) if trimmed else None


class MemoryStore:
    """`ports.Store` over dictionaries."""

    def __init__(self) -> None:
        self._tables = {table: _Rows() for table in Table}
        self._closed = False

    def batch(self) -> MemoryBatch:
        return MemoryBatch()

    def write(self, batch: Batch) -> None:
        assert isinstance(batch, MemoryBatch), "a batch goes to the store that made it"
        self._check_open()
        for table, key, value in batch.operations:
            if value is None:
                self._tables[table].delete(key)
            else:
                self._tables[table].put(key, value)

    def sync(self) -> None:
        self._check_open()

    def get(self, table: Table, key: bytes) -> bytes | None:
        self._check_open()
        return self._tables[table].values.get(key)

    def scan(
        self, table: Table, prefix: bytes, *, after: bytes = b"", reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        """A snapshot: rows written after the call do not appear."""
        self._check_open()
        rows = self._tables[table]
        found = [(key, rows.values[key]) for key in rows.between(prefix, after, reverse=reverse)]
        return iter(found)

    def erase(self, table: Table, *keys: bytes) -> None:
        self._check_open()
        for key in keys:
            self._tables[table].delete(key)

    def close(self) -> None:
        self._closed = True

    def _check_open(self) -> None:
        if self._closed:
            raise StoreFailed("the store is closed: open it again before using it")
