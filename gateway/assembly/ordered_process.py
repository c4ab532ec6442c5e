"""A process of ours that gets its order on standard input and answers there: a line each way.

The pipe stays open as long as the gateway lives, so the process can tell that it has ended. Secrets
go in the order: a command line can be read by everybody.
"""

import asyncio
import sys
from typing import Final

import msgspec

LINE_BYTES_MAX: Final = 64 << 10
"""Of a line that is answered, where whoever starts it says nothing else."""


async def begun(
    module: str, order: msgspec.Struct, *, line_bytes_max: int = LINE_BYTES_MAX
) -> asyncio.subprocess.Process:
    """`python -m MODULE`, with its order already on the way."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        module,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        start_new_session=True,  # a Ctrl-C is for the gateway: it ends this process in turn
        limit=line_bytes_max,
    )
    assert process.stdin is not None
    process.stdin.write(msgspec.json.encode(order) + b"\n")
    return process


class OrderedProcess:
    """One that has begun."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self.pid = process.pid

    async def line(self) -> bytes:
        """The next line of standard output; nothing once it has ended."""
        assert self._process.stdout is not None
        return await self._process.stdout.readline()

    async def wait(self) -> int:
        """Its exit status, once it is over."""
        return await self._process.wait()

    def kill(self) -> None:
        """End it now, if it has not."""
        if self._process.returncode is None:
            self._process.kill()
