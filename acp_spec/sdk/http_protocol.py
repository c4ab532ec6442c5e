"""One HTTP connection: uvicorn's httptools protocol, with what it lacks for strangers as callers.

Components and the gateway serve with it. Headers and time have limits; what is no HTTP is refused
in the ACP error shape; a client that takes nothing can be cut off; and `Upgrade: h2c`, which Java's
client sends with its first request, is ignored as HTTP allows (the parser alone would drop the
request's body).
"""

import asyncio
import re
from typing import Any, Final
from urllib.parse import unquote

import httptools
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from acp_spec.bindings import fields
from acp_spec.bindings.errors import error
from acp_spec.codec import json
from acp_spec.model.calls import ErrorBody
from acp_spec.model.errors import Reason
from acp_spec.sdk.http_cycle import Cycle

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
    # True from the first byte of a request to its last.
    _is_arriving = False
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
        if self._is_arriving and self._deadline is None:
            self._start_deadline()  # most requests come in one piece and need no timer

    def on_message_begin(self) -> None:
        if self._again:
            return
        self._is_arriving = True
        self._header_bytes = 0
        self.url = b""
        self.expect_100_continue = False
        self.headers = []

    def on_url(self, url: bytes) -> None:
        if not self._again:
            self._count(len(url))
            self.url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._again:
            return
        self._count(len(name) + len(value))
        name = name.lower()
        if name == b"expect" and value.lower() == b"100-continue":
            self.expect_100_continue = True
        self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        if self._again:
            self._again = False
            return
        if not self.url.startswith(b"/"):
            self._check_authority()
        version = self.parser.get_http_version()
        before = self.cycle
        app: Any = self.app  # its wrappers are typed for lifespans too
        self.cycle = Cycle(
            scope=self._scope(version),  # type: ignore[arg-type]
            transport=self.transport,
            flow=self.flow,
            logger=self.logger,
            access_logger=self.access_logger,
            access_log=False,
            default_headers=self.server_state.default_headers,
            message_event=asyncio.Event(),
            expect_100_continue=self.expect_100_continue,
            keep_alive=version != "1.0" and self.parser.should_keep_alive(),
            on_response=self.on_response_complete,
        )
        if before is None or before.response_complete:  # type: ignore[redundant-expr]  # at first
            self._start_asgi_task(self.cycle, app)
        else:
            # The client did not wait for its answer: the next request waits for it.
            self.flow.pause_reading()
            self.pipeline.appendleft((self.cycle, app))

    def _scope(self, version: str) -> dict[str, object]:
        """The request as ASGI describes it."""
        url = httptools.parse_url(self.url)
        path = url.path.decode("ascii")
        return {
            "type": "http",
            "asgi": {"version": self.asgi_version, "spec_version": "2.3"},
            "http_version": version,
            "server": self.server,
            "client": self.client,
            "scheme": self.scheme,
            "root_path": "",
            "method": self.parser.get_method().decode("ascii"),
            "path": unquote(path) if "%" in path else path,
            "raw_path": url.path,
            "query_string": url.query or b"",
            "headers": self.headers,
            "extensions": {"acp.abort": self.transport.abort},
        }

    def on_body(self, body: bytes) -> None:
        cycle = self.cycle
        if cycle.response_complete:
            return
        cycle.body += body
        if len(cycle.body) > HIGH_WATER_LIMIT:
            self.flow.pause_reading()
        cycle.message_event.set()

    def on_message_complete(self) -> None:
        # With an upgrade the parser ends the message before its body.
        if self.parser.should_upgrade():
            return
        self._is_arriving = False
        self._end_deadline()
        if not self.cycle.response_complete:
            self.cycle.more_body = False
            self.cycle.message_event.set()

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
