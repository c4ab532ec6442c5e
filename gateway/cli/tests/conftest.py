"""A gateway's HTTP side over services in memory, on a thread of its own, and the commands to call
it."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest
import typer
from typer.testing import CliRunner, Result

from acp_spec.sdk.cli import add_commands
from gateway.transports.http_server import HttpServer
from gateway.transports.tests.in_memory import House
from gateway.transports.tests.listening import http_server


@dataclass
class Served:
    """Where it listens; `soon` runs something on the server's own loop."""

    url: str
    house: House
    loop: asyncio.AbstractEventLoop

    def soon(self, act: Callable[[], None]) -> None:
        done = threading.Event()

        def run() -> None:
            act()
            done.set()

        self.loop.call_soon_threadsafe(run)
        assert done.wait(5)


@pytest.fixture
def served() -> Iterator[Served]:
    house, started, found = House(), threading.Event(), []

    async def serve() -> None:
        stop = asyncio.Event()
        async with http_server(house) as server:
            found.append((server, asyncio.get_running_loop(), stop))
            started.set()
            await stop.wait()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    assert started.wait(10)
    server, loop, stop = found[0]
    assert isinstance(server, HttpServer)
    yield Served(server.url, house, loop)
    loop.call_soon_threadsafe(stop.set)
    thread.join(10)


Acp = Callable[..., Result]


@pytest.fixture
def root() -> typer.Typer:
    app = typer.Typer()
    add_commands(app)
    return app


@pytest.fixture
def acp(root: typer.Typer, served: Served) -> Acp:
    """`acp("sessions", "list")` against the gateway in memory."""

    def call(*arguments: str, stdin: str | None = None) -> Result:
        return CliRunner().invoke(
            root, list(arguments), input=stdin, env={"ACP_GATEWAY": served.url, "ACP_TOKEN": ""}
        )

    return call
