"""Identifiers (SPEC section 2 and 9.1). All are functions of their arguments: no clock, no chance.

`session_id` is 26 Crockford characters: 48-bit milliseconds, 16-bit node, 64-bit random. It sorts
by time and names the gateway that owns the session.
"""

import hashlib
import re
from typing import NewType

SessionId = NewType("SessionId", str)
LineageId = NewType("LineageId", str)
CallId = NewType("CallId", str)

CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
# The digits that Python's own base 32 has in Crockford's places.
_BASE_32 = str.maketrans(CROCKFORD, "0123456789ABCDEFGHIJKLMNOPQRSTUV")
_PAIRS = [high + low for high in CROCKFORD for low in CROCKFORD]
SESSION_ID_LENGTH = 26
_SESSION_ID = re.compile(f"[0-7][{CROCKFORD}]{{{SESSION_ID_LENGTH - 1}}}")


def session_id(time_ms: int, node: int, *, random_64: int) -> SessionId:
    """The id of a session opened at `time_ms` on gateway `node` (both must fit their bits)."""
    assert 0 <= time_ms < 1 << 48
    assert 0 <= node < 1 << 16
    assert 0 <= random_64 < 1 << 64
    number = time_ms << 80 | node << 64 | random_64
    parts = [""] * 13
    for index in range(12, -1, -1):
        parts[index] = _PAIRS[number & 1023]
        number >>= 10
    return SessionId("".join(parts))


def is_session_id(text: str) -> bool:
    """True when `text` has the form of a session id (26 Crockford characters, 128 bits)."""
    return _SESSION_ID.fullmatch(text) is not None


def node_of(session: str) -> int:
    """The 16-bit number of the gateway that owns this session."""
    return _number(session) >> 64 & 0xFFFF


def time_ms_of(session: str) -> int:
    """Milliseconds since the epoch at which this session was opened."""
    return _number(session) >> 80


def _number(session: str) -> int:
    return int(session.translate(_BASE_32), 32)


def call_id(session: str, step: str, *, sub_goal: str, generation: int, redo: int) -> CallId:
    """One logical call (SPEC 9.1): stable over retries, crash and replay. 32 hex characters."""
    text = f"{session}\0{step}\0{sub_goal}\0{generation}\0{redo}"
    return CallId(hashlib.sha256(text.encode()).hexdigest()[:32])


def body_digest(action: str, arguments: bytes) -> str:
    """Hex SHA-256 of action, NUL, argument bytes: what idempotency compares (SPEC section 2)."""
    return hashlib.sha256(action.encode() + b"\0" + arguments).hexdigest()


def lineage_id(session: str, digest_input: bytes) -> LineageId:
    """`<session_id>.<12 hex>` over workflow, intended versions, input hash and policy versions."""
    return LineageId(f"{session}.{hashlib.sha256(digest_input).hexdigest()[:12]}")


def unit_interval(*parts: str) -> float:
    """A number in [0, 1) hashed from `parts`: chance that can be computed again (jitter, draws)."""
    digest = hashlib.sha256("\0".join(parts).encode()).digest()
    return int.from_bytes(digest[:7], "big") / (1 << 56)
