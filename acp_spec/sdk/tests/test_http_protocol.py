"""What a component's HTTP connection does with bytes that uvicorn alone would mishandle."""

import asyncio

import pytest

from acp_spec import Component, Effect
from acp_spec.codec import json
from acp_spec.model.calls import ErrorBody
from acp_spec.sdk.http_protocol import HEADER_BYTES_MAX, HEADERS_MAX
from acp_spec.sdk.tests.served import execute, serving

H2C = (
    b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n"
    b"HTTP2-Settings: AAEAAEAAAAIAAAABAAMAAABkAAQBAAAAAAUAAEAA\r\n"
)


def component() -> Component:
    made = Component("near", "1.0.0")
    made.action("echo", effect=Effect.READ)(lambda arguments, call: arguments)
    return made


def posted(body: bytes, *headers: bytes, close: bool = True) -> bytes:
    lines = b"".join(headers) + (b"Connection: close\r\n" if close else b"")
    return (
        b"POST /acp/v1/execute HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\n"
        + lines
        + b"Content-Length: %d\r\n\r\n" % len(body)
        + body
    )


def say(*pieces: bytes) -> bytes:
    """What the component answers to these pieces, until it closes."""

    async def story() -> bytes:
        async with serving(component()) as server:
            assert server.http is not None
            reader, writer = await asyncio.open_connection("127.0.0.1", server.http.port)
            for piece in pieces:
                writer.write(piece)
                await writer.drain()
            async with asyncio.timeout(10):
                answer = await reader.read()
            writer.close()
            return answer

    return asyncio.run(story())


@pytest.mark.parametrize("cut", [0, 60, 400])
def test_an_upgrade_that_java_asks_for_is_ignored_and_the_body_read(cut: int) -> None:
    body = json.encode(execute("echo", {"n": 1}))
    first = posted(body, H2C, close=False)
    whole = first + posted(body)
    answer = say(whole[:cut], whole[cut:]) if cut else say(whole)
    assert answer.count(b"HTTP/1.1 200 OK") == 2, answer
    assert answer.count(b'"output":{"n":1}') == 2


@pytest.mark.parametrize(
    "attack",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        posted(b"{}", *[b"X-%d: y\r\n" % n for n in range(HEADERS_MAX + 1)]),
        posted(b"{}", b"X: " + b"y" * HEADER_BYTES_MAX + b"\r\n"),
    ],
    ids=["tls", "http/2", "many headers", "a long header"],
)
def test_what_is_no_http_or_has_no_end_is_400_in_the_one_error_shape(attack: bytes) -> None:
    head, _, body = say(attack).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ")
    told = json.decode_response(ErrorBody, body)
    assert told.error.reason == "INVALID_REQUEST"
