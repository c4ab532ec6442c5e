"""A closed loop of HTTP requests over raw sockets: cheap enough to measure a gateway by.

An HTTP library takes ten times as long to ask as the gateway takes to answer; then the library
would be measured. Each connection sends its next request when the last one is answered.
"""

import asyncio
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

from gateway.cli.measure.disk_probe import percentile

HEAD_BYTES_MAX: Final = 64 * 1024
ANSWER_S: Final = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where requests go, and what each of them carries."""

    host: str
    port: int
    tls: bool
    prefix: str
    headers: str

    def request(self, method: str, path: str, *, body: bytes = b"") -> bytes:
        head = f"{method} {self.prefix}{path} HTTP/1.1\r\n{self.headers}"
        if body or method == "POST":
            head += f"content-type: application/json\r\ncontent-length: {len(body)}\r\n"
        return f"{head}\r\n".encode() + body


def place_of(url: str, *, token: str = "") -> Place:
    parts = urlsplit(url)
    tls = parts.scheme in ("https", "grpcs")
    host = parts.hostname or "127.0.0.1"
    headers = f"host: {parts.netloc.rpartition('@')[2]}\r\n"
    if token:
        headers += f"authorization: Bearer {token}\r\n"
    return Place(
        host=host,
        port=parts.port or (443 if tls else 80),
        tls=tls,
        prefix=parts.path.rstrip("/"),
        headers=headers,
    )


@dataclass(slots=True)
class Answers:
    """What came back: how often which status, how long each took, the bodies where wanted."""

    seconds: float = 0.0
    statuses: dict[int, int] = field(default_factory=dict)
    latencies_ms: list[float] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    broken: int = 0

    @property
    def count(self) -> int:
        return len(self.latencies_ms)

    @property
    def per_s(self) -> float:
        return self.count / self.seconds if self.seconds else 0.0

    def share_ms(self, share: float) -> float:
        return percentile(self.latencies_ms, share)

    def only(self, *statuses: int) -> bool:
        """Whether every request was answered, and with these statuses only."""
        return not self.broken and bool(self.statuses) and set(self.statuses) <= set(statuses)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Where a loop ends: after so many requests or so long, whatever comes first."""

    connections: int
    requests: int
    seconds: float
    keep_bodies: bool = False


async def closed_loop(place: Place, make: Callable[[int], bytes], *, bounds: Bounds) -> Answers:
    """Send `make(0)`, `make(1)`, ... A connection that breaks is counted and not repaired."""
    answers = Answers()
    numbers = iter(range(bounds.requests))
    begin = time.perf_counter()
    until = begin + bounds.seconds

    async def one() -> None:
        reader, writer = await connect(place)
        try:
            while (sent := time.perf_counter()) < until:
                number = next(numbers, None)
                if number is None:
                    return
                writer.write(make(number))
                status, body = await asyncio.wait_for(read_answer(reader), ANSWER_S)
                answers.latencies_ms.append((time.perf_counter() - sent) * 1000)
                answers.statuses[status] = answers.statuses.get(status, 0) + 1
                if bounds.keep_bodies:
                    answers.bodies.append(body)
        except (OSError, asyncio.IncompleteReadError, TimeoutError, ValueError):
            answers.broken += 1
        finally:
            writer.close()

    ended = await asyncio.gather(
        *(one() for _ in range(bounds.connections)), return_exceptions=True
    )
    answers.broken += sum(isinstance(one_end, OSError | TimeoutError) for one_end in ended)
    answers.seconds = time.perf_counter() - begin
    return answers


async def connect(place: Place) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    secured = ssl.create_default_context() if place.tls else None
    opening = asyncio.open_connection(
        place.host, place.port, ssl=secured, limit=HEAD_BYTES_MAX * 64
    )
    return await asyncio.wait_for(opening, ANSWER_S)


async def read_answer(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    """Status and body of the next answer. Raises ValueError for what is no such answer."""
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    status = int(head[9:12])
    start = head.find(b"\r\ncontent-length:")
    if start >= 0:
        length = int(head[start + 17 : head.index(b"\r\n", start + 2)])
        return status, await reader.readexactly(length)
    if b"\r\ntransfer-encoding: chunked" in head:
        return status, await _chunks(reader)
    return status, b""


async def _chunks(reader: asyncio.StreamReader) -> bytes:
    body = b""
    while size := int((await reader.readuntil(b"\r\n")).partition(b";")[0], 16):
        body += (await reader.readexactly(size + 2))[:-2]
    await reader.readuntil(b"\r\n")
    return body
