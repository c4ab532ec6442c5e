"""A layer before a gRPC server that sees bytes: it may hold on, answer itself, or turn away."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass

READ_BYTES = 64 * 1024
AWAY_S = 2.0


@dataclass(slots=True, kw_only=True)
class TcpRule:
    """What a connection that holds `marker` meets."""

    marker: bytes
    holds: bool = False
    """It is neither closed nor told anything any more."""
    answer: bytes = b""
    """This, in place of what the server says."""
    turns_away: bool = False
    """Whoever comes in the next two seconds is closed at once."""


class _Layer:
    def __init__(self, port: int, rule: TcpRule) -> None:
        self._port = port
        self._rule = rule
        self._closed_until = 0.0
        self.tasks: set[asyncio.Task[None]] = set()

    def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(self._serve(reader, writer))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError), contextlib.closing(writer):
            if time.monotonic() < self._closed_until:
                return
            first = await reader.read(READ_BYTES)
            if self._rule.marker not in first:
                await self._pass(first, reader, writer=writer)
            elif self._rule.turns_away:
                self._closed_until = time.monotonic() + AWAY_S
                await self._pass(first, reader, writer=writer)
            elif self._rule.answer:
                writer.write(self._rule.answer)
                await writer.drain()
                await reader.read()
            else:
                await reader.read()

    async def _pass(
        self, first: bytes, reader: asyncio.StreamReader, *, writer: asyncio.StreamWriter
    ) -> None:
        inner_reader, inner_writer = await asyncio.open_connection("127.0.0.1", self._port)
        with contextlib.closing(inner_writer):
            inner_writer.write(first)
            ways = [
                asyncio.ensure_future(_pipe(reader, inner_writer)),
                asyncio.ensure_future(_pipe(inner_reader, writer)),
            ]
            try:
                await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for way in ways:
                    way.cancel()
                await asyncio.gather(*ways, return_exceptions=True)


async def _pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(READ_BYTES):
        writer.write(data)
        await writer.drain()


@contextlib.asynccontextmanager
async def before_port(url: str, rule: TcpRule | None) -> AsyncIterator[str]:
    """The URL of the server behind the rule; the server's own without one."""
    if rule is None:
        yield url
        return
    layer = _Layer(int(url.rpartition(":")[2]), rule)
    server = await asyncio.start_server(layer.accept, "127.0.0.1", 0)
    try:
        yield f"grpc://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        for task in layer.tasks:
            task.cancel()
        await asyncio.gather(*layer.tasks, return_exceptions=True)
