"""Bytes that are no HTTP, or HTTP that two readers read differently, against both HTTP servers.

Each is refused with a 4xx in the one error shape, or the connection is closed; never a 5xx, never a
second request smuggled in, and the server goes on serving.
"""

import json
import socket
from typing import Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.tests.hostile.conftest import Target
from gateway.tests.hostile.wire import say, slam, statuses

# A client that ended its side may hear nothing more, so these wait: for all that is said, or for
# the first of it where there are many.
QUIET_S: Final = 0.3
GLANCE_S: Final = 0.03
HOST: Final = b"Host: localhost\r\n"
JSON: Final = b"Content-Type: application/json\r\n"
CLOSE: Final = b"Connection: close\r\n"
# The route that takes a body, and the one that answers 200, of each server.
POSTS: Final = {"gateway": b"/v1/sessions", "echo": b"/acp/v1/execute"}
READS: Final = {"gateway": b"/healthz", "echo": b"/acp/v1/health"}
SMUGGLED: Final = b"GET {read} HTTP/1.1\r\nHost: localhost\r\n\r\n"


def post(*headers: bytes, body: bytes = b"") -> bytes:
    return b"POST {post} HTTP/1.1\r\n" + HOST + JSON + b"".join(headers) + b"\r\n" + body


def length(body: bytes) -> bytes:
    return b"Content-Length: %d\r\n" % len(body)


def chunked(*chunks: bytes) -> bytes:
    return post(b"Transfer-Encoding: chunked\r\n", body=b"".join(chunks))


