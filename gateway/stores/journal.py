"""Reading the journal back: for recovery, replay, the events stream and `acp sessions show`.

Writing goes through the committer only. An unreadable record raises a RecordError naming it.
"""

from collections.abc import Iterator

from gateway.engine.events import AnyEvent
from gateway.stores.event_codec import Events, Sealer
from gateway.stores.ports import Store, Table
from gateway.stores.tables import sequence_of, session_row


def read_records(store: Store, sealer: Sealer, *, session_id: str) -> Iterator[tuple[int, Events]]:
    """The session's records in order: the sequence of the first event, and the events."""
    for key, value in store.scan(Table.JOURNAL, session_row(session_id)):
        yield sequence_of(key), sealer.decode_record(key, value)


def read_events(
    store: Store, sealer: Sealer, *, session_id: str, after: int = -1
) -> Iterator[tuple[int, AnyEvent]]:
    """The session's events with their sequence, those beyond `after` only."""
    for first, events in read_records(store, sealer, session_id=session_id):
        for sequence, event in enumerate(events, first):
            if sequence > after:
                yield sequence, event
