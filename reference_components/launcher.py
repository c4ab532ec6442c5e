"""Builds, starts, watches and stops the reference components; demo, tests and benchmarks use it.

    with Launcher(build_dir, log_dir) as launcher:
        for spec in launcher.available():
            running = launcher.start(spec.name)     # serves at running.url

A component is a process of its own: it gets `ACP_PORT`, its output goes to a log file, it is ended
by its process id (SIGTERM, after some grace SIGKILL). What is not installed is named, not hidden.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from types import TracebackType
from typing import Self

from acp_spec.model.enums import Transport
from acp_spec.sdk.kept_ports import KeptPorts
from reference_components.build import LOG_TAIL_CHARS, Builder, default_build_dir, fill
from reference_components.readiness import is_serving
from reference_components.recipe import ComponentSpec, recipes
from reference_components.undisturbed import undisturbed

READY_TIMEOUT_S = 30.0  # a JVM on a busy two-core machine was seen to need 6 s
READY_POLL_S = 0.05  # also how soon a process that died is noticed
STOP_GRACE_S = 5.0
START_TRIES = 2  # the second only when somebody who knows of no kept port took it in between
SCHEMES = {Transport.HTTP: "http", Transport.GRPC: "grpc"}


class LaunchError(Exception):
    """A component that did not start; the message names its log and quotes the end of it."""


@dataclass(frozen=True, slots=True)
class Missing:
    """A tool that is not installed, for a component that needs it."""

    name: str
    tool: str
    package: str


class Running:
    """One started component: where it serves, and the handle to end it."""

    def __init__(
        self, spec: ComponentSpec, process: subprocess.Popen[bytes], *, port: int, log_file: Path
    ) -> None:
        self.spec = spec
        self.name = spec.name
        self.port = port
        self.url = f"{SCHEMES[spec.transport]}://127.0.0.1:{port}"
        self.pid = process.pid
        self.log_file = log_file
        self._process = process

    @property
    def is_alive(self) -> bool:
        """True while the process runs."""
        return self._process.poll() is None

    def ask_to_stop(self) -> None:
        """Send SIGTERM and return at once."""
        if self.is_alive:
            self._process.send_signal(signal.SIGTERM)

    def stop(self, grace_s: float = STOP_GRACE_S) -> int:
        """End the process, kindly first; returns its exit status. Harmless when it has ended."""
        self.ask_to_stop()
        try:
            return self._process.wait(grace_s)
        except subprocess.TimeoutExpired:
            return self.kill()

    def kill(self) -> int:
        """End the process at once with SIGKILL, as a crash would; returns its exit status."""
        if self.is_alive:
            self._process.kill()
        return self._process.wait()

    def wait_until_ready(self, timeout_s: float = READY_TIMEOUT_S) -> None:
        """Return when it serves; raises LaunchError when it died or took too long."""
        deadline = time.monotonic() + timeout_s
        while not is_serving(self.spec, self.port):
            with contextlib.suppress(subprocess.TimeoutExpired):
                status = self._process.wait(READY_POLL_S)
                raise LaunchError(f"{self.name} ended with status {status}; {self.last_words()}")
            if time.monotonic() > deadline:
                raise LaunchError(f"{self.name} is not ready in {timeout_s} s; {self.last_words()}")

    def last_words(self) -> str:
        """Where the log is and how it ends, for messages."""
        end = self.log_file.read_bytes()[-LOG_TAIL_CHARS:].decode(errors="replace")
        return f"log {self.log_file}:\n{end}"


class Launcher:
    """Starts components by name. Leaving its context stops all of them, the last started first."""

    def __init__(
        self,
        build_dir: Path | None = None,
        log_dir: Path | None = None,
        *,
        state_dir: Path | None = None,
    ) -> None:
        """`state_dir` holds what components keep (default: `state` below `log_dir`)."""
        self._specs = {spec.name: spec for spec in recipes()}
        self._build_dir = build_dir if build_dir is not None else default_build_dir()
        self._builder = Builder(self._build_dir)
        self._log_dir = log_dir or Path(tempfile.mkdtemp(prefix="acp-components-"))
        self._state_dir = state_dir or self._log_dir / "state"
        self._running: list[Running] = []
        self._ports = KeptPorts()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def spec(self, name: str) -> ComponentSpec:
        """The recipe of that name; raises LaunchError naming those that exist."""
        try:
            return self._specs[name]
        except KeyError:
            known = ", ".join(self._specs)
            raise LaunchError(f"no component is named {name!r}; there are: {known}") from None

    def available(self) -> list[ComponentSpec]:
        """Components whose tools are all installed."""
        lacking = {missing.name for missing in self.missing()}
        return [spec for spec in self._specs.values() if spec.name not in lacking]

    def missing(self) -> list[Missing]:
        """Every tool that is not on PATH, with the Debian package that brings it."""
        return [
            Missing(spec.name, tool.command, tool.package)
            for spec in self._specs.values()
            for tool in spec.needs
            if shutil.which(tool.command) is None
        ]

    def is_built(self, name: str) -> bool:
        """False when `start` will first have to build, which can take a minute."""
        return self._builder.is_built(self.spec(name))

    def build(self, name: str) -> Path:
        """Build when the sources changed; returns the folder. Raises LaunchError, BuildError."""
        spec = self.spec(name)
        for lack in self.missing():
            if lack.name == name:
                raise LaunchError(f"{name} needs {lack.tool}: apt-get install {lack.package}")
        return self._builder.build(spec)

    def start(
        self,
        name: str,
        *,
        instance: str = "",
        port: int = 0,
        env: Mapping[str, str] | None = None,
    ) -> Running:
        """Build if needed, start, wait until it serves.

        `instance` tells replicas apart: each has its own log and state. `port` 0 = a free one.
        A start with the same name and instance finds the state of the one before.
        """
        place = self.build(name)
        for tries_left in reversed(range(START_TRIES)):
            running = self._spawn(self.spec(name), place, instance=instance, port=port, env=env)
            try:
                running.wait_until_ready()
            except LaunchError as problem:
                running.kill()
                if port or not tries_left or not _is_port_taken(problem):
                    raise
            else:
                return running
        raise AssertionError("the loop returns or raises")

    def stop(self) -> None:
        """Stop all that was started; first everybody is asked, then waited for."""
        for running in reversed(self._running):
            running.ask_to_stop()
        for running in reversed(self._running):
            running.stop()
        self._running.clear()
        self._ports.close()

    def _spawn(
        self,
        spec: ComponentSpec,
        place: Path,
        *,
        instance: str,
        port: int,
        env: Mapping[str, str] | None,
    ) -> Running:
        label = f"{spec.name}-{instance}" if instance else spec.name
        state = (self._state_dir / label).resolve()
        state.mkdir(parents=True, exist_ok=True)
        port = port or self._ports.take()
        values = {
            "build": str(place.resolve()),
            "state": str(state),
            "python": sys.executable,
            "port": str(port),
        }
        environment = {name: fill(value, values) for name, value in spec.env.items()}
        self._log_dir.mkdir(parents=True, exist_ok=True)
        log_file = self._log_dir / f"{label}.log"
        with log_file.open("ab") as log, undisturbed():
            process = subprocess.Popen(
                [fill(part, values) for part in spec.run],
                cwd=state,
                env={**os.environ, **_own_environment(port), **environment, **(env or {})},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # a Ctrl-C reaches the launcher only, which then stops us
            )
            running = Running(spec, process, port=port, log_file=log_file)
            self._running.append(running)
        return running


def _own_environment(port: int) -> dict[str, str]:
    """What every component gets; Python ones find our packages also in a checkout."""
    root = str(Path(str(files("reference_components"))).parent)
    paths = [root, *filter(None, [os.environ.get("PYTHONPATH")])]
    return {"ACP_PORT": str(port), "PYTHONPATH": os.pathsep.join(paths)}


def _is_port_taken(problem: LaunchError) -> bool:
    text = str(problem).lower()
    return "address already in use" in text or "eaddrinuse" in text
