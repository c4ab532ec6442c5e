"""A closed-loop HTTP load generator: N keep-alive connections, one request each at a time.

Raw asyncio over pre-built request bytes, so that the generator costs little of the core it shares.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(slots=True)
class Measured:
    """What one run gave: answers by status, and latencies in milliseconds."""

    seconds: float = 0.0
    statuses: dict[int, int] = field(default_factory=dict)
    latencies_ms: list[float] = field(default_factory=list)
    last_body: bytes = b""

    @property
    def per_second(self) -> float:
        return len(self.latencies_ms) / self.seconds if self.seconds else 0.0

    def percentile(self, share: float) -> float:
        ordered = sorted(self.latencies_ms)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0

    def expect(self, status: int, text: bytes) -> "Measured":
        """Stop the bench if any answer was another: a figure of failures is no figure."""
        if set(self.statuses) != {status} or text not in self.last_body:
            raise SystemExit(f"wrong answers: {self.statuses}, such as {self.last_body[:500]!r}")
        return self


def post(path: str, body: bytes, *, headers: str = "") -> bytes:
    """The bytes of a POST with a JSON body."""
    head = (
        f"POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
        f"content-length: {len(body)}\r\n{headers}\r\n"
    )
    return head.encode() + body


def get(path: str) -> bytes:
    """The bytes of a GET."""
    return f"GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n".encode()


def always(request: bytes) -> Callable[[int], bytes]:
    """The same request again and again."""
    return lambda _: request


async def closed_loop(
    port: int,
    make: Callable[[int], bytes],
    *,
    connections: int,
    seconds: float = 0.0,
    requests: int = 0,
) -> Measured:
    """Send `make(number)` on every connection, again and again, for a time or that many times."""
    measured = Measured()
    numbers = iter(range(requests or 1 << 62))
    begin = time.perf_counter()
    until = begin + seconds if seconds else float("inf")

    async def one() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        while (sent := time.perf_counter()) < until:
            number = next(numbers, None)
            if number is None:
                break
            writer.write(make(number))
            status, body = await answer(reader)
            measured.latencies_ms.append((time.perf_counter() - sent) * 1000)
            measured.statuses[status] = measured.statuses.get(status, 0) + 1
            measured.last_body = body
        writer.close()

    await asyncio.gather(*(one() for _ in range(connections)))
    measured.seconds = time.perf_counter() - begin
    return measured


async def answer(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    """Status and body of the next answer on a connection."""
    head = await reader.readuntil(b"\r\n\r\n")
    status = int(head[9:12])
    lower = head.lower()
    start = lower.find(b"content-length:")
    if start < 0:
        return status, b""
    length = int(lower[start + 15 : lower.index(b"\r\n", start)])
    return status, await reader.readexactly(length)
