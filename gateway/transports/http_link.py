"""One HTTP/1.1 connection to a component: one exchange at a time, parsed by httptools.

It reports each exchange exactly once, as a whole response or a fault, and says whether it may carry
another. It dials nothing, waits for nothing and knows no policy: its owner, the pool, does.
The answer that nearly every call has is read in one look; the parser reads all others.
"""

import asyncio
import enum
import re
from collections.abc import Callable
from typing import Final, NamedTuple, Protocol, cast

import httptools

# Node allows 16 KiB of response head, nginx 8 KiB times a few; four times that is no honest peer.
HEAD_BYTES_MAX: Final = 64 * 1024
# Chunks of one byte cost six on the wire; more overhead than that is an attack.
WIRE_BYTES_PER_BODY_BYTE: Final = 8

# A head that needs no parser: 200, one content type, one length, and no line with a say in framing,
# in the connection, or in what the gateway reads of a response. Strict: what does not match is not
# wrong, only the parser's. Nothing here can be tried twice, so it is linear.
_OTHER_LINES: Final = (
    rb"(?:(?i:connection: keep-alive)\r\n"
    rb"|(?!(?i:con|tr|up|proxy|retry))[!#-'*+.^_`|~0-9A-Za-z-]++: [ -~]*+\r\n)*+"
)
_PLAIN_HEAD: Final = re.compile(
    rb"HTTP/1\.1 200 [ -~]*+\r\n"
    + _OTHER_LINES
    + rb"(?i:content-type): ([ -~]*+)\r\n"
    # Nine digits are any length that may be; more are refused by the parser's way.
    + _OTHER_LINES
    + rb"(?i:content-length): ([0-9]{1,9}+)\r\n"
    + _OTHER_LINES
    + rb"\r\n"
)


class Fault(enum.Enum):
    """Why an exchange has no response."""

    REFUSED_ADDRESS = "REFUSED_ADDRESS"
    NOT_CONNECTED = "NOT_CONNECTED"
    TLS_FAILED = "TLS_FAILED"
    OVERLOADED = "OVERLOADED"
    NOT_SENT = "NOT_SENT"
    CUT = "CUT"
    MALFORMED = "MALFORMED"
    TOO_LARGE = "TOO_LARGE"


NOTHING_SENT: Final = frozenset(
    {
        Fault.REFUSED_ADDRESS,
        Fault.NOT_CONNECTED,
        Fault.TLS_FAILED,
        Fault.OVERLOADED,
        Fault.NOT_SENT,
    }
)
"""Faults that prove that no byte of the request reached the peer."""


class Response(NamedTuple):
    """A whole response. Header values are as the peer wrote them; absent is empty."""

    status: int
    content_type: bytes
    content_encoding: bytes
    retry_after: bytes
    body: bytes


def plain_response(data: bytes, body_bytes_max: int) -> Response | None:
    """The response that `data` is, if it is a plain one and nothing more; else the parser's."""
    head = _PLAIN_HEAD.match(data)
    if head is None:
        return None
    length, begin = int(head[2]), head.end()
    if begin + length != len(data) or length > body_bytes_max or begin > HEAD_BYTES_MAX:
        return None
    return Response(200, head[1], b"", b"", data[begin:])


class Exchange(Protocol):
    """One request, and what happens with its answer. Exactly one of the last two is called."""

    def payload(self) -> bytes:
        """The request's bytes, head and body, made at the moment of the write."""

    def answered(self, response: Response) -> None: ...

    def failed(self, fault: Fault, message: str) -> None: ...


class LinkOwner(Protocol):
    """Who opened the link and gives it exchanges."""

    def released(self, link: "Link", exchange: Exchange) -> None:
        """The exchange is over; the link may carry another one."""

    def dropped(self, link: "Link", exchange: Exchange | None) -> None:
        """The link is closed; `exchange` is what it carried."""


