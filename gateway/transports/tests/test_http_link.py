"""A plain answer is read in one look; it must say what the parser would have said of the bytes."""

import asyncio
from dataclasses import dataclass, field

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gateway.transports.http_link import HEAD_BYTES_MAX, Exchange, Fault, Link, Response
from gateway.transports.http_link import plain_response as plain

BODY_BYTES_MAX = 1_000
JSON_LINE = b"Content-Type: application/json\r\n"


class Wire(asyncio.Transport):
    """A transport that takes everything."""

    def write(self, data: object) -> None: ...

    def is_closing(self) -> bool:
        return False

    def get_write_buffer_size(self) -> int:
        return 0

    def abort(self) -> None: ...


@dataclass
class Owner:
    """Whether the link may carry another exchange; None: it has not said so."""

    may_go_on: bool | None = None

    def released(self, link: Link, exchange: Exchange) -> None:
        self.may_go_on = True

    def dropped(self, link: Link, exchange: Exchange | None) -> None:
        self.may_go_on = False


@dataclass(eq=False)
class Told:
    """What an exchange was told."""

    got: list[Response | Fault] = field(default_factory=list)

    def payload(self) -> bytes:
        return b"GET / HTTP/1.1\r\n\r\n"

    def answered(self, response: Response) -> None:
        self.got.append(response)

    def failed(self, fault: Fault, message: str) -> None:
        self.got.append(fault)


def heard(*pieces: bytes) -> tuple[list[Response | Fault], bool | None]:
    """What came of a peer that says these pieces, and whether its connection may go on."""

    async def story() -> tuple[list[Response | Fault], bool | None]:
        owner, told = Owner(), Told()
        link = Link(owner, BODY_BYTES_MAX)
        link.connection_made(Wire())
        link.begin(told)
        for piece in pieces:
            link.data_received(piece)
        return told.got, owner.may_go_on

    return asyncio.run(story())


def parsed(data: bytes) -> tuple[list[Response | Fault], bool | None]:
    """What the parser says of it: a first byte alone is nothing that can be plain."""
    return heard(data[:1], data[1:])


LINES = st.sampled_from(
    [
        JSON_LINE,
        b"content-type: text/plain; charset=utf-8\r\n",
        b"content-type:application/json\r\n",
        b"content-encoding: gzip\r\n",
        b"Content-Length: 2\r\n",
        b"content-length: 02\r\n",
        b"content-length: 3\r\n",
        b"content-length: 9999999999\r\n",
        b"CONTENT-LENGTH: +2\r\n",
        b"content-length: 2, 2\r\n",
        b"content-length : 2\r\n",
        b"Transfer-Encoding: chunked\r\n",
        b"transfer-encoding: identity\r\n",
        b"Connection: keep-alive\r\n",
        b"connection: close\r\n",
        b"cOnNeCtIoN: close\r\n",
        b"proxy-connection: close\r\n",
        b"Upgrade: h2c\r\n",
        b"Connection: upgrade\r\n",
        b"trailer: x\r\n",
        b"retry-after: 7\r\n",
        b"Date: Sun, 29 Nov 2026 22:34:40 GMT\r\n",
        b"server: uvicorn\r\n",
        b"x-empty: \r\n",
        b"x-none:\r\n",
        b"x-space: a \r\n",
        b"x-tab: a\tb\r\n",
        b"x-text: \xc3\xa9\r\n",
        b"x-control: \x01\r\n",
        b"x-bare: a\nb\r\n",
        b"x-bare: a\rb\r\n",
        b" folded\r\n",
        b"no colon\r\n",
        b": no name\r\n",
        b"a b: c\r\n",
        b"\r\n",
    ]
)
STARTS = st.sampled_from(
    [
        b"HTTP/1.1 200 OK\r\n",
        b"HTTP/1.1 200 \r\n",
        b"HTTP/1.1 200\r\n",
        b"HTTP/1.1 201 Created\r\n",
        b"HTTP/1.1 204 No Content\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n",
        b"HTTP/1.0 200 OK\r\n",
        b"\r\nHTTP/1.1 200 OK\r\n",
        b"http/1.1 200 OK\r\n",
    ]
)
BODIES = st.sampled_from([b"{}", b"", b"{", b"{} ", b"2\r\n{}\r\n0\r\n\r\n", b"{}HTTP/1.1 200 OK"])


