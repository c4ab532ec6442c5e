"""Damage that a reader finds is told once, and the reader still gets the error."""

from collections.abc import Callable, Iterator

import pytest

from gateway.stores.errors import StoreCorrupt
from gateway.stores.memory import MemoryStore
from gateway.stores.ports import Store, Table
from gateway.stores.watched import WatchedStore


class Damaged(MemoryStore):
    """Nothing can be read from it."""

    def get(self, table: Table, key: bytes) -> bytes | None:
        raise StoreCorrupt("/secret/place is damaged")

    def scan(
        self, table: Table, prefix: bytes, *, after: bytes = b"", reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        yield b"a", b"1"
        raise StoreCorrupt("/secret/place is damaged")


@pytest.mark.parametrize(
    "read",
    [lambda store: store.get(Table.META, b"k"), lambda store: list(store.scan(Table.META, b""))],
    ids=["get", "scan"],
)
def test_damage_is_told_once_and_raised_each_time(read: Callable[[Store], object]) -> None:
    told: list[StoreCorrupt] = []
    store = WatchedStore(Damaged(), told.append)
    for _ in range(3):
        with pytest.raises(StoreCorrupt):
            read(store)
    assert len(told) == 1


def test_a_sound_store_is_what_it_was() -> None:
    told: list[StoreCorrupt] = []
    store = WatchedStore(MemoryStore(), told.append)
    batch = store.batch()
    batch.put(Table.META, b"a", b"1")
    batch.put(Table.META, b"b", b"2")
    store.write(batch)
    store.sync()
    store.erase(Table.META, b"b")
    assert store.get(Table.META, b"a") == b"1"
    assert list(store.scan(Table.META, b"")) == [(b"a", b"1")]
    store.close()
    assert told == []
