"""Broken HTTP/2 frames and gRPC framing on the gRPC port of both servers.

The frames are gRPC's own business; what is ours is that the process lives, answers others, and
keeps its memory, whatever comes in.
"""

import gzip
import struct
from collections.abc import Iterator
from typing import Final

import grpc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from acp_spec.bindings.routes import COMPONENT, GATEWAY
from gateway.tests.hostile import http2
from gateway.tests.hostile.conftest import Target
from gateway.tests.hostile.http2 import (
    ACK,
    CONTINUATION,
    DATA,
    END_HEADERS,
    GOAWAY,
    HEADERS,
    PADDED,
    PING,
    PRIORITIZED,
    PRIORITY,
    PUSH_PROMISE,
    RST_STREAM,
    SETTINGS,
    WINDOW_UPDATE,
    begin,
    frame,
    with_length,
)
from gateway.tests.hostile.wire import say, slam

# What a quiet server is given to say more; it need not close.
QUIET_S: Final = 0.15
PATH: Final = {
    "gateway": GATEWAY["list_sessions"].rpc.encode(),
    "echo": COMPONENT["describe"].rpc.encode(),
}
HEAD: Final = http2.call_headers(b"{path}")
OPEN: Final = frame(HEADERS, HEAD, flags=END_HEADERS, stream=1)


def streams(count: int, ending: bytes = b"") -> bytes:
    """Many calls begun; `ending` is put behind each, `{n}` its four bytes of stream id."""
    made = []
    for number in range(count):
        stream = 2 * number + 1
        made.append(frame(HEADERS, HEAD, flags=END_HEADERS, stream=stream))
        if ending:
            made.append(frame(RST_STREAM, ending, stream=stream))
    return b"".join(made)


