"""Events <-> journal records, sealed with their session's key: deletion destroys that one key.

A record is one byte (what it is), then, if sealed, a 12-byte random nonce and AES-256-GCM text; the
row's name is authenticated too, so no record can stand in another's place. Only events without
payloads (`SessionErased`) are stored plain: they must outlive the key. Payloads stay verbatim JSON.
"""

import os
from collections.abc import Callable, Sequence

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from gateway.engine.events import AnyEvent, SessionErased
from gateway.stores.errors import EventUnknown, KeyGone, RecordCorrupt, RecordError
from gateway.stores.ports import Store, Table
from gateway.stores.tables import (
    SequenceRow,
    parse_sequence_row,
    sequence_of,
    sequence_row,
    session_row,
)

KEY_BYTES = 32
NONCE_BYTES = 12
CHANCE_AT_ONCE = 2048
"""Bytes asked of the system at once, for keys and nonces: each asking lets other threads run."""

PLAIN, SEALED = b"\x00", b"\x01"

LIVE_KEYS_MAX = 16_384
"""Ciphers kept ready, ~0.5 KiB each: as many as sessions live at once; others cost one read."""

Events = tuple[AnyEvent, ...]

_ROW_OF = {table: table.value.encode() + b"\0" for table in Table}
_encoder = msgspec.json.Encoder()
_decoder: msgspec.json.Decoder[Events] = msgspec.json.Decoder(Events)
_one: msgspec.json.Decoder[AnyEvent] = msgspec.json.Decoder(AnyEvent)
_parts: msgspec.json.Decoder[list[msgspec.Raw]] = msgspec.json.Decoder(list[msgspec.Raw])


class _Tagged(msgspec.Struct):
    event: str


KNOWN_EVENTS = frozenset(
    str(kind.__struct_config__.tag) for kind in getattr(AnyEvent, "__args__", ())
)


