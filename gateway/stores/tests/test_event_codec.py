"""Records: payloads pass byte for byte, every damage has a name, a destroyed key ends it all."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acp_spec.model.payload import ABSENT, payload
from gateway.engine.events import AnyEvent, FinishRequested, SessionErased
from gateway.stores import event_codec
from gateway.stores.errors import EventUnknown, KeyGone, RecordCorrupt
from gateway.stores.event_codec import KNOWN_EVENTS, Sealer
from gateway.stores.memory import MemoryStore
from gateway.stores.ports import Table
from gateway.stores.tables import sequence_row, session_row
from gateway.stores.tests.examples import EVENTS, EXACT, SESSION, as_text

OTHER = "01J8ZC4B6Q0000000000000002"
ROW = sequence_row(SESSION, 5)


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def sealer(store: MemoryStore) -> Sealer:
    sealer = Sealer(store)
    for session in (SESSION, OTHER):
        batch = store.batch()
        batch.put(Table.KEY, session_row(session), sealer.new_key(session))
        store.write(batch)
    return sealer


def test_there_is_an_example_of_every_event() -> None:
    assert {type(event).__name__ for event in EVENTS} == KNOWN_EVENTS


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_every_event_comes_back_as_it_went_in(event: AnyEvent, sealer: Sealer) -> None:
    _, record = sealer.encode_record(SESSION, 5, events=(event,))
    (back,) = sealer.decode_record(ROW, record)
    assert type(back) is type(event)
    assert as_text(back) == as_text(event)


_json = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.lists(_json, min_size=1, max_size=4))
def test_payloads_pass_byte_for_byte(values: list[object]) -> None:
    texts = [json.dumps(value, indent=1).encode() for value in values]
    events = [FinishRequested(at_ms=1, output=payload(text)) for text in texts]
    back = event_codec.decode(event_codec.encode(events))
    assert [bytes(one.output) for one in back if isinstance(one, FinishRequested)] == texts


def test_a_payload_that_is_absent_stays_absent() -> None:
    (back,) = event_codec.decode(event_codec.encode([FinishRequested(at_ms=1)]))
    assert isinstance(back, FinishRequested)
    assert back.output is ABSENT


def test_no_payload_stands_readable_in_a_record(sealer: Sealer) -> None:
    _, record = sealer.encode_record(SESSION, 5, events=EVENTS[:2])
    assert bytes(EXACT) not in record
    assert b"Opened" not in record


def test_sealing_the_same_text_twice_gives_different_records(sealer: Sealer) -> None:
    assert sealer.encode_record(SESSION, 5, events=EVENTS[:1]) != sealer.encode_record(
        SESSION, 5, events=EVENTS[:1]
    )


@given(position=st.integers(0, 200), flip=st.integers(1, 255))
def test_one_changed_byte_is_found(position: int, flip: int) -> None:
    store = MemoryStore()
    sealer = Sealer(store)
    sealer.new_key(SESSION)
    record = bytearray(sealer.encode_record(SESSION, 5, events=EVENTS[1:2])[1])
    position %= len(record)
    record[position] ^= flip
    with pytest.raises(RecordCorrupt) as caught:
        sealer.decode_record(ROW, bytes(record))
    assert (caught.value.session_id, caught.value.sequence) == (SESSION, 5)


@pytest.mark.parametrize("record", [b"", b"\x00", b"\x01", b"\x01short", b"\x00{}", b"\x09x"])
def test_a_cut_or_foreign_record_is_corrupt(record: bytes, sealer: Sealer) -> None:
    with pytest.raises(RecordCorrupt, match=f"session {SESSION}, record at sequence 5"):
        sealer.decode_record(ROW, record)


def test_a_record_cannot_stand_in_another_place(sealer: Sealer) -> None:
    _, record = sealer.encode_record(SESSION, 5, events=EVENTS[:1])
    for row in (sequence_row(SESSION, 6), sequence_row(OTHER, 5)):
        with pytest.raises(RecordCorrupt):
            sealer.decode_record(row, record)
    with pytest.raises(RecordCorrupt):
        sealer.unseal(SESSION, Table.SHARD, key=ROW, value=record)


def test_an_event_of_a_newer_gateway_is_named_with_its_own_sequence(sealer: Sealer) -> None:
    text = b'[{"event":"CancelRequested","at_ms":1},{"event":"Teleported","at_ms":2}]'
    with pytest.raises(EventUnknown, match="sequence 6.*'Teleported'.*newer gateway"):
        sealer.decode_record(ROW, sealer.seal(SESSION, Table.JOURNAL, key=ROW, plain=text))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b'[{"event":"Late","at_ms":1}]', "Late does not decode"),
        (b'[{"at_ms":1}]', "not an event"),
        (b"[1]", "not an event"),
        (b'{"event":"Late"}', "not a JSON list"),
        (b"[{", "not a JSON list"),
    ],
)
def test_text_that_is_no_event_is_corrupt_and_says_why(text: bytes, why: str) -> None:
    with pytest.raises(RecordCorrupt, match=why):
        event_codec.decode(text, session_id=SESSION, first_sequence=5)


def test_an_event_keeps_fields_that_a_later_gateway_added(sealer: Sealer) -> None:
    (back,) = event_codec.decode(b'[{"event":"CancelRequested","at_ms":1,"why":"new"}]')
    assert back.at_ms == 1


def test_without_its_key_a_session_is_unreadable_except_for_its_tombstone(
    store: MemoryStore, sealer: Sealer
) -> None:
    _, record = sealer.encode_record(SESSION, 5, events=EVENTS[:1])
    _, tombstone = sealer.encode_record(SESSION, 6, events=[SessionErased(at_ms=9, by="admin")])
    store.erase(Table.KEY, session_row(SESSION))
    sealer.forget(SESSION)
    with pytest.raises(KeyGone, match="deleted"):
        sealer.decode_record(ROW, record)
    with pytest.raises(KeyGone):
        sealer.encode_record(SESSION, 7, events=EVENTS[:1])
    (back,) = sealer.decode_record(sequence_row(SESSION, 6), tombstone)
    assert back == SessionErased(at_ms=9, by="admin")


def test_every_record_has_its_own_nonce(sealer: Sealer) -> None:
    records = [sealer.encode_record(SESSION, 5, events=EVENTS[:1])[1] for _ in range(500)]
    assert len({record[1:13] for record in records}) == 500


def test_more_sessions_than_kept_ciphers_are_still_readable(store: MemoryStore) -> None:
    sealer = Sealer(store, live_keys_max=2)
    records = {}
    for number in range(6):
        session = f"{number:026d}"
        batch = store.batch()
        batch.put(Table.KEY, session_row(session), sealer.new_key(session))
        store.write(batch)
        _, records[session] = sealer.encode_record(session, 0, events=EVENTS[:1])
    for session, record in records.items():
        assert len(sealer.decode_record(sequence_row(session, 0), record)) == 1
