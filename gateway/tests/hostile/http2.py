"""HTTP/2 frames by hand: what a broken or wicked gRPC client writes.

Headers are literals without indexing or Huffman coding, so that every byte is seen.
"""

import struct
from typing import Final

PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS = 0, 1, 2, 3, 4
PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = 5, 6, 7, 8, 9
END_STREAM, ACK, END_HEADERS, PADDED, PRIORITIZED = 1, 1, 4, 8, 32


def frame(kind: int, payload: bytes = b"", *, flags: int = 0, stream: int = 0) -> bytes:
    """One frame with an honest length."""
    return with_length(len(payload), kind, payload, flags=flags, stream=stream)


def with_length(
    length: int, kind: int, payload: bytes, *, flags: int = 0, stream: int = 0
) -> bytes:
    """One frame that says it has this length."""
    head = struct.pack(">I", length)[1:] + bytes((kind, flags)) + struct.pack(">I", stream)
    return head + payload


def begin(*settings: tuple[int, int]) -> bytes:
    """The preface and our settings."""
    pairs = b"".join(struct.pack(">HI", number, value) for number, value in settings)
    return PREFACE + frame(SETTINGS, pairs)


def literal(name: bytes, value: bytes) -> bytes:
    """A header field without indexing (RFC 7541 section 6.2.2)."""
    return b"\0" + _text(name) + _text(value)


def indexed(name: bytes, value: bytes) -> bytes:
    """A header field that goes into the peer's table."""
    return b"\x40" + _text(name) + _text(value)


def _text(data: bytes) -> bytes:
    return _integer(len(data), 7) + data


def _integer(value: int, bits: int) -> bytes:
    limit = (1 << bits) - 1
    if value < limit:
        return bytes((value,))
    rest, more = value - limit, bytearray((limit,))
    while rest >= 128:
        more.append(rest % 128 + 128)
        rest //= 128
    more.append(rest)
    return bytes(more)


def call_headers(path: bytes, **more: bytes) -> bytes:
    """The head of a gRPC call; `more` replaces or adds (an empty value leaves one out)."""
    fields = {
        b":method": b"POST",
        b":scheme": b"http",
        b":path": path,
        b":authority": b"localhost",
        b"te": b"trailers",
        b"content-type": b"application/grpc",
    }
    named = {name.replace("__", ":").replace("_", "-").encode(): v for name, v in more.items()}
    fields |= named
    return b"".join(literal(name, value) for name, value in fields.items() if value)


def call(path: bytes, body: bytes, *, stream: int = 1, **more: bytes) -> bytes:
    """A whole gRPC call whose data are these bytes."""
    head = frame(HEADERS, call_headers(path, **more), flags=END_HEADERS, stream=stream)
    return head + frame(DATA, body, flags=END_STREAM, stream=stream)


def message(data: bytes, *, packed: int = 0, length: int | None = None) -> bytes:
    """A length-prefixed gRPC message."""
    return struct.pack(">BI", packed, len(data) if length is None else length) + data
