"""The processes of a bench: a gateway on core 0, its components on core 1, each stopped at the end.

Figures of a process (CPU, memory) are read from the kernel, not asked of it.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
GATEWAY_CORE, OTHER_CORE = 0, 1
TICKS = os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
# Well over the gateway's own drain grace.
STOP_S_MAX = 30
LEASE_S = 36_000

WORKFLOW = b"""
workflow: four
version: 1.0.0
steps:
  - {name: plan, role: plan, component: bench-echo}
  - {name: act, role: execute, plan: plan}
  - {name: remember, role: observe, component: bench-echo}
  - {name: judge, role: reflect, component: bench-echo}
output: act.results[0].output
"""

Process = subprocess.Popen[bytes]


@dataclass(frozen=True, slots=True)
class Bed:
    """A gateway with its echo component. `echo` is the component's own address, if it has one."""

    pid: int
    url: str
    echo: str
    ready_s: float

    @property
    def port(self) -> int:
        return port_of(self.url)


def port_of(url: str) -> int:
    return int(url.rsplit(":", 1)[1])


def stay_beside_the_gateway() -> None:
    """This process generates load: on the core of the components."""
    os.sched_setaffinity(0, {OTHER_CORE})


@contextmanager
def running(
    command: list[str], *, core: int | None, environ: Mapping[str, str] | None = None
) -> Iterator[tuple[Process, dict[str, str]]]:
    """A process on one core (None: on any), with the JSON line it printed once it was ready."""
    pinned = [] if core is None else ["taskset", "-c", str(core)]
    process = subprocess.Popen(
        [*pinned, *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, **(environ or {})},
    )
    try:
        yield process, _ready(process)
    finally:
        stop(process)


def stop(process: Process) -> None:
    """SIGTERM; killed if that is not enough."""
    process.terminate()
    try:
        process.wait(STOP_S_MAX)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _ready(process: Process) -> dict[str, str]:
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith(b"{"):
            said: dict[str, str] = json.loads(line)
            return said
    raise SystemExit(f"{process.args!r} ended before it was ready")


@contextmanager
def gateway(
    transport: str = "",
    *,
    directory: Path | None = None,
    environ: Mapping[str, str] | None = None,
    program: tuple[str, ...] = ("-m", "gateway"),
    is_pinned: bool = True,
) -> Iterator[Bed]:
    """A gateway, with the echo component on `transport` (http, grpc, attach; empty: alone)."""
    own_core, other_core = (GATEWAY_CORE, OTHER_CORE) if is_pinned else (None, None)
    with ExitStack() as stack:
        if directory is None:
            directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        command = [sys.executable, *program, "serve", "--data-dir", str(directory)]
        begin = time.perf_counter()
        process, said = stack.enter_context(
            running(
                [*command, "--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0"],
                core=own_core,
                environ=environ,
            )
        )
        ready_s = time.perf_counter() - begin
        echo = ""
        if transport:
            echo = stack.enter_context(_echo(transport, said, core=other_core))
            path = f"{said['http']}/v1/workflows/four/versions/1.0.0"
            ask("PUT", path, body=WORKFLOW, kind="application/yaml")
        yield Bed(pid=process.pid, url=said["http"], echo=echo, ready_s=ready_s)


@contextmanager
def _echo(transport: str, gateway_said: Mapping[str, str], *, core: int | None) -> Iterator[str]:
    """An echo component that this gateway knows."""
    script = "echo.py" if transport == "http" else "grpc_echo.py"
    command = [sys.executable, str(HERE / script)]
    if transport == "attach":
        command.append(gateway_said["grpc"])
    with running(command, core=core) as (_, said):
        if transport != "attach":
            request = {
                "url": said[transport],
                "transport": transport.upper(),
                "lease_seconds": LEASE_S,
            }
            body = json.dumps(request).encode()
            ask("POST", f"{gateway_said['http']}/v1/components", body=body)
        yield said.get(transport, "")


def ask(
    method: str, url: str, *, body: bytes | None = None, kind: str = "application/json"
) -> bytes:
    """One request whose answer is no error."""
    request = urllib.request.Request(url, body, {"content-type": kind}, method=method)
    with urllib.request.urlopen(request, timeout=20) as answer:
        data: bytes = answer.read()
        return data


def cpu_s(pid: int) -> float:
    """User and system time of all threads of a process."""
    return _times(Path(f"/proc/{pid}/stat"))


def cpu_s_by_thread(pid: int) -> dict[str, float]:
    """The same by the name of the thread, the main one as `main`; threads of one name together."""
    found: dict[str, float] = {}
    for task in Path(f"/proc/{pid}/task").iterdir():
        name = "main" if task.name == str(pid) else (task / "comm").read_text().strip()
        found[name] = found.get(name, 0.0) + _times(task / "stat")
    return found


def _times(stat: Path) -> float:
    fields = stat.read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def rss_mb(pid: int) -> float:
    """Resident memory, shared pages included."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE_BYTES / 2**20
