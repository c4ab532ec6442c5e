"""A store for tests that keeps what was written but loses, at `crash()`, what was never synced.

That is a power cut: everything after the last `sync` is gone, whole batches at a time. It can also
fail the k-th write or sync, so that a test sees what is acknowledged afterwards.
"""

from collections.abc import Iterator

from gateway.stores.errors import StoreFailed
from gateway.stores.memory import MemoryBatch, MemoryStore
from gateway.stores.ports import Batch, Table


class ForgetfulStore:
    """`ports.Store` whose memory of unsynced batches ends at `crash()`.

    `fail_write` and `fail_sync` name the one write or sync (counted from 1) that fails, and with it
    every later one, as on a disk that is full.
    """

    def __init__(self, *, fail_write: int = 0, fail_sync: int = 0) -> None:
        self._now = MemoryStore()
        self._durable: list[MemoryBatch] = []
        self._unsynced: list[MemoryBatch] = []
        self._fail_write = fail_write
        self._fail_sync = fail_sync
        self.writes = 0
        self.syncs = 0

    def fail_from_now(self, *, write: int = 0, sync: int = 0) -> None:
        """Let the write or sync of that number fail, counted from here (1 = the next), and on."""
        self._fail_write = self.writes + write if write else 0
        self._fail_sync = self.syncs + sync if sync else 0

    def batch(self) -> MemoryBatch:
        return MemoryBatch()

    def write(self, batch: Batch) -> None:
        assert isinstance(batch, MemoryBatch), "a batch goes to the store that made it"
        self.writes += 1
        if self._fail_write and self.writes >= self._fail_write:
            raise StoreFailed(f"write {self.writes} fails as the test asked")
        self._now.write(batch)
        self._unsynced.append(batch)

    def sync(self) -> None:
        self.syncs += 1
        count = len(self._unsynced)  # another thread may append while this one counts
        if self._fail_sync and self.syncs >= self._fail_sync:
            raise StoreFailed(f"sync {self.syncs} fails as the test asked")
        self._durable += self._unsynced[:count]
        del self._unsynced[:count]

    def get(self, table: Table, key: bytes) -> bytes | None:
        return self._now.get(table, key)

    def scan(
        self, table: Table, prefix: bytes, *, after: bytes = b"", reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        return self._now.scan(table, prefix, after=after, reverse=reverse)

    def erase(self, table: Table, *keys: bytes) -> None:
        """Gone from the past too: no crash brings the value back."""
        rows = {(table, key) for key in keys}
        for batch in (*self._durable, *self._unsynced):
            batch.operations = [one for one in batch.operations if one[:2] not in rows]
        self._now.erase(table, *keys)

    def close(self) -> None:
        """Closing syncs nothing."""

    def durable(self) -> "ForgetfulStore":
        """The store that a power cut at this moment would leave; this one goes on."""
        found = ForgetfulStore()
        for batch in tuple(self._durable):  # the sync thread may add to it meanwhile
            found.write(batch)
        found.sync()
        found.writes = found.syncs = 0
        return found

    def crash(self) -> "ForgetfulStore":
        """The store that is found after a power cut; this one must not be used any more."""
        found = self.durable()
        self._now.close()
        return found
