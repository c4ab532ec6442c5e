"""One request and its answer over a connection: uvicorn's cycle, with a `send` of our own.

An answer of stated length leaves in one write, head and body: each write is a call into the kernel,
a packet, and one more time that the peer wakes up. What has no stated length streams: its head and
each of its chunks leave at once. Errors of the application are uvicorn's to tell (`run_asgi`).
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeAlias

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, RequestResponseCycle

# No header may hold one: a line end in a value would be a header of its own.
_CONTROLS: Final = bytes([*range(0x20), 0x7F])
_LINE_END_BYTES: Final = 2
_BODILESS: Final = (204, 304)
# The ASGI specification's own shape.
Message: TypeAlias = Mapping[str, Any]


class Cycle(RequestResponseCycle):
    """See the module. Header names are in lower case, as ASGI wants them."""

    _unwritten = b""

    async def send(self, message: Message) -> None:
        """ASGI's `send`."""
        if self.flow.write_paused and not self.disconnected:
            await self.flow.drain()
        if self.disconnected:
            return
        if message["type"] == "http.response.start":
            assert not self.response_started, "an answer has one head"
            self._start(message["status"], message.get("headers", ()))
        else:
            assert self.response_started, "the head comes first"
            assert not self.response_complete, "nothing follows the end of an answer"
            self._go_on(message.get("body", b""), message.get("more_body", False))

    def _start(self, status: int, headers: Iterable[tuple[bytes, bytes]]) -> None:
        self.response_started = True
        self.waiting_for_100_continue = False
        lines = [STATUS_LINE[status]]
        closes = False
        for name, value in (*self.default_headers, *headers):
            lines.append(b"%b: %b\r\n" % (name, value))
            if name == b"content-length":
                self.expected_content_length = int(value)
                self.chunked_encoding = False
            elif name == b"connection" and value == b"close":
                closes = True
        if closes:
            self.keep_alive = False
        elif not self.keep_alive:
            lines.append(b"connection: close\r\n")
        may_have_body = status not in _BODILESS and self.scope["method"] != "HEAD"
        if may_have_body and self.chunked_encoding is None:
            self.chunked_encoding = True
            lines.append(b"transfer-encoding: chunked\r\n")
        self._put_head(lines)

    def _put_head(self, lines: list[bytes]) -> None:
        head = b"".join(lines)
        clean = len(head) - _LINE_END_BYTES * len(lines)
        if len(head.translate(None, _CONTROLS)) != clean:
            raise RuntimeError("a header holds a control character")
        if self.chunked_encoding:
            self.transport.write(head + b"\r\n")
        else:
            self._unwritten = head + b"\r\n"

    def _go_on(self, body: bytes, more_body: bool) -> None:
        if self.scope["method"] == "HEAD":
            self.expected_content_length, body = 0, b""
        if self.chunked_encoding:
            chunk = b"%x\r\n%b\r\n" % (len(body), body) if body else b""
            content = chunk if more_body else chunk + b"0\r\n\r\n"
        else:
            self.expected_content_length -= len(body)
            content, self._unwritten = self._unwritten + body, b""
        if self.expected_content_length < 0 or (self.expected_content_length and not more_body):
            raise RuntimeError("the body is not as long as its head says")
        self.transport.write(content)
        if not more_body:
            self._end()

    def _end(self) -> None:
        self.response_complete = True
        self.message_event.set()
        if not self.keep_alive:
            self.transport.close()
        self.on_response()
