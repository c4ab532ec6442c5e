"""What an ASGI application's messages become on the wire, write by write."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from uvicorn.protocols.http.flow_control import FlowControl

from acp_spec.sdk.http_cycle import Cycle

Send = Callable[[dict[str, object]], Awaitable[None]]
LENGTH_2 = [(b"content-length", b"2")]


class Wire(asyncio.Transport):
    """A transport that keeps what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.writes: list[bytes] = []
        self.is_closed = False

    def write(self, data: Any) -> None:
        self.writes.append(bytes(data))

    def close(self) -> None:
        self.is_closed = True


def said(
    say: Callable[[Send], Awaitable[None]], *, method: str = "GET", keep_alive: bool = True
) -> Wire:
    """The wire after an application said something."""
    wire = Wire()

    async def app(scope: object, receive: object, send: Send) -> None:
        await say(send)

    async def story() -> None:
        cycle = Cycle(
            scope={"type": "http", "method": method},  # type: ignore[typeddict-item]
            transport=wire,
            flow=FlowControl(wire),
            logger=logging.getLogger("test"),
            access_logger=logging.getLogger("test"),
            access_log=False,
            default_headers=[(b"date", b"today")],
            message_event=asyncio.Event(),
            expect_100_continue=False,
            keep_alive=keep_alive,
            on_response=lambda: None,
        )
        await cycle.run_asgi(app)  # type: ignore[arg-type]

    asyncio.run(story())
    return wire


def answer(
    *bodies: bytes, headers: list[tuple[bytes, bytes]], status: int = 200
) -> Callable[[Send], Awaitable[None]]:
    async def say(send: Send) -> None:
        await send({"type": "http.response.start", "status": status, "headers": headers})
        for number, body in enumerate(bodies, 1):
            more = number < len(bodies)
            await send({"type": "http.response.body", "body": body, "more_body": more})

    return say


def test_an_answer_of_stated_length_leaves_in_one_write() -> None:
    wire = said(answer(b"{}", headers=LENGTH_2))
    assert wire.writes == [b"HTTP/1.1 200 OK\r\ndate: today\r\ncontent-length: 2\r\n\r\n{}"]
    assert not wire.is_closed


def test_a_body_in_pieces_of_stated_length_comes_whole() -> None:
    wire = said(answer(b"{", b"}", headers=LENGTH_2))
    assert b"".join(wire.writes).endswith(b"content-length: 2\r\n\r\n{}")


def test_what_streams_leaves_as_it_comes() -> None:
    head, first, second, end = said(answer(b"one", b"two", b"", headers=[])).writes
    assert head == b"HTTP/1.1 200 OK\r\ndate: today\r\ntransfer-encoding: chunked\r\n\r\n"
    assert (first, second, end) == (b"3\r\none\r\n", b"3\r\ntwo\r\n", b"0\r\n\r\n")


def test_a_head_request_gets_the_length_and_no_body() -> None:
    wire = said(answer(b"{}", headers=LENGTH_2), method="HEAD")
    assert wire.writes == [b"HTTP/1.1 200 OK\r\ndate: today\r\ncontent-length: 2\r\n\r\n"]


def test_an_answer_without_content_has_neither_length_nor_chunks() -> None:
    wire = said(answer(b"", headers=[], status=204))
    assert wire.writes == [b"HTTP/1.1 204 No Content\r\ndate: today\r\n\r\n"]


def test_the_last_answer_of_a_connection_says_so_and_closes_it() -> None:
    wire = said(answer(b"{}", headers=LENGTH_2), keep_alive=False)
    assert b"\r\nconnection: close\r\n" in wire.writes[0]
    assert wire.is_closed
    wire = said(answer(b"{}", headers=[*LENGTH_2, (b"connection", b"close")]))
    assert wire.writes[0].count(b"connection: close") == 1
    assert wire.is_closed


@pytest.mark.parametrize("value", [b"a\r\nset-cookie: b", b"a\nb", b"a\0", b"a\x7f"])
def test_a_header_with_a_control_character_never_leaves(value: bytes) -> None:
    wire = said(answer(b"{}", headers=[*LENGTH_2, (b"location", value)]))
    assert wire.writes == []
    assert wire.is_closed


@pytest.mark.parametrize("body", [b"{", b"{ }"])
def test_a_body_of_another_length_than_stated_ends_the_connection(body: bytes) -> None:
    wire = said(answer(body, headers=LENGTH_2))
    assert wire.writes == []
    assert wire.is_closed


def test_an_application_that_fails_before_its_head_is_a_500() -> None:
    async def fail(send: Send) -> None:
        raise ValueError

    wire = said(fail)
    assert wire.writes[0].startswith(b"HTTP/1.1 500 ")
    assert wire.is_closed


def test_an_application_that_fails_before_its_body_says_nothing() -> None:
    wire = said(answer(headers=LENGTH_2))
    assert wire.writes == []
    assert wire.is_closed