# Not one of these may be read as a whole good request.
BROKEN: Final[dict[str, bytes]] = {
    "nothing": b"",
    "a zero": b"\0",
    "zeros": b"\0" * 70_000,
    "line ends": b"\r\n" * 1000,
    "no request line": b"\r\n\r\n\r\n",
    "a word": b"hello",
    "a line": b"hello\r\n\r\n",
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 500,
    "SSH": b"SSH-2.0-OpenSSH_9.9\r\n",
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0",
    "HTTP/0.9": b"GET /\r\n",
    "HTTP/3.0": b"GET / HTTP/3.0\r\n" + HOST + b"\r\n",
    "an unknown method": b"BREW {read} HTTP/1.1\r\n" + HOST + b"\r\n",
    "a lower case method": b"get {read} HTTP/1.1\r\n" + HOST + b"\r\n",
    "a method with a zero": b"G\0ET {read} HTTP/1.1\r\n" + HOST + b"\r\n",
    "a method without end": b"X" * 100_000,
    "tabs": b"GET\t{read}\tHTTP/1.1\r\n" + HOST + b"\r\n",
    "a path with a zero": b"GET {read}\0 HTTP/1.1\r\n" + HOST + b"\r\n",
    "a path with a space": b"GET {read} x HTTP/1.1\r\n" + HOST + b"\r\n",
    "a path of bytes": b"GET /\xff\xfe\x80 HTTP/1.1\r\n" + HOST + b"\r\n",
    "a path without a slash": b"GET x HTTP/1.1\r\n" + HOST + b"\r\n",
    "an endless path": b"GET /" + b"a" * 200_000 + b" HTTP/1.1\r\n" + HOST + b"\r\n",
    "a header without a colon": b"GET {read} HTTP/1.1\r\n" + HOST + b"Broken\r\n\r\n",
    "a header without a name": b"GET {read} HTTP/1.1\r\n" + HOST + b": x\r\n\r\n",
    "a space before the colon": b"GET {read} HTTP/1.1\r\n" + HOST + b"X : y\r\n\r\n",
    "a folded header": b"GET {read} HTTP/1.1\r\n" + HOST + b"X: a\r\n b\r\n\r\n",
    "a header with a zero": b"GET {read} HTTP/1.1\r\n" + HOST + b"X: a\0b\r\n\r\n",
    "a header with a bare CR": b"GET {read} HTTP/1.1\r\n" + HOST + b"X: a\rb\r\n\r\n",
    "a header name of bytes": b"GET {read} HTTP/1.1\r\n" + HOST + b"X\xff: y\r\n\r\n",
    "endless headers": b"GET {read} HTTP/1.1\r\n" + HOST + b"X: y\r\n" * 20_000,
    "an endless header": b"GET {read} HTTP/1.1\r\n" + HOST + b"X: " + b"y" * 400_000,
    "a cut head": b"GET {read} HTTP/1.1\r\nHost: loc",
    "a cut body": post(b"Content-Length: 100\r\n", body=b'{"workflow'),
    "no length": post(body=b"{}"),
    "a length of words": post(b"Content-Length: ten\r\n", body=b"{}"),
    "a negative length": post(b"Content-Length: -5\r\n", body=b"{}"),
    "a length with a sign": post(b"Content-Length: +2\r\n", body=b"{}"),
    "a hexadecimal length": post(b"Content-Length: 0x2\r\n", body=b"{}"),
    "a length beyond 64 bits": post(b"Content-Length: 99999999999999999999\r\n", body=b"{}"),
    "the largest length": post(b"Content-Length: 18446744073709551615\r\n", body=b"{}"),
    "a long length": post(b"Content-Length: " + b"0" * 10_000 + b"2\r\n", body=b"{}"),
    "two lengths": post(b"Content-Length: 2\r\nContent-Length: 2\r\n", body=b"{}"),
    "two other lengths": post(b"Content-Length: 2\r\nContent-Length: 3\r\n", body=b"{} "),
    "a list of lengths": post(b"Content-Length: 2, 2\r\n", body=b"{}"),
    "a chunk of words": chunked(b"xyz\r\n{}\r\n0\r\n\r\n"),
    "a negative chunk": chunked(b"-2\r\n{}\r\n0\r\n\r\n"),
    "an endless chunk": chunked(b"ffffffffffffffff\r\n{}"),
    "a chunk beyond 64 bits": chunked(b"f" * 40 + b"\r\n{}"),
    "a chunk without its end": chunked(b"2\r\n{}0\r\n\r\n"),
    "no last chunk": chunked(b"2\r\n{}\r\n"),
    "an endless extension": chunked(b"2;" + b"x" * 300_000 + b"\r\n{}\r\n0\r\n\r\n"),
    "endless trailers": chunked(b"2\r\n{}\r\n0\r\n" + b"X: y\r\n" * 20_000),
    "a chunk size in 0x": chunked(b"0x2\r\n{}\r\n0\r\n\r\n"),
    "an unknown coding": post(b"Transfer-Encoding: gzip\r\n", body=b"{}"),
    "chunked, but not last": post(b"Transfer-Encoding: chunked, gzip\r\n", body=b"0\r\n\r\n"),
    "chunked twice": post(b"Transfer-Encoding: chunked, chunked\r\n", body=b"0\r\n\r\n"),
    "a packed body": post(b"Content-Encoding: gzip\r\n", length(b"\x1f\x8b"), body=b"\x1f\x8b"),
    "CONNECT": b"CONNECT localhost:22 HTTP/1.1\r\n" + HOST + b"\r\n",
    "TRACE": b"TRACE {read} HTTP/1.1\r\n" + HOST + b"\r\n",
    "an asterisk": b"OPTIONS * HTTP/1.1\r\n" + HOST + b"\r\n",
}
# What one reader takes for one request and another for two. The second one asks for the 200 page.
AMBIGUOUS: Final[dict[str, bytes]] = {
    "length and chunked": post(
        b"Content-Length: 6\r\nTransfer-Encoding: chunked\r\n", body=b"0\r\n\r\n" + SMUGGLED
    ),
    "chunked and length": post(
        b"Transfer-Encoding: chunked\r\nContent-Length: 6\r\n", body=b"0\r\n\r\n" + SMUGGLED
    ),
    "chunked in disguise": post(
        b"Content-Length: 6\r\nTransfer-Encoding: xchunked\r\n", body=b"0\r\n\r\n" + SMUGGLED
    ),
    "chunked with a tab": post(
        b"Content-Length: 6\r\nTransfer-Encoding:\tchunked\r\n", body=b"0\r\n\r\n" + SMUGGLED
    ),
    "chunked, space before colon": post(
        b"Content-Length: 6\r\nTransfer-Encoding : chunked\r\n", body=b"0\r\n\r\n" + SMUGGLED
    ),
    "chunked, folded": post(
        b"Content-Length: 6\r\nTransfer-Encoding:\r\n chunked\r\n", body=b"0\r\n\r\n" + SMUGGLED
    ),
    "two codings": post(
        b"Transfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\nContent-Length: 6\r\n",
        body=b"0\r\n\r\n" + SMUGGLED,
    ),
    "two lengths": post(b"Content-Length: 0\r\nContent-Length: 50\r\n", body=SMUGGLED),
    "bare line feeds": b"POST {post} HTTP/1.1\nHost: localhost\nContent-Length: 0\nX: y\n\n"
    + SMUGGLED,
    "a bare CR in a header": post(b"X: y\rContent-Length: 50\r\n", body=SMUGGLED),
    "a chunk's end left out": chunked(b"1\r\n{0\r\n\r\n", SMUGGLED),
    "an extension with a line feed": chunked(b"2;\nxx\r\n{}\r\n0\r\n\r\n", SMUGGLED),
    "upgrade and a length": post(
        b"Connection: Upgrade\r\nUpgrade: h2c\r\nContent-Length: %d\r\n" % len(SMUGGLED),
        body=SMUGGLED,
    ),
}  # fmt: skip


def at(target: Target, text: bytes) -> bytes:
    return text.replace(b"{post}", POSTS[target.name]).replace(b"{read}", READS[target.name])


