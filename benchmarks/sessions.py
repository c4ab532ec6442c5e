"""The four-call session over echo components, and durable openings: sessions per second.

`--transport http|grpc|attach` is how the gateway reaches the echo; several are measured in turn,
`--rounds` times, each with a gateway of its own. The gateway is pinned to core 0; echo and load
share core 1.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import uvloop
from load import Measured, closed_loop, post

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
INPUT = {"text": "x" * 600, "amount": 9007199254740993}
TRANSPORTS = ("http", "grpc", "attach")
TICKS = os.sysconf("SC_CLK_TCK")


def start(command: list[str], core: int, environment: dict[str, str]) -> subprocess.Popen[bytes]:
    """A process on one core that prints a ready line."""
    pinned = ["taskset", "-c", str(core), *command]
    return subprocess.Popen(
        pinned,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, **environment},
    )


def ready(process: subprocess.Popen[bytes]) -> dict[str, object]:
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith(b"{"):
            found: dict[str, object] = json.loads(line)
            return found
    raise SystemExit("a process ended before it was ready")


def call(method: str, url: str, body: bytes, kind: str = "application/json") -> bytes:
    request = urllib.request.Request(url, body, {"content-type": kind}, method=method)
    with urllib.request.urlopen(request, timeout=10) as answer:
        data: bytes = answer.read()
        return data


def cpu_seconds(pid: int) -> float:
    """User and system time of all threads of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


async def measure(port: int, pid: int, *, connections: int, seconds: float) -> dict[str, float]:
    body = json.dumps({"workflow": "four", "input": INPUT}).encode()
    request = post("/v1/sessions", body, headers="prefer: wait=20\r\n")
    before = cpu_seconds(pid)
    measured = await closed_loop(port, lambda n: request, connections=connections, seconds=seconds)
    check(measured, b'"SUCCEEDED"', 200)
    return figures(measured, cpu_seconds(pid) - before)


async def measure_open(
    port: int, pid: int, *, connections: int, seconds: float
) -> dict[str, float]:
    def make(number: int) -> bytes:
        key = f"{connections}-{time.time_ns()}-{number}"
        text = json.dumps({"workflow": "four", "mode": "MANUAL", "session_key": key, "input": 1})
        return post("/v1/sessions", text.encode())

    before = cpu_seconds(pid)
    measured = await closed_loop(port, make, connections=connections, seconds=seconds)
    check(measured, b'"session_id"', 201)
    return figures(measured, cpu_seconds(pid) - before)


def check(measured: Measured, text: bytes, status: int) -> None:
    good = measured.statuses.get(status, 0)
    if good != len(measured.latencies_ms) or text not in measured.last_body:
        print(measured.statuses, measured.last_body[:500], file=sys.stderr)


def figures(measured: Measured, cpu_s: float) -> dict[str, float]:
    return {
        "per_second": round(measured.per_second, 1),
        "p50_ms": round(measured.percentile(0.5), 2),
        "p99_ms": round(measured.percentile(0.99), 2),
        "cpu_us": round(cpu_s * 1e6 / max(1, len(measured.latencies_ms)), 1),
        "core_busy": round(cpu_s / measured.seconds, 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--connections", type=int, nargs="*", default=[1, 20, 64])
    parser.add_argument("--transport", nargs="*", choices=TRANSPORTS, default=["http"])
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--open", action="store_true", help="also measure durable openings")
    parser.add_argument("--set", action="append", default=[], help="ENV=value for the gateway")
    options = parser.parse_args()
    own_core = os.sched_getaffinity(0)
    for _ in range(options.rounds):
        for transport in options.transport:
            os.sched_setaffinity(0, own_core)
            print(json.dumps({"transport": transport, **measured(transport, options)}), flush=True)


def measured(transport: str, options: argparse.Namespace) -> dict[str, object]:
    """All figures of one gateway whose components are reached in this way."""
    settings = dict(pair.split("=", 1) for pair in options.set)
    results: dict[str, object] = {}
    with tempfile.TemporaryDirectory() as directory:
        command = [sys.executable, "-m", "gateway", "serve", "--data-dir", directory]
        gateway = start([*command, "--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0"], 0, settings)
        processes = [gateway]
        try:
            said = ready(gateway)
            base = str(said["http"])
            processes.append(start_echo(transport, base, str(said["grpc"])))
            call("PUT", f"{base}/v1/workflows/four/versions/1.0.0", WORKFLOW, "application/yaml")
            os.sched_setaffinity(0, {1})
            port = int(base.rsplit(":", 1)[1])
            for connections in options.connections:
                results[f"four_calls_c{connections}"] = uvloop.run(
                    measure(port, gateway.pid, connections=connections, seconds=options.seconds)
                )
            if options.open:
                results["open_c64"] = uvloop.run(
                    measure_open(port, gateway.pid, connections=64, seconds=options.seconds)
                )
            return {**results, "rss_mb": rss_mb(gateway.pid), "load": os.getloadavg()[0]}
        finally:
            for process in processes:
                process.terminate()
                process.wait(20)


def start_echo(transport: str, base: str, place: str) -> subprocess.Popen[bytes]:
    """An echo component that the gateway at `base` (gRPC: `place`) knows."""
    here = Path(__file__).parent
    command = [sys.executable, str(here / ("echo.py" if transport == "http" else "grpc_echo.py"))]
    if transport == "attach":
        command.append(place)
    echo = start(command, 1, {})
    said = ready(echo)
    if transport != "attach":
        request = {
            "url": said[transport],
            "transport": transport.upper(),
            "lease_seconds": 3600,
        }
        call("POST", f"{base}/v1/components", json.dumps(request).encode())
    return echo


def rss_mb(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return round(pages * os.sysconf("SC_PAGE_SIZE") / 2**20, 1)


if __name__ == "__main__":
    main()
