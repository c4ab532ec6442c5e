"""One contract for every store: what `ports.Store` promises, asked of each that we ship."""

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.stores.errors import StoreFailed
from gateway.stores.forgetful import ForgetfulStore
from gateway.stores.memory import MemoryStore
from gateway.stores.ports import Store, Table
from gateway.stores.rocksdb import RocksStore

MAKERS: dict[str, Callable[[Path], Store]] = {
    "memory": lambda path: MemoryStore(),
    "forgetful": lambda path: ForgetfulStore(),
    "rocksdb": RocksStore,
}
_fresh = itertools.count()


@pytest.fixture(scope="module", params=sorted(MAKERS))
def store(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Store]:
    made = MAKERS[request.param](tmp_path_factory.mktemp("store"))
    yield made
    made.close()


@pytest.fixture
def prefix() -> bytes:
    """Each test writes below its own prefix, so that all can share one store."""
    return _own_prefix()


def _own_prefix() -> bytes:
    return b"%08d/" % next(_fresh)


def _put(store: Store, rows: dict[bytes, bytes], table: Table = Table.INDEX) -> None:
    batch = store.batch()
    for key, value in rows.items():
        batch.put(table, key, value)
    store.write(batch)


def test_a_written_row_is_read_back_and_a_missing_one_is_none(store: Store, prefix: bytes) -> None:
    _put(store, {prefix + b"a": b"1", prefix + b"empty": b""})
    assert store.get(Table.INDEX, prefix + b"a") == b"1"
    assert store.get(Table.INDEX, prefix + b"empty") == b""
    assert store.get(Table.INDEX, prefix + b"b") is None


def test_the_same_key_in_two_tables_is_two_rows(store: Store, prefix: bytes) -> None:
    _put(store, {prefix: b"one"}, Table.JOURNAL)
    _put(store, {prefix: b"two"}, Table.SHARD)
    assert store.get(Table.JOURNAL, prefix) == b"one"
    assert store.get(Table.SHARD, prefix) == b"two"


def test_nothing_of_a_batch_is_seen_before_it_is_written(store: Store, prefix: bytes) -> None:
    batch = store.batch()
    batch.put(Table.INDEX, prefix, b"1")
    batch.put(Table.KEY, prefix, b"1")
    assert store.get(Table.INDEX, prefix) is None
    store.write(batch)
    assert store.get(Table.INDEX, prefix) == store.get(Table.KEY, prefix) == b"1"


def test_the_last_operation_on_a_key_within_a_batch_wins(store: Store, prefix: bytes) -> None:
    batch = store.batch()
    batch.put(Table.INDEX, prefix + b"kept", b"1")
    batch.delete(Table.INDEX, prefix + b"kept")
    batch.put(Table.INDEX, prefix + b"kept", b"2")
    batch.put(Table.INDEX, prefix + b"gone", b"1")
    batch.delete(Table.INDEX, prefix + b"gone")
    store.write(batch)
    assert [*store.scan(Table.INDEX, prefix)] == [(prefix + b"kept", b"2")]


def test_a_scan_gives_the_rows_of_its_prefix_in_key_order(store: Store, prefix: bytes) -> None:
    rows = {prefix + bytes([n]): b"%d" % n for n in (200, 3, 255, 0, 17)}
    _put(store, rows | {prefix[:-1] + b"0": b"neighbour", b"\x00": b"first", b"\xff\xff": b"last"})
    assert [*store.scan(Table.INDEX, prefix)] == sorted(rows.items())
    assert [*store.scan(Table.INDEX, prefix, reverse=True)] == sorted(rows.items(), reverse=True)


def test_a_scan_goes_on_strictly_beyond_after_in_both_directions(
    store: Store, prefix: bytes
) -> None:
    keys = [prefix + b"%d" % n for n in range(5)]
    _put(store, dict.fromkeys(keys, b"v"))

    def found(after: bytes, reverse: bool = False) -> list[bytes]:
        return [k for k, _ in store.scan(Table.INDEX, prefix, after=after, reverse=reverse)]

    assert found(keys[2]) == keys[3:]
    assert found(keys[2] + b"x") == keys[3:]
    assert found(keys[2], reverse=True) == keys[1::-1]
    assert found(keys[4]) == []
    assert found(keys[0], reverse=True) == []
    assert found(b"\x00") == keys, "an `after` before the prefix hides nothing"
    assert found(b"\xff" * 40) == []
    assert found(b"\xff" * 40, reverse=True) == keys[::-1]
    assert found(b"\x00", reverse=True) == []


