"""The HTTP listener: uvicorn with httptools, run inside a loop that is not its own.

It installs no signal handlers and logs no request; whoever assembles the gateway says when to drain
and when to stop.
"""

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Generator
from pathlib import Path
from typing import Final

import uvicorn

from acp_spec.sdk.http_protocol import Protocol
from gateway.config.binds import Bind
from gateway.config.settings import Settings
from gateway.transports.auth import Gate, served_hosts
from gateway.transports.http_app import HttpApp
from gateway.transports.http_routes import HttpLimits
from gateway.transports.ports import Services
from gateway.transports.streaming import StreamTimes

# Longer than load balancers (60 s) keep an idle connection, so that they close first.
KEEP_ALIVE_S: Final = 75
BACKLOG: Final = 2_048
# After `stop` answers that are on their way may still be written.
CUT_AFTER_S: Final = 0.5


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
        self._server = _Server(_config(self.app, settings))
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
        """Take no new connections and end event streams; requests under way may still end."""
        self.app.streams.close_all()
        self._server.should_exit = True

    def stop(self) -> None:
        """End everything now: requests under way are told so, then connections are cut."""
        self.drain()
        self._server.force_exit = True
        for task in list(self._server.server_state.tasks):
            task.cancel()
        asyncio.get_running_loop().call_later(CUT_AFTER_S, self._cut)

    def _cut(self) -> None:
        for connection in list(self._server.server_state.connections):
            if connection.transport is not None:  # pyright: ignore[reportUnnecessaryComparison]  # before it is connected
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


def _config(app: HttpApp, settings: Settings) -> uvicorn.Config:
    tls = settings.tls
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
        timeout_graceful_shutdown=max(1, settings.grace.drain_grace_ms // 1000),
        ssl_certfile=_text(tls.cert_file),
        ssl_keyfile=_text(tls.key_file),
        ssl_version=ssl.PROTOCOL_TLS_SERVER,
    )


def _text(path: Path | None) -> str | None:
    return None if path is None else str(path)
