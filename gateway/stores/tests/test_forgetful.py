"""The store of power cuts, tested itself: a test that trusts it must be able to."""

import pytest

from gateway.stores.errors import StoreFailed
from gateway.stores.forgetful import ForgetfulStore
from gateway.stores.ports import Table


def _put(store: ForgetfulStore, key: bytes) -> None:
    batch = store.batch()
    batch.put(Table.INDEX, key, b"")
    store.write(batch)


def _keys(store: ForgetfulStore) -> list[bytes]:
    return [key for key, _ in store.scan(Table.INDEX, b"")]


def test_a_crash_loses_exactly_what_was_not_synced() -> None:
    store = ForgetfulStore()
    _put(store, b"1")
    _put(store, b"2")
    store.sync()
    _put(store, b"3")
    assert _keys(store) == [b"1", b"2", b"3"]
    assert _keys(store.crash()) == [b"1", b"2"]


def test_an_erased_row_does_not_come_back_with_a_crash() -> None:
    store = ForgetfulStore()
    _put(store, b"1")
    store.sync()
    store.erase(Table.INDEX, b"1")
    assert _keys(store.crash()) == []


def test_from_the_chosen_write_or_sync_on_all_fail() -> None:
    store = ForgetfulStore(fail_write=2, fail_sync=2)
    _put(store, b"1")
    store.sync()
    for _ in range(2):
        with pytest.raises(StoreFailed):
            _put(store, b"2")
        with pytest.raises(StoreFailed):
            store.sync()
    assert _keys(store) == _keys(store.crash()) == [b"1"]
