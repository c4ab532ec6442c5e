"""A reader sees what was put, whether or not the batch was written; memory stays bounded."""

from gateway.stores.fresh_rows import ROWS_HELD_MAX, FreshRows
from gateway.stores.memory import MemoryStore
from gateway.stores.ports import Table


class Unwritten:
    """A committer whose tick never ends."""

    def __init__(self) -> None:
        self.asked: list[tuple[bytes, bytes | None]] = []

    def put(self, table: Table, key: bytes, value: bytes) -> None:
        self.asked.append((key, value))

    def delete(self, table: Table, key: bytes) -> None:
        self.asked.append((key, None))

    async def synced(self) -> None:
        raise AssertionError("it never ends")


def _store(**rows: bytes) -> MemoryStore:
    store = MemoryStore()
    batch = store.batch()
    for key, value in rows.items():
        batch.put(Table.INDEX, key.encode(), value)
    store.write(batch)
    return store


def test_what_was_put_or_deleted_in_this_tick_is_seen_at_once() -> None:
    durable = Unwritten()
    rows = FreshRows(_store(a=b"old", b=b"old"), durable, table=Table.INDEX)
    assert rows.get(b"a") == b"old"
    rows.put(b"a", b"new")
    rows.delete(b"b")
    assert (rows.get(b"a"), rows.get(b"b"), rows.get(b"c")) == (b"new", None, None)
    assert durable.asked == [(b"a", b"new"), (b"b", None)]


def test_it_holds_no_more_than_the_last_rows() -> None:
    durable = Unwritten()
    rows = FreshRows(_store(first=b"1"), durable, table=Table.INDEX)
    assert rows.get(b"first") == b"1"
    for number in range(3 * ROWS_HELD_MAX):
        rows.put(str(number).encode(), b"x")
    assert len(rows) == ROWS_HELD_MAX
    assert rows.get(b"first") == b"1", "it stands in the store"
