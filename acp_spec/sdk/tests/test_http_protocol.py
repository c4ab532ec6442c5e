"""What a component's HTTP connection does with bytes that uvicorn alone would mishandle."""

import asyncio

import pytest

from acp_spec import Component, Effect
from acp_spec.codec import json
from acp_spec.model.calls import ErrorBody
from acp_spec.sdk.http_protocol import HEADER_BYTES_MAX, HEADERS_MAX, OTHER_HOST
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


def asked(target: bytes, host: bytes) -> bytes:
    return say(b"GET %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n" % (target, host))


@pytest.mark.parametrize(
    ("target", "host"),
    [
        (b"http://evil/acp/v1/component", b"h"),
        (b"http://h@evil/acp/v1/component", b"h"),
        (b"http://h:80@evil/acp/v1/component", b"h:80"),
        (b"http://evil?x=http://h/acp/v1/component", b"h"),
        (b"http://evil#h/acp/v1/component", b"h"),
        (b"http://h:81/acp/v1/component", b"h"),
        (b"HTTP://EVIL/acp/v1/component", b"h"),
        (b"http://h/acp/v1/component", b"evil"),
    ],
)
def test_a_target_with_another_name_than_host_is_refused(target: bytes, host: bytes) -> None:
    """The target's name is the one that counts (RFC 9112 3.2.2); a check of Host must see it."""
    assert asked(target, host).startswith(b"HTTP/1.1 400 "), asked(target, host)


def test_the_refusal_of_two_names_says_what_to_do() -> None:
    answer = asked(b"http://evil/acp/v1/component", b"h")
    assert OTHER_HOST.encode() in answer


def test_a_target_with_the_same_name_as_host_is_served() -> None:
    for target in (b"http://h/acp/v1/component", b"http://H/acp/v1/component"):
        assert asked(target, b"h").startswith(b"HTTP/1.1 200 "), target


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