ATTACKS: Final[dict[str, bytes]] = {
    "zeros": b"\0" * 100_000,
    "HTTP/1.1": b"POST {path} HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 500,
    "half a preface": http2.PREFACE[:10],
    "a wrong preface": http2.PREFACE[:-1] + b"X" + b"\0" * 100,
    "no settings": http2.PREFACE + OPEN,
    "settings of five bytes": http2.PREFACE + frame(SETTINGS, b"12345"),
    "settings on a stream": http2.PREFACE + frame(SETTINGS, b"", stream=1),
    "an answer with settings": begin() + frame(SETTINGS, b"\0\1\0\0\0\1", flags=ACK),
    "a frame size of 2^32-1": begin((5, 2**32 - 1)),
    "a window of 2^32-1": begin((4, 2**32 - 1)),
    "no table": begin((1, 0)) + OPEN,
    "an endless table": begin((1, 2**32 - 1)) + OPEN,
    "unknown settings": begin(*[(n, n) for n in range(100, 2000)]),
    "ten thousand settings": begin() + frame(SETTINGS, struct.pack(">HI", 3, 5)) * 10_000,
    "ten thousand pings": begin() + frame(PING, b"12345678") * 10_000,
    "a ping of seven bytes": begin() + frame(PING, b"1234567"),
    "a ping on a stream": begin() + frame(PING, b"12345678", stream=3),
    "a frame without end": begin() + with_length(2**24 - 1, DATA, b"x" * 1000, stream=1),
    "a large frame": begin() + OPEN + frame(DATA, b"x" * 100_000, stream=1),
    "data on stream 0": begin() + frame(DATA, b"x" * 10),
    "data on an idle stream": begin() + frame(DATA, b"x" * 10, stream=7),
    "headers on stream 0": begin() + frame(HEADERS, HEAD, flags=END_HEADERS),
    "headers on an even stream": begin() + frame(HEADERS, HEAD, flags=END_HEADERS, stream=2),
    "streams backwards": begin()
    + frame(HEADERS, HEAD, flags=END_HEADERS, stream=9)
    + frame(HEADERS, HEAD, flags=END_HEADERS, stream=3),
    "the last stream": begin() + frame(HEADERS, HEAD, flags=END_HEADERS, stream=2**31 - 1) + OPEN,
    "a stream twice": begin() + OPEN + OPEN,
    "padding beyond the frame": begin()
    + frame(DATA, b"\xff" + b"x" * 10, flags=PADDED, stream=1)
    + frame(HEADERS, b"\xff" + HEAD[:20], flags=END_HEADERS | PADDED, stream=3),
    "a stream that depends on itself": begin()
    + frame(HEADERS, struct.pack(">IB", 1, 1) + HEAD, flags=END_HEADERS | PRIORITIZED, stream=1)
    + frame(PRIORITY, struct.pack(">IB", 5, 1), stream=5),
    "a promise": begin() + frame(PUSH_PROMISE, struct.pack(">I", 2) + HEAD, flags=4, stream=1),
    "a window of 0": begin() + frame(WINDOW_UPDATE, struct.pack(">I", 0)),
    "a window too far": begin() + frame(WINDOW_UPDATE, struct.pack(">I", 2**31 - 1)) * 3,
    "a window on a stream too far": begin()
    + OPEN
    + frame(WINDOW_UPDATE, struct.pack(">I", 2**31 - 1), stream=1) * 3,
    "unknown frames": begin() + b"".join(frame(n, b"x" * 100, stream=n) for n in range(10, 256)),
    "a goodbye first": begin() + frame(GOAWAY, struct.pack(">II", 0, 0)) + OPEN,
    "a goodbye with an essay": begin() + frame(GOAWAY, struct.pack(">II", 0, 2) + b"x" * 16_000),
    "a reset of nothing": begin() + frame(RST_STREAM, struct.pack(">I", 8), stream=99),
    "rapid reset": begin() + streams(3000, struct.pack(">I", 8)),
    "many streams": begin() + streams(3000),
    "a continuation first": begin() + frame(CONTINUATION, HEAD, flags=END_HEADERS, stream=1),
    "continuations without end": begin()
    + frame(HEADERS, HEAD, stream=1)
    + frame(CONTINUATION, http2.literal(b"x", b"y" * 1000), stream=1) * 2000,
    "empty continuations": begin()
    + frame(HEADERS, HEAD, stream=1)
    + frame(CONTINUATION, b"", stream=1) * 20_000,
    "another frame between continuations": begin()
    + frame(HEADERS, HEAD[:20], stream=1)
    + frame(PING, b"12345678")
    + frame(CONTINUATION, HEAD[20:], flags=END_HEADERS, stream=1),
    "no header block": begin() + frame(HEADERS, b"", flags=END_HEADERS, stream=1),
    "a broken block": begin() + frame(HEADERS, b"\xff" * 100, flags=END_HEADERS, stream=1),
    "an index of nothing": begin() + frame(HEADERS, b"\xff\xff\x7f", flags=END_HEADERS, stream=1),
    "a text without end": begin()
    + frame(HEADERS, b"\0\x7f\xff\xff\xff\xff\x0f", flags=4, stream=1),
    "broken Huffman": begin()
    + frame(HEADERS, b"\0\x81\xff\x84\xff\xff\xff\xff", flags=4, stream=1),
    "a table bomb": begin()
    + frame(
        HEADERS,
        HEAD + http2.indexed(b"x", b"y" * 4000) + b"\xbe" * 12_000,
        flags=END_HEADERS,
        stream=1,
    ),
    "a table of another size": begin()
    + frame(HEADERS, b"\x3f\xff\xff\x7f" + HEAD, flags=4, stream=1),
}
CALLS: Final[dict[str, bytes]] = {
    "a cut message": http2.call(b"{path}", b"\0\0\0\0\x0ahello"),
    "a cut prefix": http2.call(b"{path}", b"\0\0"),
    "no message": http2.call(b"{path}", b""),
    "two messages": http2.call(b"{path}", http2.message(b"") * 2),
    "the longest message": http2.call(b"{path}", http2.message(b"x", length=2**32 - 1)),
    "packed without a coding": http2.call(b"{path}", http2.message(b"x", packed=1)),
    "an unknown flag": http2.call(b"{path}", http2.message(b"x", packed=254)),
    "an unknown coding": http2.call(b"{path}", http2.message(b"x", packed=1), grpc_encoding=b"zip"),
    "broken gzip": http2.call(b"{path}", http2.message(b"xyz", packed=1), grpc_encoding=b"gzip"),
    "cut gzip": http2.call(
        b"{path}", http2.message(gzip.compress(b"x" * 99)[:-9], packed=1), grpc_encoding=b"gzip"
    ),
    "a GET": http2.call(b"{path}", http2.message(b""), __method=b"GET"),
    "a page's type": http2.call(b"{path}", http2.message(b""), content_type=b"text/html"),
    "no type": http2.call(b"{path}", http2.message(b""), content_type=b""),
    "no te": http2.call(b"{path}", http2.message(b""), te=b""),
    "no path": http2.call(b"", http2.message(b"")),
    "no method": http2.call(b"{path}", http2.message(b""), __method=b""),
    "no authority": http2.call(b"{path}", http2.message(b""), __authority=b""),
    "a path without a slash": http2.call(b"x", http2.message(b"")),
    "a path of bytes": http2.call(b"/\xff\xfe\0", http2.message(b"")),
    "an endless path": http2.call(b"/" + b"a" * 15_000, http2.message(b"")),
    "an unknown pseudo header": http2.call(b"{path}", http2.message(b""), __evil=b"x"),
    "a header in capitals": http2.call(b"{path}", http2.message(b""), EVIL=b"x"),
    "a header with line ends": http2.call(b"{path}", http2.message(b""), evil=b"a\r\nb: c\0"),
    "a connection header": http2.call(b"{path}", http2.message(b""), connection=b"close"),
    "binary that is none": http2.call(b"{path}", http2.message(b""), evil_bin=b"!!!!"),
    "a negative timeout": http2.call(b"{path}", http2.message(b""), grpc_timeout=b"-1S"),
    "an endless timeout": http2.call(b"{path}", http2.message(b""), grpc_timeout=b"9" * 40 + b"H"),
    "a timeout of words": http2.call(b"{path}", http2.message(b""), grpc_timeout=b"soon"),
    "no time": http2.call(b"{path}", http2.message(b""), grpc_timeout=b"0n"),
    "a token of bytes": http2.call(b"{path}", http2.message(b""), authorization=b"Bearer \xff\xfe"),
    "a long token": http2.call(b"{path}", http2.message(b""), authorization=b"B" * 6000),
    "a version of bytes": http2.call(b"{path}", http2.message(b""), acp_version=b"\xff"),
}


