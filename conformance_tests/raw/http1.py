"""HTTP/1.1 by hand: the request is exactly the bytes given, the answer is what came back.

One connection per request, so that no pool hides a retry or a broken keep-alive. It knows framing
(length, chunks, end of connection) and nothing else; a broken answer is a value, not an exception.
"""

import asyncio
import ssl
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

READ_MAX = 64 * 1024 * 1024
"""More than any limit of the protocol; a peer that sends for ever is cut here."""
LINE_MAX = 64 * 1024


class Unreachable(Exception):
    """Nothing that speaks HTTP answered there in time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Where a base URL leads."""

    host: str
    port: int
    base: str
    tls: bool

    @classmethod
    def of(cls, url: str) -> "Target":
        """Raises ValueError for what is no http(s) URL."""
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise ValueError(f"{url!r} is no http(s)://host:port URL")
        tls = parts.scheme == "https"
        port = parts.port or (443 if tls else 80)
        return cls(host=parts.hostname, port=port, base=parts.path.rstrip("/"), tls=tls)

    @property
    def authority(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpAnswer:
    status: int
    headers: dict[str, str]
    body: bytes
    elapsed_ms: float


def request_bytes(
    method: str, path: str, *, headers: Mapping[str, str], body: bytes | None
) -> bytes:
    """A plain request; what `headers` states wins over what would be added."""
    stated = {name.lower(): value for name, value in headers.items()}
    if body is not None:
        stated.setdefault("content-length", str(len(body)))
    stated.setdefault("connection", "close")
    lines = [f"{method} {path} HTTP/1.1", *(f"{n}: {v}" for n, v in stated.items()), "", ""]
    return "\r\n".join(lines).encode("latin-1", "replace") + (body or b"")


async def send(target: Target, data: bytes, *, timeout_s: float) -> HttpAnswer:
    """Write `data`, read one answer. Raises Unreachable."""
    begun = time.monotonic()
    try:
        async with asyncio.timeout(timeout_s):
            reader, writer = await open_connection(target)
            try:
                writer.write(data)
                status, headers = await read_head(reader)
                body = await read_body(reader, status, headers=headers)
            finally:
                writer.close()
    except TimeoutError:
        raise Unreachable(f"no answer within {timeout_s:g} s") from None
    except (OSError, ValueError, EOFError) as problem:
        raise Unreachable(f"{type(problem).__name__}: {problem}") from None
    elapsed_ms = (time.monotonic() - begun) * 1000
    return HttpAnswer(status=status, headers=headers, body=body, elapsed_ms=elapsed_ms)


async def open_connection(
    target: Target,
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    context = ssl.create_default_context() if target.tls else None
    return await asyncio.open_connection(target.host, target.port, ssl=context, limit=LINE_MAX)


async def read_head(reader: asyncio.StreamReader) -> tuple[int, dict[str, str]]:
    """Status and headers (lower case; repeated ones joined). Skips 1xx. Raises ValueError."""
    while True:
        line = await _line(reader)
        parts = line.split(" ", 2)
        if len(parts) < 2 or not parts[0].startswith("HTTP/1.") or not parts[1].isdecimal():
            raise ValueError(f"no HTTP/1.1 status line: {line[:80]!r}")
        headers: dict[str, str] = {}
        while line := await _line(reader):
            name, _, value = line.partition(":")
            name, value = name.strip().lower(), value.strip()
            headers[name] = f"{headers[name]}, {value}" if name in headers else value
        if not 100 <= int(parts[1]) < 200:
            return int(parts[1]), headers


async def read_body(
    reader: asyncio.StreamReader, status: int, *, headers: Mapping[str, str]
) -> bytes:
    """The whole body, however it is framed. Raises EOFError when it is cut."""
    if status in {204, 304}:
        return b""
    if "chunked" in headers.get("transfer-encoding", "").lower():
        return b"".join([chunk async for chunk in chunks(reader)])
    length = headers.get("content-length")
    if length is None:
        return await reader.read(READ_MAX)
    return await reader.readexactly(int(length))


async def chunks(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    """The chunks of a chunked body."""
    while size := int((await _line(reader)).partition(";")[0], 16):
        yield await reader.readexactly(size)
        await _line(reader)
    while await _line(reader):
        pass


async def _line(reader: asyncio.StreamReader) -> str:
    line = await reader.readline()
    if not line.endswith(b"\n"):
        raise EOFError("the connection was closed in the middle of a line")
    return line.decode("latin-1").rstrip("\r\n")