def test_a_prefix_of_the_highest_bytes_is_scanned_to_its_end(store: Store) -> None:
    _put(store, {b"\xff\xff\x01": b"1", b"\xff\xff\xff": b"2"}, Table.TOKEN)
    assert [k for k, _ in store.scan(Table.TOKEN, b"\xff\xff")] == [
        b"\xff\xff\x01",
        b"\xff\xff\xff",
    ]
    assert len([*store.scan(Table.TOKEN, b"", reverse=True)]) == 2


def test_a_scan_that_has_begun_is_not_disturbed_by_later_writes(
    store: Store, prefix: bytes
) -> None:
    _put(store, {prefix + b"%03d" % n: b"v" for n in range(100)})
    scan = store.scan(Table.INDEX, prefix)
    first = next(scan)
    batch = store.batch()
    for n in range(100):
        batch.delete(Table.INDEX, prefix + b"%03d" % n)
    batch.put(Table.INDEX, prefix + b"new", b"v")
    store.write(batch)
    assert len([first, *scan]) == 100


def test_an_erased_row_is_gone_and_the_others_stay(store: Store, prefix: bytes) -> None:
    _put(store, {prefix + b"a": b"1", prefix + b"b": b"2"}, Table.KEY)
    store.erase(Table.KEY, prefix + b"a")
    store.erase(Table.KEY, prefix + b"never there")
    assert [*store.scan(Table.KEY, prefix)] == [(prefix + b"b", b"2")]


def test_sync_returns_and_may_be_repeated(store: Store, prefix: bytes) -> None:
    _put(store, {prefix: b"1"})
    store.sync()
    store.sync()
    assert store.get(Table.INDEX, prefix) == b"1"


@pytest.mark.parametrize("name", sorted(MAKERS))
def test_a_closed_store_refuses_to_work(name: str, tmp_path: Path) -> None:
    store = MAKERS[name](tmp_path)
    batch = store.batch()
    batch.put(Table.INDEX, b"k", b"v")
    store.close()
    store.close()
    if name == "forgetful":
        return  # it is closed by its crash
    with pytest.raises(StoreFailed, match="closed"):
        store.get(Table.INDEX, b"k")
    with pytest.raises(StoreFailed, match="closed"):
        store.write(batch)


_keys = st.binary(min_size=1, max_size=3)
_operations = st.lists(
    st.tuples(
        st.sampled_from([Table.INDEX, Table.OUTBOX]), _keys, st.none() | st.binary(max_size=4)
    ),
    max_size=12,
)


@given(
    batches=st.lists(_operations, max_size=6), after=st.none() | _keys, prefix=st.binary(max_size=2)
)
def test_any_batches_leave_what_a_dictionary_would_hold(
    store: Store,
    batches: list[list[tuple[Table, bytes, bytes | None]]],
    after: bytes | None,
    prefix: bytes,
) -> None:
    own = _own_prefix()
    model: dict[Table, dict[bytes, bytes]] = {Table.INDEX: {}, Table.OUTBOX: {}}
    for operations in batches:
        batch = store.batch()
        for table, key, value in operations:
            if value is None:
                batch.delete(table, own + key)
                model[table].pop(own + key, None)
            else:
                batch.put(table, own + key, value)
                model[table][own + key] = value
        store.write(batch)
    beyond = own + after if after is not None else b""
    for table, rows in model.items():
        wanted = sorted(r for r in rows.items() if r[0].startswith(own + prefix))
        up = [r for r in wanted if r[0] > beyond]
        down = [r for r in reversed(wanted) if not beyond or r[0] < beyond]
        assert [*store.scan(table, own + prefix, after=beyond)] == up
        assert [*store.scan(table, own + prefix, after=beyond, reverse=True)] == down
