"""Opening the ports of a component, and closing them in order.

`Server` serves HTTP and gRPC at once on one loop; `run` is the process around it: uvloop, signals,
one JSON ready line. The end: no new calls, running ones finish within the drain, then both servers
stop; a second signal stops at once. Without a token it binds only to loopback.
"""

import asyncio
import contextlib
import ipaddress
import json
import logging
import os
import signal
import socket
import sys
from collections.abc import Coroutine, Iterator
from dataclasses import dataclass

import grpc
import uvicorn
import uvloop
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from acp_spec.bindings.routes import COMPONENT_ROUTES
from acp_spec.proto.v1 import acp_pb2
from acp_spec.sdk.component import Component
from acp_spec.sdk.dispatch import Dispatcher
from acp_spec.sdk.grpc_server import GrpcFront, server_options
from acp_spec.sdk.http_protocol import Protocol
from acp_spec.sdk.http_server import HttpFront
from acp_spec.sdk.own_token import own_token
from acp_spec.sdk.steady_grpc import steady_server

DRAIN_S_DEFAULT = 10.0
"""Long enough for a usual call, short enough for what supervises the process (30 s or more)."""
STOP_GRACE_S = 1.0
"""For handlers that were asked to stop, and for connections to close."""
KEEP_ALIVE_S = 75
"""Longer than gateways keep idle connections, so that the gateway closes them, not we under a
call.
"""
BACKLOG = 1024

log = logging.getLogger(__name__)


class NotAllowed(ValueError):
    """An address that may not be served as asked; the message says what to do."""


class CannotListen(OSError):
    """An address that cannot be bound; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class Address:
    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def is_loopback(self) -> bool:
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"


def parse_address(text: str) -> Address:
    """`host:port` or `[v6]:port`; port 0 = any free one. Raises ValueError."""
    host, colon, port = text.rpartition(":")
    if not colon or not host or not port.isdecimal() or int(port) > 65535:
        raise ValueError(f"an address looks like 127.0.0.1:8080, not {text!r}")
    return Address(host.strip("[]"), int(port))


class _Uvicorn(uvicorn.Server):
    """Signals belong to `run`, which has to stop gRPC too."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class Server:
    """One component on its ports. `http` or `grpc` None = that binding is not served."""

    def __init__(
        self,
        component: Component,
        *,
        http: Address | None,
        grpc: Address | None,
        token: str | None = None,
    ) -> None:
        for address in (http, grpc):
            if address is not None and not address.is_loopback() and token is None:
                raise NotAllowed(
                    f"{address} can be reached from other machines: set a token "
                    "(ACP_COMPONENT_TOKEN) that callers must send, or bind to 127.0.0.1."
                )
        self._component = component
        self._asked = (http, grpc)
        self._token = token
        self.http: Address | None = None
        self.grpc: Address | None = None

    async def start(self) -> None:
        """Open the ports; `http` and `grpc` are then the addresses really bound."""
        self.dispatcher = Dispatcher(self._component, token=self._token)
        http, grpc_address = self._asked
        if grpc_address is not None:
            _bound(grpc_address, "ACP_GRPC_PORT").close()  # gRPC itself would not say what is wrong
        self._uvicorn = await self._start_http(http) if http else None
        self._grpc = await self._start_grpc(grpc_address) if grpc_address else None

    async def stop(self, *, drain_s: float) -> bool:
        """Drain, then stop; False when something was still running in the end."""
        self.dispatcher.draining = True
        if self._grpc is not None:
            await self._health.enter_graceful_shutdown()
        drained = await _within(self.dispatcher.drain(), drain_s)
        if not drained:
            self.dispatcher.stop_all()
            drained = await _within(self.dispatcher.drain(), STOP_GRACE_S)
        if self._grpc is not None:
            await self._grpc.stop(STOP_GRACE_S if drained else 0)
        if self._uvicorn is not None:
            self._uvicorn.should_exit = True
            await self._serving
        self.dispatcher.close()
        return drained

    async def _start_http(self, asked: Address) -> _Uvicorn:
        bound = _bound(asked, "ACP_PORT")
        self.http = Address(asked.host, bound.getsockname()[1])
        config = uvicorn.Config(
            HttpFront(self.dispatcher),
            http=Protocol,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_keep_alive=KEEP_ALIVE_S,
            timeout_graceful_shutdown=int(STOP_GRACE_S),
        )
        server = _Uvicorn(config)
        self._serving = asyncio.create_task(server.serve(sockets=[bound]))
        # uvicorn offers no event to wait for
        while not server.started and not self._serving.done():  # noqa: ASYNC110
            await asyncio.sleep(0.001)
        return server

    async def _start_grpc(self, asked: Address) -> grpc.aio.Server:
        limit = self._component.limits.max_request_bytes
        server = steady_server(GrpcFront(self.dispatcher).handlers, options=server_options(limit))
        services = sorted({route.rpc.split("/")[1] for route in COMPONENT_ROUTES})
        assert set(services) <= {f"acp.v1.{name}" for name in acp_pb2.DESCRIPTOR.services_by_name}
        self._health = health.aio.HealthServicer()
        health_pb2_grpc.add_HealthServicer_to_server(self._health, server)
        for service in ("", *services):
            await self._health.set(service, health_pb2.HealthCheckResponse.SERVING)
        known = (*services, health.SERVICE_NAME, reflection.SERVICE_NAME)
        reflection.enable_server_reflection(known, server)
        port = server.add_insecure_port(str(asked))
        await server.start()
        self.grpc = Address(asked.host, port)
        return server


