"""HTTP/2 by hand: the bytes are exactly what a case states, the answer is what became of them.

One connection per exchange. Header blocks are literals without an index; those that come back are
not decoded: that a gRPC message came before the stream's end is what tells success from refusal.
"""

import asyncio
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, cast

from conformance_tests.messages.tree import Text, Tree, Value
from conformance_tests.raw.http1 import Unreachable

PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY = 0, 1, 3, 4, 6, 7
KINDS: Final = {"DATA": 0, "HEADERS": 1, "RST_STREAM": 3, "SETTINGS": 4, "PING": 6, "GOAWAY": 7}
END_STREAM, ACK, END_HEADERS = 0x1, 0x1, 0x4
PATIENCE_S: Final = 10.0
"""How long a server may take to say what it thinks of the bytes, where a case does not say."""


@dataclass(slots=True)
class Wire:
    """What became of a connection, as far as it was watched."""

    data: bytes = b""
    ended: bool = False
    reset: int | None = None
    goaway: int | None = None
    closed: bool = False
    stream: int = field(default=1)

    @property
    def outcome(self) -> str:
        """`answered`: with one whole gRPC message; `silent`: none of the others in time."""
        if self.ended:
            return "answered" if _is_message(self.data) else "refused"
        if self.goaway:
            return "goaway"
        if self.reset is not None:
            return "reset"
        return "closed" if self.closed else "silent"


def _is_message(data: bytes) -> bool:
    return len(data) >= 5 and data[0] <= 1 and struct.unpack(">I", data[1:5])[0] == len(data) - 5


def frame(
    kind: int, payload: bytes, *, flags: int, stream: int, length: int | None = None
) -> bytes:
    """A frame; `length` states another than the payload's."""
    size = len(payload) if length is None else length
    return size.to_bytes(3, "big") + bytes((kind, flags)) + stream.to_bytes(4, "big") + payload


def literals(headers: dict[str, str]) -> bytes:
    """A header block in which every field is literal, new and not indexed."""
    return b"".join(b"\0" + _text(name) + _text(value) for name, value in headers.items())


def _text(text: str) -> bytes:
    data = text.encode("latin-1")
    if len(data) < 0x7F:
        return bytes((len(data),)) + data
    rest, out = len(data) - 0x7F, bytearray((0x7F,))
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    return bytes((*out, rest)) + data


def message(body: bytes, *, flag: int = 0, stated: int | None = None) -> bytes:
    """A gRPC message with its prefix; `stated` is another length."""
    return bytes((flag,)) + struct.pack(">I", len(body) if stated is None else stated) + body


def bytes_of(items: list[Value], *, headers: dict[str, str]) -> bytes:
    """What a case's list of items is on the wire; `headers` are those of a right request."""
    return b"".join(_each(items, headers, stream=1))


def _each(items: list[Value], headers: dict[str, str], *, stream: int) -> Iterator[bytes]:
    for item in cast("list[Tree]", items):
        kind = next(iter(item))
        value = item[kind]
        match kind:
            case "begin":
                yield PREFACE + frame(SETTINGS, b"", flags=0, stream=0)
            case "raw":
                yield _bytes(value)
            case "frame":
                yield _frame(cast("Tree", value), stream=stream)
            case "request":
                yield _request(cast("Tree", value), headers, stream=stream)
            case "message":
                yield _message(cast("Tree", value), stream=stream)
            case "times":
                inner = cast("list[Value]", item["of"])
                for number in range(int(str(value))):
                    yield from _each(inner, headers, stream=1 + 2 * number)
            case _:
                raise ValueError(f"{kind!r} is no item of a wire")


def _bytes(value: Value) -> bytes:
    return value.data if isinstance(value, Text) else str(value).encode("latin-1")


def _frame(stated: Tree, *, stream: int) -> bytes:
    kind = stated.get("kind", "DATA")
    length = stated.get("length")
    return frame(
        KINDS[str(kind)] if isinstance(kind, str) else int(cast("int", kind)),
        _bytes(stated.get("payload", "")) + b"\0" * int(str(stated.get("zeros", 0))),
        flags=int(str(stated.get("flags", 0))),
        stream=int(str(stated.get("stream", stream))),
        length=None if length is None else int(str(length)),
    )


def _request(stated: Tree, headers: dict[str, str], *, stream: int) -> bytes:
    own = {**headers, **cast("dict[str, str | None]", stated.get("headers", {}))}
    kept = {name: str(value) for name, value in own.items() if value is not None}
    return frame(HEADERS, literals(kept), flags=END_HEADERS, stream=stream)


def _message(stated: Tree, *, stream: int) -> bytes:
    length = stated.get("stated")
    data = message(
        _bytes(stated.get("body", "")),
        flag=int(str(stated.get("flag", 0))),
        stated=None if length is None else int(str(length)),
    )
    return frame(DATA, data, flags=END_STREAM, stream=stream)


async def exchange(address: str, data: bytes, *, within_s: float = PATIENCE_S) -> Wire:
    """Write the bytes and watch until the server has said what it thinks. Raises Unreachable."""
    host, _, port = address.rpartition(":")
    try:
        reader, writer = await asyncio.open_connection(host, int(port))
    except OSError as problem:
        raise Unreachable(f"{type(problem).__name__}: {problem}") from None
    wire = Wire()
    try:
        async with asyncio.timeout(within_s):
            writer.write(data)
            await writer.drain()
            await _watch(wire, reader, writer=writer)
    except TimeoutError:
        pass
    except (OSError, EOFError):
        wire.closed = True
    finally:
        writer.close()
    return wire


async def _watch(wire: Wire, reader: asyncio.StreamReader, *, writer: asyncio.StreamWriter) -> None:
    while wire.outcome == "silent":
        head = await reader.readexactly(9)
        payload = await reader.readexactly(int.from_bytes(head[:3], "big"))
        kind, flags = head[3], head[4]
        stream = int.from_bytes(head[5:], "big")
        if kind == SETTINGS and not flags & ACK:
            writer.write(frame(SETTINGS, b"", flags=ACK, stream=0))
        elif kind == PING and not flags & ACK:
            writer.write(frame(PING, payload, flags=ACK, stream=0))
        else:
            _noted(wire, kind, flags=flags, stream=stream, payload=payload)


def _noted(wire: Wire, kind: int, *, flags: int, stream: int, payload: bytes) -> None:
    if kind == GOAWAY:
        wire.goaway = int.from_bytes(payload[4:8], "big")
    if stream != wire.stream:
        return
    if kind == DATA:
        wire.data += payload
    if kind == RST_STREAM and not wire.ended:
        wire.reset = int.from_bytes(payload, "big")
    if kind in (DATA, HEADERS) and flags & END_STREAM:
        wire.ended = True