@given(start=STARTS, lines=st.lists(LINES, max_size=6), body=BODIES)
@example(b"HTTP/1.1 200 OK\r\n", [JSON_LINE, b"Content-Length: 2\r\n"], b"{}")
@example(
    b"HTTP/1.1 200 OK\r\n",
    [b"Date: x\r\n", JSON_LINE, b"Connection: keep-alive\r\n", b"Content-Length: 2\r\n"],
    b"{}",
)
def test_what_is_read_in_one_look_is_what_the_parser_reads(
    start: bytes, lines: list[bytes], body: bytes
) -> None:
    data = start + b"".join(lines) + b"\r\n" + body
    assert heard(data) == parsed(data)
    found = plain(data, BODY_BYTES_MAX)
    if found is not None:
        assert parsed(data) == ([found], True)


@pytest.mark.parametrize(
    "head",
    [
        (
            b"date: Sun, 29 Nov 2026 22:34:40 GMT\r\nserver: uvicorn\r\n"
            b"content-type: application/json\r\ncontent-length: 2\r\n"
        ),
        (
            b"Content-Type: application/json\r\nDate: Sun, 29 Nov 2026 22:34:40 GMT\r\n"
            b"Content-Length: 2\r\n"
        ),
        (
            b"Content-Type: application/json\r\nContent-Length: 2\r\nDate: x\r\n"
            b"Connection: keep-alive\r\nKeep-Alive: timeout=5\r\n"
        ),
    ],
    ids=["Python", "Go", "Node"],
)
def test_what_common_servers_answer_is_read_in_one_look(head: bytes) -> None:
    data = b"HTTP/1.1 200 OK\r\n" + head + b"\r\n{}"
    assert plain(data, BODY_BYTES_MAX) == Response(200, b"application/json", b"", b"", b"{}")
    assert plain(data[:-1], BODY_BYTES_MAX) is None, "the rest of the body comes later"
    assert plain(data + b"{", BODY_BYTES_MAX) is None, "more than it stated"
    assert plain(data, 1) is None, "over the limit"


def test_a_head_or_a_body_over_its_limit_is_refused_however_it_is_read() -> None:
    length = b"content-length: %d\r\n\r\n"
    long = b"HTTP/1.1 200 OK\r\nx: " + b"x" * HEAD_BYTES_MAX + b"\r\n" + JSON_LINE + length % 2
    assert heard(long + b"{}")[0] == [Fault.TOO_LARGE]
    large = b"HTTP/1.1 200 OK\r\n" + JSON_LINE + length % (BODY_BYTES_MAX + 1)
    assert heard(large + b" " * (BODY_BYTES_MAX + 1))[0] == [Fault.TOO_LARGE]


def test_after_a_plain_answer_the_parser_reads_the_next_one() -> None:
    plainly = b"HTTP/1.1 200 OK\r\n" + JSON_LINE + b"Content-Length: 2\r\n\r\n{}"
    chunked = (
        b"HTTP/1.1 200 OK\r\n"
        + JSON_LINE
        + b"Transfer-Encoding: chunked\r\n\r\n2\r\n[]\r\n0\r\n\r\n"
    )

    async def story() -> list[Response | Fault]:
        told = Told()
        link = Link(Owner(), BODY_BYTES_MAX)
        link.connection_made(Wire())
        for data in (plainly, chunked, plainly, plainly, chunked):
            link.begin(told)
            link.data_received(data)
        return told.got

    bodies = [got.body for got in asyncio.run(story()) if isinstance(got, Response)]
    assert bodies == [b"{}", b"[]", b"{}", b"{}", b"[]"]


@pytest.mark.parametrize(
    "line",
    [
        b"Transfer-Encoding: chunked\r\n",
        b"Connection: close\r\n",
        b"CONNECTION: close\r\n",
        b"Proxy-Connection: close\r\n",
        b"Upgrade: h2c\r\n",
        b"Content-Encoding: gzip\r\n",
        b"content-length: 2\r\n",
        b"content-type: text/plain\r\n",
        b"Retry-After: 7\r\n",
        b"x-control: \x01\r\n",
        b" folded\r\n",
    ],
)
@pytest.mark.parametrize("is_last", [False, True])
def test_a_line_that_has_a_say_is_left_to_the_parser(line: bytes, is_last: bool) -> None:
    lines = [JSON_LINE, b"Content-Length: 2\r\n"]
    lines.insert(2 if is_last else 0, line)
    data = b"HTTP/1.1 200 OK\r\n" + b"".join(lines) + b"\r\n{}"
    assert plain(data, BODY_BYTES_MAX) is None
    assert heard(data) == parsed(data)
