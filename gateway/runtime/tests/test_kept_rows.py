"""A spoilt row keeps no gateway from starting, and no other row from being read."""

import msgspec

from gateway.governance.fallback_track import Track
from gateway.runtime.kept_rows import kept_rows
from gateway.stores.durable import WriteThrough
from gateway.stores.memory import MemoryStore
from gateway.stores.ports import Table


def test_what_cannot_be_read_is_passed_over_and_stays_where_it_is() -> None:
    store = MemoryStore()
    durable = WriteThrough(store)
    rows = {b"x\0a": b"{", b"x\0b": b'{"trips":2}', b"x\0c": b'{"trips":"2"}', b"y\0d": b"{}"}
    for key, value in rows.items():
        durable.put(Table.GOVERNANCE, key, value)
    assert list(kept_rows(store, b"x\0", kind=Track)) == [(b"b", Track(trips=2))]
    assert dict(store.scan(Table.GOVERNANCE, b"")) == rows


def test_only_keys_with_the_ending_are_read() -> None:
    store = MemoryStore()
    text = msgspec.json.encode(Track(trips=1))
    WriteThrough(store).put(Table.GOVERNANCE, b"x\0a\0track", text)
    assert list(kept_rows(store, b"x\0", kind=Track, ending=b"recent")) == []
    assert [key for key, _ in kept_rows(store, b"x\0", kind=Track, ending=b"track")] == [
        b"a\0track"
    ]
