"""A real `acp serve` process for end-to-end tests: started on free ports, ended by its own pid.

Use it through the fixture `serve` of the root conftest; it must not know anything of the gateway
but its command line and its JSON line on standard output.
"""

import json
import os
import selectors
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import IO

# Imports and opening the journal take about 2 s here; a shared core may triple that.
READY_SECONDS_MAX = 30.0
# Over the gateway's own drain grace, so that a clean stop is never cut off.
STOP_SECONDS_MAX = 20.0
LOG_TAIL_CHARACTERS = 4_000


@dataclass(frozen=True, slots=True)
class Served:
    """One running gateway; `http` and `grpc` are addresses as `host:port`."""

    process: subprocess.Popen[bytes]
    http: str
    grpc: str
    data_dir: Path
    log_file: Path

    @property
    def url(self) -> str:
        """Base URL of the HTTP side."""
        return f"http://{self.http}"

    @property
    def pid(self) -> int:
        """The process that listens."""
        return self.process.pid

    def kill(self) -> None:
        """Kill -9, as a power cut of the process would."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait(STOP_SECONDS_MAX)
        self._close()

    def _close(self) -> None:
        if self.process.stdout is not None:
            self.process.stdout.close()

    def stop(self) -> int:
        """SIGTERM and the exit status; kills if the gateway does not end in time."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            status = self.process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self.kill()
            status = self.process.wait()
        self._close()
        return status

    def log(self) -> str:
        """What the gateway wrote on standard error so far."""
        return self.log_file.read_text(encoding="utf-8", errors="replace")


def serve_gateway(
    *flags: str,
    data_dir: Path,
    log_file: Path,
    environ: Mapping[str, str],
    acp: Path = Path(sys.executable).parent / "acp",
) -> Served:
    """Start a gateway and wait for its ready line; raises AssertionError with the log's end."""
    command = [
        *(str(acp), "serve", "--data-dir", str(data_dir)),
        *("--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0", *flags),
    ]
    with log_file.open("wb") as log:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            env={**os.environ, **environ},
        )
    assert process.stdout is not None
    line = _first_line(process.stdout)
    try:
        ready = json.loads(line)
        assert ready["ready"] is True
    except (ValueError, KeyError, TypeError, AssertionError):
        process.kill()
        process.wait()
        tail = log_file.read_text(encoding="utf-8", errors="replace")[-LOG_TAIL_CHARACTERS:]
        raise AssertionError(f"acp serve did not get ready; it said {line!r}\n{tail}") from None
    return Served(process, _address(ready["http"]), _address(ready["grpc"]), data_dir, log_file)


def _address(text: str) -> str:
    """`host:port`, whether or not the ready line has a scheme in front."""
    return text.rpartition("//")[2].rstrip("/")


def _first_line(stream: IO[bytes]) -> bytes:
    """The first line, or what there is of it when time is up or the stream ends."""
    until = monotonic() + READY_SECONDS_MAX
    received = b""
    with selectors.DefaultSelector() as selector:
        selector.register(stream, selectors.EVENT_READ)
        while b"\n" not in received and selector.select(max(0.0, until - monotonic())):
            chunk = os.read(stream.fileno(), 4096)
            if not chunk:
                break
            received += chunk
    return received.partition(b"\n")[0]
