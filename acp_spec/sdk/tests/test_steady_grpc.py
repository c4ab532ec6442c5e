"""A gRPC port that goes on serving whatever method path comes.

The story: one call whose path was no UTF-8 ended grpc.aio's accepting task, and with it the port,
for everybody and without a token.
"""

import asyncio
import struct
from collections.abc import Awaitable, Callable

import grpc
import pytest

from acp_spec.sdk import steady_grpc
from acp_spec.sdk.steady_grpc import missing_parts, steady_server

Handler = Callable[[bytes, grpc.aio.ServicerContext], Awaitable[bytes]]
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0"


def call(path: bytes, *more: tuple[bytes, bytes]) -> bytes:
    """A whole gRPC call by hand; header fields are literals."""
    fields = (
        (b":method", b"POST"),
        (b":scheme", b"http"),
        (b":path", path),
        (b":authority", b"localhost"),
        (b"te", b"trailers"),
        (b"content-type", b"application/grpc"),
        *more,
    )
    head = b"".join(
        b"\0" + bytes((len(name),)) + name + bytes((len(value),)) + value for name, value in fields
    )
    return frame(1, head, flags=4) + frame(0, b"\0\0\0\0\0", flags=1)


def frame(kind: int, payload: bytes, *, flags: int) -> bytes:
    return struct.pack(">I", len(payload))[1:] + bytes((kind, flags)) + b"\0\0\0\1" + payload


async def echo(data: bytes, context: grpc.aio.ServicerContext) -> bytes:
    return data


async def nap(data: bytes, context: grpc.aio.ServicerContext) -> bytes:
    await asyncio.sleep(0.2)
    return data


def napping(asleep: asyncio.Event) -> Handler:
    """A nap that says when it has begun."""

    async def deep(data: bytes, context: grpc.aio.ServicerContext) -> bytes:
        asleep.set()
        return await nap(data, context)

    return deep


HANDLERS = {
    "/x.Y/Echo": grpc.unary_unary_rpc_method_handler(echo),
    "/x.Y/Nap": grpc.unary_unary_rpc_method_handler(nap),
}


def test_the_installed_grpcio_has_what_the_protection_needs() -> None:
    """When this fails, grpcio changed inside: mend `grpc_inside.py`, or hold grpcio back."""
    gone = missing_parts()
    assert not gone, f"grpcio {grpc.__version__} has no {', '.join(gone)}: the port can be ended"


@pytest.mark.parametrize("gone", ["grpc.nowhere:Server", "grpc._cython.cygrpc:AioServer._gone"])
def test_a_grpcio_that_changed_inside_serves_all_the_same_and_the_log_says_so(
    gone: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(steady_grpc, "NEEDED", (*steady_grpc.NEEDED, gone))

    async def story() -> None:
        server = steady_server(HANDLERS)
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            assert await channel.unary_unary("/x.Y/Echo")(b"here") == b"here"
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await channel.unary_unary("/x.Y/None")(b"", timeout=5)
            assert refused.value.code() is grpc.StatusCode.UNIMPLEMENTED
        await server.stop(0)

    asyncio.run(asyncio.wait_for(story(), 20))
    assert gone in caplog.text


@pytest.mark.parametrize(
    "path", [b"/\xff\xfe\0", b"\x80", b"/x.Y/Echo\xff", b"", b"/" + b"\xc3" * 90]
)
def test_no_method_path_stops_it_nor_a_call_that_runs(path: bytes) -> None:
    async def story() -> None:
        server = steady_server(HANDLERS)
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            running = channel.unary_unary("/x.Y/Nap")(b"still")
            assert await channel.unary_unary("/x.Y/Echo")(b"here") == b"here"
            for _ in range(3):
                _, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(PREFACE + call(path))
                await writer.drain()
                await asyncio.sleep(0.02)
                writer.close()
            assert await running == b"still"
            assert await channel.unary_unary("/x.Y/Echo")(b"here") == b"here"
        await server.stop(0)

    asyncio.run(asyncio.wait_for(story(), 20))


def test_a_method_that_is_not_there_is_unimplemented_at_once() -> None:
    async def story() -> None:
        server = steady_server(HANDLERS)
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            for path in ("/x.Y/None", "/None/Echo", "/x.Y/echo"):
                with pytest.raises(grpc.aio.AioRpcError) as refused:
                    await channel.unary_unary(path)(b"", timeout=5)
                assert refused.value.code() is grpc.StatusCode.UNIMPLEMENTED
        await server.stop(0)

    asyncio.run(asyncio.wait_for(story(), 20))


def test_many_calls_at_once_are_all_answered_and_it_ends_within_its_grace() -> None:
    async def story() -> None:
        asleep = asyncio.Event()
        deep = grpc.unary_unary_rpc_method_handler(napping(asleep))
        server = steady_server({**HANDLERS, "/x.Y/Nap": deep})
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            method = channel.unary_unary("/x.Y/Echo")
            sent = [b"%d" % number for number in range(300)]
            assert list(await asyncio.gather(*(method(data) for data in sent))) == sent
            last = asyncio.ensure_future(channel.unary_unary("/x.Y/Nap")(b"last"))
            await asleep.wait()
            await server.stop(15)
            assert await last == b"last"

    asyncio.run(asyncio.wait_for(story(), 20))


def test_metadata_that_are_no_text_are_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        server = steady_server(HANDLERS)
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(PREFACE + call(b"/x.Y/Echo", (b"authorization", b"Bearer secret\xff")))
        await writer.drain()
        assert await reader.read(1)
        await asyncio.sleep(0.1)
        writer.close()
        await server.stop(0)

    asyncio.run(asyncio.wait_for(story(), 20))
    assert "secret" not in caplog.text