class Sealer:
    """Makes, finds and forgets the keys of sessions, and seals rows with them. Not thread-safe."""

    def __init__(
        self,
        store: Store,
        *,
        random_bytes: Callable[[int], bytes] = os.urandom,
        live_keys_max: int = LIVE_KEYS_MAX,
    ) -> None:
        self._store = store
        self._random_bytes = random_bytes
        self._live: dict[str, AESGCM] = {}
        self._live_keys_max = live_keys_max
        self._chance = b""
        self._chance_used = 0

    def new_key(self, session_id: str) -> bytes:
        """A fresh key; the caller writes it to KEY in the batch that opens the session."""
        key = self._fresh(KEY_BYTES)
        self._keep(session_id, AESGCM(key))
        return key

    def forget(self, session_id: str) -> None:
        """Drop the cached cipher: call it once the key's row is erased."""
        self._live.pop(session_id, None)

    def seal(self, session_id: str, table: Table, *, key: bytes, plain: bytes) -> bytes:
        """The value to store at `key`. Raises KeyGone when the session has no key (any more)."""
        cipher = self._live.get(session_id) or self._load(session_id, 0)
        nonce = self._fresh(NONCE_BYTES)
        return SEALED + nonce + cipher.encrypt(nonce, plain, _ROW_OF[table] + key)

    def unseal(self, session_id: str, table: Table, *, key: bytes, value: bytes) -> bytes:
        """What was sealed at `key`. Raises KeyGone or RecordCorrupt."""
        kind, body = value[:1], value[1:]
        if kind == PLAIN:
            return body
        if kind != SEALED:
            what = f"unknown kind of record {kind!r}"
            raise RecordCorrupt(session_id, _sequence_in(table, key), what=what)
        cipher = self._live.get(session_id) or self._load(session_id, _sequence_in(table, key))
        nonce, text = body[:NONCE_BYTES], body[NONCE_BYTES:]
        try:
            return cipher.decrypt(nonce, text, _ROW_OF[table] + key)
        except (InvalidTag, ValueError) as error:
            raise RecordCorrupt(
                session_id,
                _sequence_in(table, key),
                what="its bytes were changed; restore the directory from a backup",
            ) from error

    def encode_record(
        self, session_id: str, first_sequence: int, *, events: Sequence[AnyEvent]
    ) -> tuple[bytes, bytes]:
        """Key and value of the journal record of events appended together."""
        key = sequence_row(session_id, first_sequence)
        text = encode(events)
        if type(events[0]) is SessionErased:
            assert len(events) == 1, "SessionErased is appended alone: it is stored unsealed"
            return key, PLAIN + text
        return key, self.seal(session_id, Table.JOURNAL, key=key, plain=text)

    def decode_record(self, key: bytes, value: bytes) -> Events:
        """The events of one row of JOURNAL. Raises a RecordError naming session and sequence."""
        session_id, sequence = parse_sequence_row(key)
        return decode(
            self.unseal(session_id, Table.JOURNAL, key=key, value=value),
            session_id=session_id,
            first_sequence=sequence,
        )

    def _fresh(self, count: int) -> bytes:
        """Random bytes that nobody had before: the system call costs more than AES."""
        start, end = self._chance_used, self._chance_used + count
        if end > len(self._chance):
            self._chance, start, end = self._random_bytes(CHANCE_AT_ONCE), 0, count
        self._chance_used = end
        return self._chance[start:end]

    def _load(self, session_id: str, sequence: int) -> AESGCM:
        key = self._store.get(Table.KEY, session_row(session_id))
        if key is None:
            raise KeyGone(session_id, sequence, what="its key is gone: the session was deleted")
        if len(key) != KEY_BYTES:
            raise RecordCorrupt(session_id, sequence, what="its key has the wrong length")
        cipher = AESGCM(key)
        self._keep(session_id, cipher)
        return cipher

    def _keep(self, session_id: str, cipher: AESGCM) -> None:
        if len(self._live) >= self._live_keys_max:
            # The oldest goes, not the least used: no bookkeeping per use, a miss is one read.
            del self._live[next(iter(self._live))]
        self._live[session_id] = cipher


def _sequence_in(table: Table, key: bytes) -> int:
    return sequence_of(key) if table is Table.JOURNAL else 0


def encode(events: Sequence[AnyEvent]) -> bytes:
    """Events as a JSON array; payloads inside verbatim."""
    return _encoder.encode(events)


def decode(data: bytes, *, session_id: str = "", first_sequence: int = 0) -> Events:
    """The inverse of `encode`. Raises EventUnknown or RecordCorrupt naming the event."""
    try:
        return _decoder.decode(data)
    except msgspec.DecodeError as error:
        raise _explain(data, SequenceRow(session_id, first_sequence)) from error


def _explain(data: bytes, row: SequenceRow) -> RecordError:
    """Find the event that does not decode: rare, so it may take its time."""
    session_id, first = row
    try:
        parts = _parts.decode(data)
    except msgspec.DecodeError:
        return RecordCorrupt(session_id, first, what="it is not a JSON list of events")
    for sequence, part in enumerate(parts, first):
        try:
            _one.decode(part)
        except msgspec.DecodeError as error:
            return _explain_one(bytes(part), SequenceRow(session_id, sequence), why=str(error))
    return RecordCorrupt(session_id, first, what="it decodes in parts but not as a whole")


def _explain_one(part: bytes, row: SequenceRow, *, why: str) -> RecordError:
    try:
        name = msgspec.json.decode(part, type=_Tagged).event
    except msgspec.DecodeError:
        return RecordCorrupt(*row, what="it is not an event")
    if name in KNOWN_EVENTS:
        return RecordCorrupt(*row, what=f"{name} does not decode: {why}")
    return EventUnknown(
        *row, what=f"unknown event {name!r}: a newer gateway wrote it, start that version"
    )
