"""Many finished sessions on disk, quickly: a real one's rows, copied under other names.

The gateway of the directory must not run. What is written is what a gateway writes: a key, sealed
journal records, shard rows and list rows for each session.
"""

import secrets
from collections.abc import Iterator
from pathlib import Path

import msgspec

from acp_spec.model.enums import SessionStatus
from acp_spec.model.ids import session_id, time_ms_of
from gateway.engine.events import Opened
from gateway.stores.durable import store_path
from gateway.stores.event_codec import Events, Sealer
from gateway.stores.journal import read_records
from gateway.stores.ports import Store, Table
from gateway.stores.rocksdb import RocksStore
from gateway.stores.tables import listed_prefix, listed_row, session_row

SESSIONS_AT_ONCE = 200
_ENDED = SessionStatus.SUCCEEDED.value


def fill(directory: Path, sessions: int, *, like: str) -> None:
    """Copy the finished session `like` until that many are stored."""
    store = RocksStore(store_path(directory))
    try:
        template = _Template(store, like)
        missing = sessions - template.stored()
        while missing > 0:
            some = min(SESSIONS_AT_ONCE, missing)
            template.write(some)
            missing -= some
        store.sync()
    finally:
        store.close()


class _Template:
    """One session as it is stored."""

    def __init__(self, store: Store, name: str) -> None:
        self._store = store
        self._sealer = Sealer(store)
        self._records = list(read_records(store, self._sealer, session_id=name))
        self._shards = list(store.scan(Table.SHARD, session_row(name)))
        opened = self._records[0][1][0]
        assert isinstance(opened, Opened), "a journal begins with the opening"
        self._opened = opened
        self._time_ms = time_ms_of(name)

    def stored(self) -> int:
        """Sessions of this kind that are stored."""
        prefix = listed_prefix(self._opened.tenant, _ENDED)
        return sum(1 for _ in self._store.scan(Table.INDEX, prefix))

    def write(self, count: int) -> None:
        """That many copies, in one batch."""
        batch = self._store.batch()
        prefix_length = len(session_row(self._opened.session_id))
        for _ in range(count):
            name = session_id(self._time_ms, 0, random_64=secrets.randbits(64))
            batch.put(Table.KEY, session_row(name), self._sealer.new_key(name))
            for first, events in self._renamed(name):
                key, value = self._sealer.encode_record(name, first, events=events)
                batch.put(Table.JOURNAL, key, value)
            for key, value in self._shards:
                batch.put(Table.SHARD, session_row(name) + key[prefix_length:], value)
            opened = self._opened
            for status in ("", _ENDED):
                row = listed_row(opened.tenant, name, status=status)
                batch.put(Table.INDEX, row, opened.workflow.encode())
            self._sealer.forget(name)
        self._store.write(batch)

    def _renamed(self, name: str) -> Iterator[tuple[int, Events]]:
        opened = msgspec.structs.replace(self._opened, session_id=name)
        for first, events in self._records:
            yield first, (opened, *events[1:]) if first == 1 else events
