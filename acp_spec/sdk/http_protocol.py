"""One HTTP connection: uvicorn's httptools protocol, with what it lacks for strangers as callers.

Components and the gateway serve with it. Headers and time have limits; what is no HTTP is refused
in the ACP error shape; a client that takes nothing can be cut off; and `Upgrade: h2c`, which Java's
client sends with its first request, is ignored as HTTP allows (the parser alone would drop the
request's body).
"""

import asyncio
import re
from typing import Final

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from acp_spec.bindings import fields
from acp_spec.bindings.errors import error
from acp_spec.codec import json
from acp_spec.model.calls import ErrorBody
from acp_spec.model.errors import Reason

# Headers and request line together; common servers take 8 to 64 KiB.
HEADER_BYTES_MAX: Final = 64 * 1024
HEADERS_MAX: Final = 200
# A whole request must come within this; 4 MiB then need 70 KB/s, and a dribble holds no socket.
REQUEST_S: Final = 60.0
_FRAMING: Final = (b"content-length", b"transfer-encoding")
_END_OF_AUTHORITY: Final = re.compile(rb"[/?#]")
OTHER_HOST: Final = "header host: must be the authority of the request's target"


class _HeadersTooLarge(Exception):
    """Ends the parsing of a request; the parser tells it as an invalid request."""


class _OtherHost(Exception):
    """Ends the parsing of a request; the parser tells it as an invalid request."""


class Protocol(HttpToolsProtocol):
    """One connection."""

    request_s = REQUEST_S
    _header_bytes = 0
    _deadline: asyncio.TimerHandle | None = None
    # True while a head is parsed again whose request is already under way.
    _again = False
    _names_two_hosts = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._start_deadline()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end_deadline()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._unset_keepalive_if_required()
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self._ignore_upgrade()
            rest = data[upgrade.args[0] :]
            if rest:
                self.data_received(rest)
        except httptools.HttpParserError:
            self.send_400_response("this is not HTTP/1.1, or not well formed")

    def on_message_begin(self) -> None:
        if self._again:
            return
        self._header_bytes = 0
        self._start_deadline()
        super().on_message_begin()
        self.scope["extensions"] = {"acp.abort": self.transport.abort}  # type: ignore[dict-item]

    def on_url(self, url: bytes) -> None:
        if not self._again:
            self._count(len(url))
            super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._again:
            self._count(len(name) + len(value))
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        if not self._again:
            if not self.url.startswith(b"/"):
                self._check_authority()
            super().on_headers_complete()
        self._again = False

    def on_message_complete(self) -> None:
        # With an upgrade the parser ends the message before its body.
        if not self.parser.should_upgrade():
            self._end_deadline()
            super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        if self._header_bytes > HEADER_BYTES_MAX or len(self.headers or ()) > HEADERS_MAX:
            msg = f"headers: more than {HEADERS_MAX}, or {HEADER_BYTES_MAX} bytes of them"
        elif self._names_two_hosts:
            msg = OTHER_HOST
        body = json.encode(ErrorBody(error=error(Reason.INVALID_REQUEST, msg)))
        lines = [
            b"HTTP/1.1 400 Bad Request",
            b"content-type: " + fields.JSON.encode(),
            b"content-length: %d" % len(body),
            b"connection: close",
        ]
        self.transport.write(b"\r\n".join([*lines, b"", body]))
        self.transport.close()

    def _start_deadline(self) -> None:
        if self._deadline is None:
            self._deadline = self.loop.call_later(self.request_s, self._too_slow)

    def _end_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _too_slow(self) -> None:
        self._deadline = None
        if self.transport.is_closing():
            return
        if getattr(self.cycle, "response_started", False):  # no cycle until a head has come
            self.transport.abort()  # it was answered before its body came, and dribbles on
        else:
            self.send_400_response(f"the request did not come whole within {self.request_s:.0f} s")

    def _ignore_upgrade(self) -> None:
        """Go on with a parser that saw the same head without `Upgrade`: it waits for the body."""
        framing = [(name, value) for name, value in self.headers if name in _FRAMING]
        self.parser = httptools.HttpRequestParser(self)
        self._again = True
        head = b"".join(b"%s: %s\r\n" % header for header in framing)
        self.parser.feed_data(b"POST / HTTP/1.1\r\n" + head + b"\r\n")

    def _check_authority(self) -> None:
        """Of `GET http://name/...` the name is the host, whatever `Host` says (RFC 9112 3.2.2).

        A client must send the same in both, so that whoever looks at `Host` sees the name too.
        """
        _, is_absolute, rest = self.url.partition(b"://")
        authority = _END_OF_AUTHORITY.split(rest, maxsplit=1)[0].lower()
        hosts = [value.strip().lower() for name, value in self.headers if name == b"host"]
        if is_absolute and hosts != [authority]:
            self._names_two_hosts = True
            raise _OtherHost

    def _count(self, size: int) -> None:
        self._header_bytes += size
        if self._header_bytes > HEADER_BYTES_MAX or len(self.headers) > HEADERS_MAX:
            raise _HeadersTooLarge