def at(target: Target, data: bytes) -> bytes:
    """The same bytes with the real path; lengths of frames and literal follow."""
    path = PATH[target.name]
    grown = len(path) - len(b"{path}")
    if not data.startswith(http2.PREFACE[:3]):
        return data.replace(b"{path}", path)
    out, rest = http2.PREFACE, data[len(http2.PREFACE) :]
    while rest:
        length = int.from_bytes(rest[:3], "big")
        body = rest[9 : 9 + length]
        if b"\x06{path}" in body:
            body = body.replace(b"\x06{path}", bytes((len(path),)) + path)
            out += (length + grown).to_bytes(3, "big") + rest[3:9] + body
        else:
            out += rest[: 9 + length]
        rest = rest[9 + length :]
    return out


@pytest.fixture
def well(target: Target) -> Iterator[Target]:
    """The target, which still answers on both ports when the test has ended."""
    yield target
    with target.asker() as asker:
        assert asker.is_alive(target.probe)


@pytest.mark.parametrize("attack", sorted(ATTACKS))
def test_no_frames_stop_the_server(well: Target, attack: str) -> None:
    say(well.grpc, at(well, ATTACKS[attack]), ends=False, quiet_s=QUIET_S)


@pytest.mark.parametrize("attack", ["rapid reset", "many streams", "continuations without end"])
def test_a_flood_that_ends_with_a_reset_leaves_no_trace(well: Target, attack: str) -> None:
    for _ in range(3):
        slam(well.grpc, at(well, ATTACKS[attack]))
    well.assert_well()


@pytest.mark.parametrize("attack", sorted(CALLS))
def test_no_broken_call_stops_the_server(well: Target, attack: str) -> None:
    whole = begin() + frame(SETTINGS, b"", flags=ACK) + CALLS[attack]
    say(well.grpc, at(well, whole), ends=False, quiet_s=QUIET_S)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    frames=st.lists(
        st.builds(
            lambda kind, flags, stream, payload: frame(kind, payload, flags=flags, stream=stream),
            st.integers(0, 12),
            st.sampled_from([0, 1, 4, 5, 8, 32, 255]),
            st.sampled_from([0, 1, 2, 3, 5, 2**31 - 1, 2**32 - 1]),
            st.binary(max_size=30) | st.sampled_from([HEAD, http2.message(b"x")]),
        ),
        max_size=12,
    )
)
def test_no_frames_whatever_stop_the_server(well: Target, frames: list[bytes]) -> None:
    slam(well.grpc, begin(), *frames)


def test_a_packed_message_is_not_unpacked_beyond_the_limit(well: Target) -> None:
    bomb = gzip.compress(b"\0" * (100 * 1024 * 1024))
    assert len(bomb) < 200_000
    with grpc.insecure_channel(well.grpc, compression=grpc.Compression.Gzip) as channel:
        method = channel.unary_unary(PATH[well.name].decode())
        with pytest.raises(grpc.RpcError) as refused:
            method(b"\0" * (100 * 1024 * 1024), timeout=30)
    assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    well.assert_well()
