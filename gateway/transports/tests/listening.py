"""Real servers on free ports for the length of a story."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from gateway.config.settings import Settings
from gateway.transports.grpc_server import GrpcServer
from gateway.transports.http_server import HttpServer, http_gate
from gateway.transports.tests.in_memory import House

STORY_S = 20.0


def settings(**more: object) -> Settings:
    return Settings.model_validate(
        {
            "http": {"bind": "127.0.0.1:0", "sse_keepalive_ms": 50},
            "grpc": {"bind": "127.0.0.1:0"},
            "limits": {"max_request_bytes": 10_000},
            **more,
        }
    )


@asynccontextmanager
async def http_server(house: House, chosen: Settings | None = None) -> AsyncIterator[HttpServer]:
    chosen = chosen or settings()
    server = HttpServer(house.services, http_gate(house.services, chosen), settings=chosen)
    serving = asyncio.create_task(server.serve())
    await server.started()
    try:
        yield server
    finally:
        server.stop()
        await serving


@asynccontextmanager
async def grpc_server(house: House, chosen: Settings | None = None) -> AsyncIterator[GrpcServer]:
    chosen = chosen or settings()
    server = GrpcServer(house.services, http_gate(house.services, chosen), settings=chosen)
    await server.start()
    await server.set_ready(True)
    try:
        yield server
    finally:
        await server.stop()


def run(story: Callable[[], Awaitable[None]]) -> None:
    """Run a story on a loop of its own, not for ever."""

    async def bounded() -> None:
        async with asyncio.timeout(STORY_S):
            await story()

    asyncio.run(bounded())
