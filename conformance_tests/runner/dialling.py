"""How a component that attaches comes to dial the suite: its owner is told, or it is started.

A command is started with `ACP_ATTACH` set (`grpc://host:port`); `{attach}` in it stands for host
and port. It is ended when the run is over.
"""

import asyncio
import contextlib
import os
import shlex
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import TypeAlias

Dial: TypeAlias = Callable[[str], AbstractAsyncContextManager[Awaitable[str] | None]]
"""Entered with the URL of the suite's end; left when the run is over. It may give what says why the
component will not come, or come back, as soon as that is known."""
STOP_WITHIN_S = 5.0


@contextlib.asynccontextmanager
async def told(url: str) -> AsyncIterator[None]:
    """It dials by itself."""
    yield


def telling(say: Callable[[str], None]) -> Dial:
    """Say where to dial."""

    @contextlib.asynccontextmanager
    async def dial(url: str) -> AsyncIterator[None]:
        say(f"waiting for a component that attaches to {url}")
        yield

    return dial


def started_by(command: str) -> Dial:
    """Start the component by its command."""

    @contextlib.asynccontextmanager
    async def dial(url: str) -> AsyncIterator[Awaitable[str]]:
        words = shlex.split(command.replace("{attach}", url.rpartition("://")[2]))
        process = await asyncio.create_subprocess_exec(
            *words,
            env={**os.environ, "ACP_ATTACH": url},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
        )
        try:
            yield _end_of(process, words[0])
        finally:
            await _end(process)

    return dial


async def _end_of(process: asyncio.subprocess.Process, program: str) -> str:
    return f"{program} has ended with exit code {await process.wait()}"


async def _end(process: asyncio.subprocess.Process) -> None:
    if process.returncode is not None:
        return
    process.terminate()
    try:
        async with asyncio.timeout(STOP_WITHIN_S):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()
