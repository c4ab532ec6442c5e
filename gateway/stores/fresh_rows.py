"""Rows that are read, changed and put back: a reader sees what was put, written or not.

A batch is written at the end of its tick; whoever reads the store before that sees the older row.
The last few thousand rows that were touched are held here, so that none of them is older than what
was put. It holds no more than that, however many rows there are.
"""

from collections import OrderedDict
from typing import Final

from gateway.stores.durable import Durable
from gateway.stores.ports import Store, Table

ROWS_HELD_MAX: Final = 4_096
"""Many times what one tick puts; some 300 bytes each."""


class FreshRows:
    """One table's rows, for their only writer."""

    def __init__(self, store: Store, durable: Durable, *, table: Table) -> None:
        self._store = store
        self._durable = durable
        self._table = table
        self._held: OrderedDict[bytes, bytes | None] = OrderedDict()

    def __len__(self) -> int:
        """How many are held in memory."""
        return len(self._held)

    def get(self, key: bytes) -> bytes | None:
        """The row as it was last put."""
        if key in self._held:
            self._held.move_to_end(key)
            return self._held[key]
        return self._hold(key, self._store.get(self._table, key))

    def put(self, key: bytes, value: bytes) -> None:
        self._durable.put(self._table, key, value)
        self._hold(key, value)

    def delete(self, key: bytes) -> None:
        self._durable.delete(self._table, key)
        self._hold(key, None)

    def _hold(self, key: bytes, value: bytes | None) -> bytes | None:
        self._held[key] = value
        self._held.move_to_end(key)
        if len(self._held) > ROWS_HELD_MAX:
            self._held.popitem(last=False)
        return value