def assert_refused(answer: bytes) -> None:
    """Nothing, or client errors that are told in the one error shape."""
    for status in statuses(answer):
        assert 400 <= status < 500, answer[:300]
    if answer:
        head, _, body = answer.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 "), answer[:100]
        if b"content-length: 0" not in head and b"HTTP/1.1" not in body and body:
            assert json.loads(body)["error"]["reason"], answer[:300]


@pytest.mark.parametrize("attack", sorted(BROKEN))
def test_what_is_broken_is_refused_or_closed(target: Target, attack: str) -> None:
    assert_refused(say(target.http, at(target, BROKEN[attack])))
    served = say(target.http, at(target, b"GET {read} HTTP/1.1\r\n" + HOST + CLOSE + b"\r\n"))
    assert statuses(served) == [200]


@pytest.mark.parametrize("attack", sorted(BROKEN))
def test_a_client_that_resets_in_the_middle_leaves_no_trace(target: Target, attack: str) -> None:
    slam(target.http, at(target, BROKEN[attack]))
    served = say(target.http, at(target, b"GET {read} HTTP/1.1\r\n" + HOST + CLOSE + b"\r\n"))
    assert statuses(served) == [200]


@pytest.mark.parametrize("attack", sorted(AMBIGUOUS))
def test_no_second_request_is_smuggled_in(target: Target, attack: str) -> None:
    answer = say(target.http, at(target, AMBIGUOUS[attack]), ends=False, quiet_s=QUIET_S)
    told = statuses(answer)
    assert told.count(200) == 0 or (told[0] >= 400 > told[-1] and "bare" in attack), answer
    assert all(status < 500 for status in told), answer
    assert len(told) <= 2, answer


GOOD: Final = (
    b"GET {read} HTTP/1.1\r\n" + HOST + b"\r\n",
    post(length(b'{"workflow":"w"}'), body=b'{"workflow":"w"}'),
    chunked(b'8\r\n{"input"\r\n3\r\n:1}\r\n0\r\n\r\n'),
    post(b"Expect: 100-continue\r\n", length(b"{}"), body=b"{}"),
    b"DELETE {post}/x HTTP/1.1\r\n" + HOST + b"\r\n",
)
pieces = st.sampled_from(
    [b"\r\n", b"\n", b"\r", b"\0", b" ", b":", b"\xff", b"%00", b"chunked", b"Content-Length: 5",
     b"Transfer-Encoding: chunked\r\n", b"GET / HTTP/1.1\r\n\r\n", b"0\r\n\r\n", b"HTTP/1.0",
     b"Upgrade: h2c\r\nConnection: Upgrade\r\n", b"Expect: 100-continue\r\n", b"A" * 9000]
)  # fmt: skip


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """A good request (or two) with a few bytes put in, taken out, doubled or changed."""
    data = b"".join(draw(st.lists(st.sampled_from(GOOD), min_size=1, max_size=2)))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(data)))
        end = draw(st.integers(start, min(len(data), start + 20)))
        match draw(st.sampled_from(["in", "out", "twice", "other"])):
            case "in":
                data = data[:start] + draw(pieces | st.binary(max_size=4)) + data[start:]
            case "out":
                data = data[:start] + data[end:]
            case "twice":
                data = data[:end] + data[start:]
            case _:
                data = data[:start] + draw(st.binary(min_size=1, max_size=1)) + data[start + 1 :]
    return data


@settings(max_examples=120, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=damaged(), cut=st.integers(0, 200))
def test_no_damage_to_a_request_gets_more_than_a_refusal(
    target: Target, data: bytes, cut: int
) -> None:
    sent = at(target, data)
    answer = say(target.http, sent[:cut], sent[cut:], ends=False, quiet_s=GLANCE_S)
    assert all(status < 500 for status in statuses(answer)), (sent, answer)
    assert not answer or answer.startswith(b"HTTP/1.1 "), (sent, answer)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.binary(max_size=300))
def test_no_bytes_at_all_stop_the_server(target: Target, data: bytes) -> None:
    answer = say(target.http, data)
    assert all(400 <= status < 500 for status in statuses(answer)), (data, answer)


def test_many_clients_that_begin_and_wait_stop_nobody(target: Target) -> None:
    host, _, port = target.http.rpartition(":")
    waiting = []
    try:
        for number in range(400):
            one = socket.create_connection((host, int(port)), timeout=10)
            waiting.append(one)
            one.sendall(at(target, b"POST {post} HTTP/1.1\r\nHost: loc"[: number % 40]))
        served = say(target.http, at(target, b"GET {read} HTTP/1.1\r\n" + HOST + CLOSE + b"\r\n"))
        assert statuses(served) == [200]
    finally:
        for one in waiting:
            one.close()
    target.assert_well()
