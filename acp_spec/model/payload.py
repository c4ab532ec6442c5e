"""Payloads: JSON text that passes byte for byte (SPEC section 1, "never re-encoded").

`Payload` is `msgspec.Raw`: it is written verbatim inside a JSON message and copied as `bytes` into
protobuf. It pins the buffer it was cut from: whoever keeps one beyond the request calls `owned`.
"""

import msgspec

Payload = msgspec.Raw

ABSENT: Payload = msgspec.Raw(b"")
"""No payload at all. Not JSON null: null is `Payload(b"null")`."""

NULL: Payload = msgspec.Raw(b"null")


def is_absent(payload: Payload) -> bool:
    """True when nothing was sent (zero bytes), which differs from JSON null."""
    return payload is ABSENT or not bytes(payload)


def payload(data: bytes) -> Payload:
    """JSON text as a payload; empty bytes are ABSENT (the same object, so that it is omitted)."""
    return msgspec.Raw(data) if data else ABSENT


def owned(value: Payload) -> Payload:
    """A copy that no longer pins the message it was cut from."""
    return value if value is ABSENT else payload(bytes(value))
