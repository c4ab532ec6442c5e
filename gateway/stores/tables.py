"""Key layouts of every table: the one place that knows how rows are named and ordered.

Session ids have a fixed length and sort by time, so they need no separator; free text before
another part ends with NUL (`text_part` refuses NUL inside). Numbers: 8 bytes, big endian.

| table | key | value |
|---|---|---|
| JOURNAL | session_id, first sequence | the events appended together (`event_codec`), sealed |
| SESSION | session_id | tombstone of a deleted session |
| SHARD | session_id, shard name, NUL, row | a projection's row, without payloads |
| INDEX | `L` tenant NUL status NUL session_id | workflow: list pages; status empty: every session |
| INDEX | `T` tenant NUL status NUL session_id | the same, of twins: never in a caller's list |
| INDEX | `K` tenant NUL session_key | session_id and request digest |
| INDEX | `RQ` tenant NUL slice NUL order session_id | empty: put up for review, next one first |
| INDEX | `RS` session_id | how its review stands; empty: looked at once and not put up |
| INDEX | `RR` session_id reviewer's digest (16 bytes) | what that reviewer has opened |
| INDEX | `RP` tenant NUL reviewer's digest | the session that this reviewer is at |
| INDEX | `RT` tenant NUL | how many were put up, wait, were handed out |
| KEY | session_id | 32 bytes: the session's key; without it nothing sealed can be read |
| REGISTRY | component_id | the registration |
| REGISTRY | `active` NUL name | the active version of that name |
| WORKFLOW | name NUL version | the workflow's text |
| TOKEN | token hash | the token's claims |
| OUTBOX | session_id, sequence | empty: a trajectory not yet delivered |
| META | name | singletons: format, switches; `erasing` NUL session_id; `unarchive` NUL session_id |
| GOVERNANCE | kind NUL name ... | what people decide at run time, in their keeper's form |
| AUDIT | number | who changed what, chained by hash (`gateway/board/audit`) |
"""

import functools
import hashlib
import struct
from typing import NamedTuple

SESSION_BYTES = 26
SEQUENCE_BYTES = 8
NUL = b"\0"
SHARDS = 3

PREFIXES_KEPT = 256
"""Of list rows: made once for each tenant and status, as long as there are not many of them."""

_U64 = struct.Struct(">Q")
_F64 = struct.Struct(">d")
_REVIEWER_BYTES = 16
_LISTED, _TWINS, _SESSION_KEY = b"L", b"T", b"K"

FORMAT_KEY = b"format"
"""META row with the number of this layout; a store refuses to open a newer one."""

FORMAT = 1

_ERASING, _ARCHIVE_ERASING = b"erasing\0", b"unarchive\0"


def text_part(text: str) -> bytes:
    """Free text as a part of a key; NUL is the separator and cannot stand inside."""
    data = text.encode()
    if NUL in data:
        raise ValueError("a name used as a key must not contain the character U+0000")
    return data + NUL


def session_row(session_id: str) -> bytes:
    """Key of a session's row in SESSION and KEY; prefix of its rows in JOURNAL, SHARD, OUTBOX."""
    return session_id.encode()


def sequence_row(session_id: str, sequence: int) -> bytes:
    """Key in JOURNAL (sequence of the record's first event) and in OUTBOX."""
    return session_id.encode() + _U64.pack(sequence)


class SequenceRow(NamedTuple):
    session_id: str
    sequence: int


def parse_sequence_row(key: bytes) -> SequenceRow:
    """The inverse of `sequence_row`."""
    return SequenceRow(key[:-SEQUENCE_BYTES].decode(), _U64.unpack(key[-SEQUENCE_BYTES:])[0])


def sequence_of(key: bytes) -> int:
    """The sequence in such a key."""
    return int(_U64.unpack_from(key, len(key) - SEQUENCE_BYTES)[0])


def shard_row(session_id: str, shard: str, *, row: bytes = b"") -> bytes:
    """Key in SHARD; with an empty `row` the prefix of all rows of that shard."""
    return session_id.encode() + _shard_part(shard) + row


@functools.lru_cache(SHARDS)
def _shard_part(shard: str) -> bytes:
    return text_part(shard)


@functools.lru_cache(PREFIXES_KEPT)
def listed_prefix(tenant: str, status: str = "", *, twins: bool = False) -> bytes:
    """Prefix of the list rows of one status; without one, of the rows of every session."""
    return (_TWINS if twins else _LISTED) + text_part(tenant) + text_part(status)


def listed_row(tenant: str, session_id: str, *, status: str = "", twins: bool = False) -> bytes:
    """Key of a session in the list index, by time: with its status moved (delete, put) when that
    changes, without one put once.
    """
    return listed_prefix(tenant, status, twins=twins) + session_id.encode()


def listed_session(key: bytes) -> str:
    """The session of a list row."""
    return key[-SESSION_BYTES:].decode()


def listed_tenants(*, twins: bool = False) -> bytes:
    """Prefix of every tenant's list rows."""
    return _TWINS if twins else _LISTED


def listed_tenant(key: bytes) -> tuple[str, bytes]:
    """The tenant of a list row, and a key beyond every list row of that tenant."""
    kind, (tenant, _, _) = key[:1], key[1:].partition(NUL)
    return tenant.decode(), kind + tenant + b"\x01"


def session_key_row(tenant: str, session_key: str) -> bytes:
    """Key of a client's `session_key`, unique per tenant."""
    return _SESSION_KEY + text_part(tenant) + session_key.encode()


def review_queue(tenant: str, slice_name: str) -> bytes:
    """Prefix of the sessions of one slice that wait for a review."""
    return b"RQ" + text_part(tenant) + text_part(slice_name)


def review_queue_row(tenant: str, slice_name: str, *, order: float, session_id: str) -> bytes:
    """Key of a waiting session; `order`: from 0 on, the smallest is reviewed first."""
    assert order >= 0, "only the bytes of numbers from 0 on sort as the numbers do"
    return review_queue(tenant, slice_name) + _F64.pack(order) + session_id.encode()


def review_row(session_id: str) -> bytes:
    """Key of how a session's review stands."""
    return b"RS" + session_id.encode()


def reviewer_row(session_id: str, reviewer: str = "") -> bytes:
    """Key of what a reviewer has opened of a session; without one the prefix of all of them."""
    digest = hashlib.sha256(reviewer.encode()).digest()[:_REVIEWER_BYTES] if reviewer else b""
    return b"RR" + session_id.encode() + digest


def review_place_row(tenant: str, reviewer: str) -> bytes:
    """Key of the session that a reviewer is at."""
    digest = hashlib.sha256(reviewer.encode()).digest()[:_REVIEWER_BYTES]
    return b"RP" + text_part(tenant) + digest


def review_tally_row(tenant: str) -> bytes:
    """Key of a tenant's counts of reviews."""
    return b"RT" + text_part(tenant)


def workflow_row(name: str, version: str = "") -> bytes:
    """Key in WORKFLOW; without a version the prefix of all versions of `name`."""
    return text_part(name) + version.encode()


def erasing_row(session_id: str = "") -> bytes:
    """META row that says an erasure has begun; with no session the prefix of all of them."""
    return _ERASING + session_id.encode()


def archive_erasing_row(session_id: str = "") -> bytes:
    """META row: the archive may still hold this deleted session; with none the prefix of all."""
    return _ARCHIVE_ERASING + session_id.encode()


ARCHIVE_FILES_ROW = b"archive_files"
"""META row: how many files the archive had after its last pass, as digits."""
