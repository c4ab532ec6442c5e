"""Reward rules that live in a file: read at the start, and again whenever it changes.

A file that cannot be read, or is wrong, keeps the rules that held; why stands in the log and in
`acp rewards show`. Read in a thread: a file may lie on a disk that is slow.
"""

import asyncio
import contextlib
from pathlib import Path
from typing import Final

from acp_spec.model.errors import AcpFailure
from gateway.runtime.lasting import broken_off
from gateway.runtime.principal import LOCAL
from gateway.runtime.reward_rules import RewardBook

FILE_BYTES_MAX: Final = 256 * 1024
"""What a workflow file may have; rules are shorter."""


class RewardFile:
    """`start` it on the loop, `close` it before the committer."""

    def __init__(self, path: Path, book: RewardBook, *, every_ms: int) -> None:
        self._path = path
        self._book = book
        self._every_s = every_ms / 1000
        self._seen: str | None = None
        self._task: asyncio.Task[None] | None = None
        book.from_file = str(path)

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run(), name="reward rules")

    async def close(self) -> None:
        if self._task is not None:
            await broken_off(self._task)

    async def _run(self) -> None:
        while True:
            await self.look()
            await asyncio.sleep(self._every_s)

    async def look(self) -> None:
        """Take the file if it is another one than at the last look."""
        text, problem = await asyncio.to_thread(_read, self._path)
        said = problem or text
        if said == self._seen:
            return
        self._seen = said
        by = f"file:{self._path}"
        if problem:
            self._book.tell_refused(problem, by=by)
            return
        with contextlib.suppress(AcpFailure):  # the book has told why
            await self._book.take(text, LOCAL, by=by)


def _read(path: Path) -> tuple[str, str]:
    """The text, or why there is none."""
    try:
        with path.open("rb") as file:
            data = file.read(FILE_BYTES_MAX + 1)
        if len(data) > FILE_BYTES_MAX:
            return "", f"{path}: has over {FILE_BYTES_MAX} bytes"
        return data.decode("utf-8"), ""
    except (OSError, UnicodeDecodeError) as problem:
        return "", f"{path}: cannot be read: {problem}"
