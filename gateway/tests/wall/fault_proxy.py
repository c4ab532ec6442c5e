"""A TCP proxy that does one thing wrong, in front of a component; `fault` may change at any time.

It knows no HTTP: it delays, slows, cuts, resets, swallows and repeats bytes. Connections that are
open keep the fault they began with, except that a cut counts from the change on.
"""

import asyncio
import contextlib
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from urllib.parse import urlsplit

CHUNK = 16_384
CONNECT_S = 2.0
HELD_S = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What goes wrong; nothing by default."""

    delay_up_s: float = 0.0
    delay_down_s: float = 0.0
    bytes_per_s: int = 0
    reset_on_accept: bool = False
    black_hole: bool = False
    """Accepted, and nothing is ever forwarded."""
    deaf_up: bool = False
    """The request does not arrive; the connection stays open."""
    swallow_down: bool = False
    """The answer does not come back; the connection stays open."""
    cut_down_after: int | None = None
    """Reset after so many bytes of the answer."""
    cut_up_after: int | None = None
    """Reset after so many bytes of the request."""
    lingers_s: float = 0.0
    """The answer comes whole; then the connection stays open and is dead."""
    every_second: bool = False
    """The fault strikes every second connection only."""
    twice: bool = False
    """The request arrives twice: no network does this; the wall must notice."""


WELL = Fault()


@dataclass
class FaultProxy:
    """One listening proxy."""

    upstream: str
    fault: Fault = WELL
    url: str = ""
    connections: int = 0
    _tasks: set["asyncio.Task[None]"] = field(default_factory=set)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1
        fault = self.fault
        if fault.every_second and self.connections % 2:
            fault = WELL
        try:
            await self._serve(reader, writer, fault)
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.CancelledError):
            slam(writer)
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, fault: Fault
    ) -> None:
        if fault.reset_on_accept:
            slam(writer)
            return
        if fault.black_hole:
            await self._hold(reader)
            return
        place = urlsplit(self.upstream)
        up_reader, up_writer = await asyncio.wait_for(
            asyncio.open_connection(place.hostname, place.port), CONNECT_S
        )
        up = asyncio.ensure_future(self._up(reader, up_writer, writer, fault))
        down = asyncio.ensure_future(self._down(up_reader, writer, fault))
        try:
            await asyncio.wait([up, down], return_when=asyncio.FIRST_COMPLETED)
        finally:
            for pump in (up, down):
                pump.cancel()
            await asyncio.gather(up, down, return_exceptions=True)
            up_writer.close()

    async def _up(
        self,
        reader: asyncio.StreamReader,
        up_writer: asyncio.StreamWriter,
        writer: asyncio.StreamWriter,
        fault: Fault,
    ) -> None:
        passed = 0
        while data := await reader.read(CHUNK):
            await asyncio.sleep(fault.delay_up_s)
            if fault.deaf_up and is_call(data):
                await self._hold(reader)
                return
            if fault.cut_up_after is not None and is_call(data):
                up_writer.write(data[: fault.cut_up_after])
                await up_writer.drain()
                slam(writer)
                return
            up_writer.write(data)
            await up_writer.drain()
            passed += len(data)
            if fault.twice and is_call(data):
                await self._repeat(data)

    async def _down(
        self, up_reader: asyncio.StreamReader, writer: asyncio.StreamWriter, fault: Fault
    ) -> None:
        passed = 0
        while data := await up_reader.read(CHUNK):
            await asyncio.sleep(fault.delay_down_s)
            if fault.swallow_down:
                continue
            if fault.cut_down_after is not None and passed + len(data) > fault.cut_down_after:
                writer.write(data[: max(0, fault.cut_down_after - passed)])
                with contextlib.suppress(OSError):
                    await writer.drain()
                await asyncio.sleep(0.02)
                slam(writer)
                return
            passed += len(data)
            await self._write(writer, data, fault.bytes_per_s)
            if fault.lingers_s:
                await asyncio.sleep(fault.lingers_s)
                return

    async def _write(self, writer: asyncio.StreamWriter, data: bytes, bytes_per_s: int) -> None:
        if not bytes_per_s:
            writer.write(data)
            await writer.drain()
            return
        step = max(1, bytes_per_s // 20)
        for start in range(0, len(data), step):
            writer.write(data[start : start + step])
            await writer.drain()
            await asyncio.sleep(step / bytes_per_s)

    async def _repeat(self, data: bytes) -> None:
        """The same bytes again, over a connection of their own; the answer is thrown away."""
        place = urlsplit(self.upstream)
        reader, writer = await asyncio.open_connection(place.hostname, place.port)
        writer.write(data)
        await writer.drain()
        await reader.read(CHUNK)
        writer.close()

    async def _hold(self, reader: asyncio.StreamReader) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(HELD_S):
                while await reader.read(CHUNK):
                    pass

    def cut_all(self) -> None:
        """Every open connection breaks now."""
        for task in tuple(self._tasks):
            task.cancel()


def is_call(data: bytes) -> bool:
    """The beginning of a call; questions about health pass, so that the lease lives."""
    return data.startswith(b"POST ") and b"/execute " in data[:200]


def slam(writer: asyncio.StreamWriter) -> None:
    """Reset instead of a polite end."""
    found = writer.get_extra_info("socket")
    if found is not None:
        with contextlib.suppress(OSError):
            found.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


@asynccontextmanager
async def proxying(upstream: str) -> AsyncIterator[FaultProxy]:
    """A proxy in front of that URL, on a free port."""
    proxy = FaultProxy(upstream)
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    proxy.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield proxy
    finally:
        server.close()
        proxy.cut_all()
