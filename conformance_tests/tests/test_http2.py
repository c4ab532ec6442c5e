"""Bytes by hand: what a case states is what goes out, and what came back is told apart."""

import asyncio

from conformance_tests.raw.http2 import (
    PREFACE,
    Wire,
    bytes_of,
    exchange,
    frame,
    literals,
    message,
)

HEADERS = {":method": "POST"}


def test_a_frame_may_state_another_length_than_it_has() -> None:
    assert frame(0, b"ab", flags=1, stream=3) == b"\0\0\x02\0\x01\0\0\0\x03ab"
    assert frame(0, b"ab", flags=0, stream=0, length=9)[:3] == b"\0\0\x09"


def test_long_header_values_are_counted_as_hpack_counts() -> None:
    assert literals({"a": "b"}) == b"\0\x01a\x01b"
    assert literals({"a": "b" * 300})[3:6] == b"\x7f\xad\x01"


def test_items_become_bytes_in_their_order_and_storms_have_a_stream_each() -> None:
    storm = {"times": 2, "of": [{"frame": {"kind": "RST_STREAM", "payload": "code"}}]}
    sent = bytes_of([{"begin": 1}, storm], headers=HEADERS)  # type: ignore[list-item]
    assert sent.startswith(PREFACE)
    assert sent.endswith(
        frame(3, b"code", flags=0, stream=1) + frame(3, b"code", flags=0, stream=3)
    )


def test_only_a_whole_message_counts_as_an_answer() -> None:
    assert Wire(ended=True, data=message(b"x")).outcome == "answered"
    assert Wire(ended=True, data=message(b"x", stated=9)).outcome == "refused"
    assert Wire(ended=True, data=b"no gRPC here").outcome == "refused"
    assert Wire(reset=8).outcome == "reset"
    assert Wire(goaway=1, closed=True).outcome == "goaway"
    assert Wire(closed=True).outcome == "closed"
    assert Wire().outcome == "silent"


def test_a_server_that_hangs_up_is_seen_to_close() -> None:
    async def story() -> Wire:
        server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
        async with server:
            port = server.sockets[0].getsockname()[1]
            return await exchange(f"127.0.0.1:{port}", b"anything")

    assert asyncio.run(story()).outcome == "closed"
