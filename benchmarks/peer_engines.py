"""The other engines, started for one measurement: on loopback, on free ports, stopped at the end.

Each is in its fastest setting that still survives a killed process, and none is pinned to a core.
"""

import json
import os
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.error
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

from peer_home import HOME, PYTHON, VENV, Unavailable
from pinned import HERE, ask

PEERS = HERE / "peers"
START_S_MAX = 60.0
STOP_S_MAX = 5
RESTATE_PARTITIONS = "4"  # tried on two cores: 24 (its default) 180/s, 4 280/s, 2 250/s at 20
POSTGRES = Path("/usr/lib/postgresql")
POSTGRES_USER = "postgres"  # a database server does not run as root

Engine = Callable[[str, Path], AbstractContextManager[str]]
"""`engine(echo_url, directory)`: it runs inside the block; gives the place for the driver."""


@contextmanager
def temporal(echo: str, directory: Path) -> Iterator[str]:
    """The dev server over a file. Write-ahead logging without a sync per commit is its fastest."""
    port = free_port()
    command = [str(VENV / "bin" / "temporal"), "server", "start-dev", "--headless"]
    command += ["--ip", "127.0.0.1", "--port", str(port), "--log-level", "error"]
    command += ["--db-filename", str(directory / "temporal.db")]
    for pragma in ("journal_mode=wal", "synchronous=1"):
        command += ["--sqlite-pragma", pragma]
    with _process(command):
        _listening(port)
        yield f"127.0.0.1:{port}"


@contextmanager
def restate(echo: str, directory: Path) -> Iterator[str]:
    """One node, and the service behind hypercorn; it listens everywhere unless told not to."""
    service, ingress, admin, node = (free_port() for _ in range(4))
    environ = {
        "RESTATE_LISTEN_MODE": "tcp",
        "RESTATE_BIND_IP": "127.0.0.1",
        "RESTATE_BIND_PORT": str(node),
        "RESTATE_INGRESS__BIND_PORT": str(ingress),
        "RESTATE_ADMIN__BIND_PORT": str(admin),
        "RESTATE_DEFAULT_NUM_PARTITIONS": RESTATE_PARTITIONS,
        "RESTATE_DISABLE_TELEMETRY": "true",
        "RESTATE_LOG_FILTER": "error",
    }
    server = [str(HOME / "node_modules" / ".bin" / "restate-server")]
    endpoint = [str(VENV / "bin" / "hypercorn"), "restate_service:app", "--worker-class", "uvloop"]
    with ExitStack() as stack:
        stack.enter_context(_process([*server, "--base-dir", str(directory)], environ=environ))
        binds = ["--bind", f"127.0.0.1:{service}"]
        environ = {"BENCH_ECHO": echo, "PYTHONPATH": str(PEERS)}
        stack.enter_context(_process([*endpoint, *binds], environ=environ))
        _listening(service)
        _listening(ingress)
        _deploy(f"http://127.0.0.1:{admin}/deployments", f"http://127.0.0.1:{service}")
        yield f"http://127.0.0.1:{ingress}"


def _deploy(url: str, service: str) -> None:
    """Tell the server where the service is; it may not be ready to hear it yet."""
    body = json.dumps({"uri": service}).encode()
    until = time.monotonic() + START_S_MAX
    while True:
        try:
            ask("POST", url, body=body)
            return
        except urllib.error.URLError as problem:
            if time.monotonic() > until:
                raise Unavailable(f"its service was not taken: {problem}") from None
            time.sleep(0.5)


@contextmanager
def dbos(echo: str, directory: Path) -> Iterator[str]:
    """On PostgreSQL with its defaults (every commit synced) where there is one, else SQLite."""
    versions = sorted(POSTGRES.glob("*/bin")) if POSTGRES.is_dir() else []
    if not versions:
        yield f"sqlite:///{directory / 'dbos.db'}"
        return
    binaries, data, port = versions[-1], directory / "data", free_port()
    shutil.chown(directory, POSTGRES_USER)
    initdb = [str(binaries / "initdb"), "-D", str(data), "-A", "trust", "-U", "bench"]
    subprocess.run(initdb, check=True, capture_output=True, user=POSTGRES_USER, cwd="/")
    server = [str(binaries / "postgres"), "-D", str(data), "-p", str(port), "-h", "127.0.0.1"]
    with _process([*server, "-k", str(directory)], user=POSTGRES_USER):
        _listening(port)
        yield f"postgresql://bench@127.0.0.1:{port}/bench"


ENGINES: dict[str, Engine] = {"temporal": temporal, "restate": restate, "dbos": dbos}


def driven(
    peer: str, echo: str, *, in_flight: tuple[int, ...], seconds: float
) -> list[Mapping[str, float]]:
    """What the peer's driver measured, one mapping per width. Raises Unavailable."""
    driver = [str(PYTHON), str(PEERS / f"{peer}_job.py"), "--echo", echo]
    driver += ["--seconds", str(seconds), "--in-flight", *map(str, in_flight)]
    limit_s = START_S_MAX + len(in_flight) * (seconds + START_S_MAX)
    with ExitStack() as stack:
        directory = stack.enter_context(tempfile.TemporaryDirectory())
        driver += ["--engine", stack.enter_context(ENGINES[peer](echo, Path(directory)))]
        try:
            done = subprocess.run(driver, check=False, capture_output=True, timeout=limit_s)
        except subprocess.TimeoutExpired:
            raise Unavailable(f"its driver did not end within {limit_s:g} s") from None
    lines = [line for line in done.stdout.splitlines() if line.startswith(b"{")]
    if len(lines) != len(in_flight):
        raise Unavailable(f"its driver failed: {done.stderr.decode(errors='replace')[-400:]}")
    return [json.loads(line) for line in lines]


@contextmanager
def _process(
    command: list[str], *, environ: Mapping[str, str] | None = None, user: str | None = None
) -> Iterator[None]:
    """A server; terminated at the end, and killed if it will not go (hypercorn does not)."""
    process = subprocess.Popen(
        command,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, **(environ or {})},
        user=user,
        cwd="/",
    )
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(STOP_S_MAX)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


def _listening(port: int) -> None:
    until = time.monotonic() + START_S_MAX
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            if time.monotonic() > until:
                raise Unavailable(f"nothing listens on port {port}") from None
            time.sleep(0.1)
