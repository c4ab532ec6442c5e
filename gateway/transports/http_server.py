"""The HTTP listener: uvicorn with httptools, run inside a loop that is not its own.

It installs no signal handlers and logs no request; whoever assembles the gateway says when to drain
and when to stop. What is no HTTP is refused in the ACP error shape too, and headers have a limit.
"""

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Generator
from pathlib import Path
from typing import Final

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from acp_spec.bindings.errors import error
from acp_spec.model.errors import Reason
from gateway.config.binds import Bind
from gateway.config.settings import Settings, TlsSettings
from gateway.transports.auth import Gate, served_hosts
from gateway.transports.http_app import HttpApp
from gateway.transports.http_response import failed
from gateway.transports.http_routes import HttpLimits
from gateway.transports.ports import Services
from gateway.transports.streaming import StreamTimes

# Headers and request line together; common servers take 8 to 64 KiB.
HEADER_BYTES_MAX: Final = 64 * 1024
HEADERS_MAX: Final = 200
# Longer than load balancers (60 s) keep an idle connection, so that they close first.
KEEP_ALIVE_S: Final = 75
BACKLOG: Final = 2_048
# After the drain's grace the rest is cut; the assembly has waited before.
CUT_AFTER_S: Final = 2


class _HeadersTooLarge(Exception):
    """Ends the parsing of a request; the parser tells it as an invalid request."""


class Protocol(HttpToolsProtocol):
    """uvicorn's protocol with a limit on headers, ACP errors, and a way to cut a client off."""

    _header_bytes = 0

    def on_message_begin(self) -> None:
        self._header_bytes = 0
        super().on_message_begin()
        self.scope["extensions"] = {"acp.abort": self.transport.abort}  # type: ignore[dict-item]

    def on_url(self, url: bytes) -> None:
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count(len(name) + len(value))
        super().on_header(name, value)

    def send_400_response(self, msg: str) -> None:
        if self._header_bytes > HEADER_BYTES_MAX or len(self.headers or ()) > HEADERS_MAX:
            msg = f"headers: more than {HEADERS_MAX}, or {HEADER_BYTES_MAX} bytes of them"
        response = failed(error(Reason.INVALID_REQUEST, msg), (b"connection", b"close"))
        lines = [b"HTTP/1.1 400 Bad Request", b": ".join(response.content_type)]
        lines += [b": ".join(header) for header in response.headers]
        lines.append(b"content-length: %d" % len(response.body))
        self.transport.write(b"\r\n".join([*lines, b"", response.body]))
        self.transport.close()

    def _count(self, size: int) -> None:
        self._header_bytes += size
        if self._header_bytes > HEADER_BYTES_MAX or len(self.headers) > HEADERS_MAX:
            raise _HeadersTooLarge


class _Server(uvicorn.Server):
    """Signals belong to the assembly; `listening` is set once connections are accepted."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.listening = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.listening.set()

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


class HttpServer:
    """One listening address. `serve` runs until `stop`; `port` is known once it is bound."""

    def __init__(self, services: Services, gate: Gate, *, settings: Settings) -> None:
        self.app: Final = HttpApp(
            services,
            gate,
            limits=HttpLimits(
                body_bytes=settings.limits.max_request_bytes,
                wait_s=settings.http.wait_max_ms / 1000,
            ),
            times=StreamTimes(heartbeat_s=settings.http.sse_keepalive_ms / 1000),
        )
        self._socket = bound_socket(settings.http.bind)
        self._server = _Server(_config(self.app, settings.tls))
        self._scheme = "https" if settings.tls.cert_file else "http"

    @property
    def address(self) -> str:
        """`host:port` as it is really bound (port 0 became a free one)."""
        host, port = self._socket.getsockname()[:2]
        return str(Bind(host, port))

    @property
    def url(self) -> str:
        """The base URL of this server."""
        return f"{self._scheme}://{self.address}"

    async def serve(self) -> None:
        """Serve until `stop`; returns when every connection is closed."""
        await self._server.serve(sockets=[self._socket])

    async def started(self) -> None:
        """Return once connections are accepted."""
        await self._server.listening.wait()

    def drain(self) -> None:
        """Take no new connections and end event streams; requests under way go on."""
        self.app.streams.close_all()
        self._server.should_exit = True

    def stop(self) -> None:
        """Cut everything that is still open."""
        self.drain()
        self._server.force_exit = True
        for connection in list(self._server.server_state.connections):
            if connection.transport is not None:
                connection.transport.abort()


def http_gate(services: Services, settings: Settings) -> Gate:
    """The gate these settings ask for."""
    return Gate(
        services.tokens,
        required=settings.auth_required,
        hosts=served_hosts(settings),
        origins=settings.http.allowed_origins,
    )


def bound_socket(bind: Bind) -> socket.socket:
    """A socket bound to the address; the error says which one and what to do."""
    family = socket.AF_INET6 if ":" in bind.host else socket.AF_INET
    opened = socket.socket(family, socket.SOCK_STREAM)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        opened.bind((bind.host, bind.port))
    except OSError as problem:
        opened.close()
        reason = problem.strerror or str(problem)
        raise OSError(
            problem.errno, f"cannot listen on {bind}: {reason}; choose another (0: any free port)"
        ) from None
    opened.setblocking(False)
    return opened


def _config(app: HttpApp, tls: TlsSettings) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=Protocol,
        ws="none",
        lifespan="off",
        interface="asgi3",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        backlog=BACKLOG,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=CUT_AFTER_S,
        ssl_certfile=_text(tls.cert_file),
        ssl_keyfile=_text(tls.key_file),
        ssl_version=ssl.PROTOCOL_TLS_SERVER,
    )


def _text(path: Path | None) -> str | None:
    return None if path is None else str(path)