def _bound(asked: Address, setting: str) -> socket.socket:
    """A socket that listens there; raises CannotListen with the setting that says where."""
    family = socket.AF_INET6 if ":" in asked.host else socket.AF_INET
    try:
        return socket.create_server((asked.host, asked.port), family=family, backlog=BACKLOG)
    except OSError as problem:
        system = problem.errno is not None and not isinstance(problem, socket.gaierror)
        why = os.strerror(problem.errno or 0) if system else str(problem)
        raise CannotListen(
            f"cannot listen on {asked}: {why}; choose another address with ACP_HOST and {setting}"
            " (0 = any free port)"
        ) from None


def run(component: Component, *, http: str | None = None, grpc: str | None = None) -> None:
    """Serve until SIGTERM or SIGINT. What is not given comes from the environment:
    ACP_HOST (127.0.0.1), ACP_PORT and ACP_GRPC_PORT (0 = any free), ACP_COMPONENT_TOKEN,
    ACP_DRAIN_S.
    """
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    host = os.environ.get("ACP_HOST", "127.0.0.1")
    try:
        server = Server(
            component,
            http=parse_address(http or f"{host}:{os.environ.get('ACP_PORT', '0')}"),
            grpc=parse_address(grpc or f"{host}:{os.environ.get('ACP_GRPC_PORT', '0')}"),
            token=own_token(os.environ),
        )
    except ValueError as problem:
        raise SystemExit(str(problem)) from None
    drain_s = float(os.environ.get("ACP_DRAIN_S", DRAIN_S_DEFAULT))
    try:
        clean = uvloop.run(_until_signalled(server, drain_s))
    except CannotListen as problem:
        raise SystemExit(f"{component.name}: {problem}") from None
    if not clean:
        # A sync handler that ignores `call.cancelled` holds its thread; do not wait for it.
        sys.stdout.flush()
        os._exit(1)


async def _until_signalled(server: Server, drain_s: float) -> bool:
    signalled = asyncio.Event()
    loop = asyncio.get_running_loop()

    def on_signal() -> None:
        if signalled.is_set():
            os._exit(1)
        signalled.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, on_signal)
    await server.start()
    ready = {
        "ready": True,
        "http": f"http://{server.http}",
        "grpc": f"grpc://{server.grpc}",
        "pid": os.getpid(),
    }
    sys.stdout.write(json.dumps(ready) + "\n")
    sys.stdout.flush()
    await signalled.wait()
    log.info("stopping: no new calls, %.0f s for those that run", drain_s)
    return await server.stop(drain_s=drain_s)


async def _within(work: Coroutine[None, None, None], timeout_s: float) -> bool:
    """Whether `work` ended in time; it is cancelled when not."""
    try:
        async with asyncio.timeout(timeout_s):
            await work
    except TimeoutError:
        return False
    return True