class Link(asyncio.Protocol):
    """One connection: at most one exchange at a time, responses parsed by httptools."""

    def __init__(self, owner: LinkOwner, body_bytes_max: int) -> None:
        self.used_at = 0.0
        self._owner: LinkOwner | None = owner
        self._now: Callable[[], float] = asyncio.get_running_loop().time
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._body_bytes_max = body_bytes_max
        self._exchange: Exchange | None = None
        self._is_unheard = True
        self._reset()

    @property
    def is_open(self) -> bool:
        """Whether another exchange may be written."""
        return self._transport is not None and not self._transport.is_closing()

    def begin(self, exchange: Exchange) -> None:
        """Write the exchange's bytes."""
        assert self._transport is not None
        self._exchange = exchange
        self._is_unheard = True
        self._transport.write(exchange.payload())

    def abandon(self) -> None:
        """Close at once and call nobody."""
        self._owner = None
        self._exchange = None
        if self._transport is not None:
            self._transport.abort()

    def _reset(self) -> None:
        self._chunks: list[bytes] = []
        self._body_bytes = 0
        self._head_bytes = 0
        self._wire_bytes = 0
        self._content_type = b""
        self._content_encoding = b""
        self._retry_after = b""
        self._has_end = False
        self._in_body = False
        self._is_complete = False
        self._keeps_alive = False
        self._fault: tuple[Fault, str] | None = None

    # -- asyncio.Protocol ------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is one without saying so
        self.used_at = self._now()

    def data_received(self, data: bytes) -> None:
        if self._exchange is None:
            self._close(None)  # nobody asked: what follows could be taken for the next answer
            return
        if self._is_unheard:
            self._is_unheard = False
            response = plain_response(data, self._body_bytes_max)
            if response is not None:
                self._finish(response, keeps_alive=True)
                return
            self._reset()
        self._wire_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._fault = (Fault.MALFORMED, "the peer switched to another protocol")
        except httptools.HttpParserError as error:
            if not self._is_complete:
                self._fault = (Fault.MALFORMED, f"the peer's answer is not HTTP/1.1: {error}")
            self._keeps_alive = False
        if self._fault is None and not self._is_complete:
            self._check_overhead()
        if self._fault is not None:
            self._fail(*self._fault)
        elif self._is_complete:
            self._finish(self._response(), keeps_alive=self._keeps_alive)

    def _check_overhead(self) -> None:
        if not self._in_body and self._wire_bytes > HEAD_BYTES_MAX:
            self._fault = (Fault.TOO_LARGE, f"the response head is over {HEAD_BYTES_MAX} bytes")
        elif self._wire_bytes > HEAD_BYTES_MAX + WIRE_BYTES_PER_BODY_BYTE * self._body_bytes_max:
            self._fault = (Fault.MALFORMED, "the response has far more framing than content")

    def connection_lost(self, exc: Exception | None) -> None:
        if self._exchange is None:
            self._close(None)
        elif not self._is_unheard and self._in_body and not self._has_end and exc is None:
            # The end of the connection is the end of such a body.
            self._finish(self._response(), keeps_alive=False)
        else:
            where = "without an answer" if self._is_unheard else "in the middle of the answer"
            self._fail(Fault.CUT, f"the connection ended {where}" + (f": {exc}" if exc else ""))

    # -- httptools callbacks ---------------------------------------------------------------------

    def on_message_begin(self) -> None:
        if self._is_complete:
            self._keeps_alive = False  # a second answer to one request: this link is not to trust

    def on_header(self, name: bytes, value: bytes) -> None:
        self._head_bytes += len(name) + len(value)
        if self._head_bytes > HEAD_BYTES_MAX:
            self._fault = (Fault.TOO_LARGE, f"the response head is over {HEAD_BYTES_MAX} bytes")
        if self._in_body or self._is_complete:
            return
        lower = name.lower()
        if lower in (b"content-length", b"transfer-encoding"):
            self._has_end = True
        elif lower == b"content-type":
            self._content_type = value
        elif lower == b"content-encoding":
            self._content_encoding = value
        elif lower == b"retry-after":
            self._retry_after = value

    def on_headers_complete(self) -> None:
        if not self._is_complete:
            self._in_body = True

    def on_body(self, body: bytes) -> None:
        if self._is_complete or self._fault is not None:
            return
        self._body_bytes += len(body)
        if self._body_bytes > self._body_bytes_max:
            text = f"the response is over {self._body_bytes_max} bytes"
            self._fault = (Fault.TOO_LARGE, text)
            self._chunks.clear()
        else:
            self._chunks.append(body)

    def on_message_complete(self) -> None:
        if self._is_complete:
            return
        if self._parser.get_status_code() < 200:  # 100 Continue, 103 Early Hints
            self._reset_after_interim()
            return
        self._is_complete = True
        self._keeps_alive = self._parser.should_keep_alive()

    def _reset_after_interim(self) -> None:
        wire_bytes, head_bytes = self._wire_bytes, self._head_bytes
        self._reset()
        self._wire_bytes, self._head_bytes = wire_bytes, head_bytes

    # -- the end of an exchange ------------------------------------------------------------------

    def _response(self) -> Response:
        """What the parser has read."""
        chunks, self._chunks = self._chunks, []
        return Response(
            self._parser.get_status_code(),
            self._content_type,
            self._content_encoding,
            self._retry_after,
            chunks[0] if len(chunks) == 1 else b"".join(chunks),
        )

    def _finish(self, response: Response, *, keeps_alive: bool) -> None:
        exchange, transport = self._exchange, self._transport
        assert exchange is not None
        assert transport is not None
        self._exchange = None
        # An answer before the whole request was written leaves a connection nobody can use.
        is_good = keeps_alive and not transport.is_closing()
        if is_good and not transport.get_write_buffer_size():
            self.used_at = self._now()
            if self._owner is not None:
                self._owner.released(self, exchange)
        else:
            self._close(exchange)
        exchange.answered(response)

    def _fail(self, fault: Fault, message: str) -> None:
        exchange = self._exchange
        assert exchange is not None
        self._exchange = None
        self._close(exchange)
        exchange.failed(fault, message)

    def _close(self, exchange: Exchange | None) -> None:
        owner, self._owner = self._owner, None
        if self._transport is not None:
            self._transport.abort()
        if owner is not None:
            owner.dropped(self, exchange)
