"""Evidence that the gateway measures itself: another command of ours, run as a process.

The command's JSON on standard output becomes named figures (numbers and booleans by their path).
One at a time, bounded in time and output; whatever comes out is attached, also a failure: whoever
could drop bad figures could wait for good ones.
"""

import asyncio
import contextlib
import hashlib
import itertools
import json
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from gateway.telemetry.logs import get_log

log = get_log(__name__)

OUTPUT_BYTES_MAX: Final = 8 * 1024 * 1024
FIGURES_MAX: Final = 500
DEPTH_MAX: Final = 8
TIMED_OUT: Final = 124
"""The exit code of `timeout`, for a process that was stopped."""
# What a command of ours needs of the environment; tokens and credentials of the gateway stay here.
_PASSED_ON: Final = ("PATH", "HOME", "LANG", "TMPDIR", "VIRTUAL_ENV")


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """How a measurement ended."""

    figures: dict[str, float]
    exit_code: int
    report_sha256: str


class Measurement(msgspec.Struct, frozen=True, kw_only=True):
    """What to run: the words after `acp`, files beside it by name, and what its token may do."""

    words: tuple[str, ...]
    files: dict[str, str] = {}
    scopes: tuple[str, ...] = ()


class Measurer:
    """Runs `acp <command> --json` as processes, one at a time."""

    def __init__(self, *, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._turn = asyncio.Lock()

    async def run(self, measurement: Measurement, *, token: str = "") -> Measured:
        """Run it to its end, or to the time limit; never raises for what the command does."""
        environ = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
        if token:
            environ["ACP_TOKEN"] = token
        async with self._turn:
            with tempfile.TemporaryDirectory(prefix="acp-evidence-") as folder:
                _write(Path(folder), measurement.files)
                return await self._run(measurement.words, environ, folder=folder)

    async def _run(
        self, command: Sequence[str], environ: Mapping[str, str], *, folder: str
    ) -> Measured:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "gateway",
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env=environ,
            cwd=folder,
            start_new_session=True,
        )
        try:
            return await self._ended(process, command)
        finally:
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, 9)
                await process.wait()

    async def _ended(self, process: asyncio.subprocess.Process, command: Sequence[str]) -> Measured:
        assert process.stdout is not None
        try:
            async with asyncio.timeout(self._timeout_s):
                output = await _at_most(process.stdout)
                exit_code = await process.wait()
        except TimeoutError:
            log.warning("measurement_stopped", command=command[0], after_s=self._timeout_s)
            return Measured(figures={}, exit_code=TIMED_OUT, report_sha256="")
        log.info("measured", command=command[0], exit_code=exit_code)
        digest = hashlib.sha256(output).hexdigest()
        return Measured(figures=figures_of(output), exit_code=exit_code, report_sha256=digest)


def _write(folder: Path, files: Mapping[str, str]) -> None:
    """A few kilobytes, now and then: no reason for a thread."""
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")


async def _at_most(stream: asyncio.StreamReader) -> bytes:
    """What the process writes; what is beyond the bound is read and dropped, so that it can end."""
    kept = bytearray()
    while chunk := await stream.read(65_536):
        if len(kept) < OUTPUT_BYTES_MAX:
            kept += chunk
    return bytes(kept)


def figures_of(output: bytes) -> dict[str, float]:
    """The numbers in a JSON document, or in the last line that is one; {} when there is none."""
    for text in (output, output.strip().rpartition(b"\n")[2]):
        try:
            document = json.loads(text)
        except (ValueError, RecursionError):
            continue
        return dict(itertools.islice(_numbers(document, "", depth=0), FIGURES_MAX))
    return {}


def _name(item: object) -> str | None:
    """What an item of a list is called, if it says so: the component whose figures it holds."""
    if not isinstance(item, Mapping):
        return None
    figures = item.get("figures")
    named = figures if isinstance(figures, Mapping) else item
    found = named.get("component")
    return found if isinstance(found, str) else None


def _numbers(value: object, path: str, *, depth: int) -> Iterator[tuple[str, float]]:
    """(dotted path, number) of every number below `value`; a list gives its length."""
    if isinstance(value, bool | int | float):
        if abs(value) < float("inf"):
            yield path or "value", float(value)
    elif isinstance(value, list):
        yield f"{path}.count" if path else "count", float(len(value))
        for item in value[:FIGURES_MAX] if depth < DEPTH_MAX else ():
            if (name := _name(item)) is not None:
                yield from _numbers(item, f"{path}.{name}" if path else name, depth=depth + 1)
    elif isinstance(value, Mapping) and depth < DEPTH_MAX:
        for name, inner in list(value.items())[:FIGURES_MAX]:
            yield from _numbers(inner, f"{path}.{name}" if path else str(name), depth=depth + 1)
