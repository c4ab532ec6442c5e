"""The four-call session over HTTP echo components, and durable openings: sessions per second.

The gateway is pinned to core 0; echo and load share core 1. `python benchmarks/sessions.py --json`.
"""

import argparse
import asyncio
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
    parser.add_argument("--open", action="store_true", help="also measure durable openings")
    parser.add_argument("--set", action="append", default=[], help="ENV=value for the gateway")
    options = parser.parse_args()
    here = Path(__file__).parent
    settings = dict(pair.split("=", 1) for pair in options.set)
    with tempfile.TemporaryDirectory() as directory:
        echo = start([sys.executable, str(here / "echo.py")], 1, {})
        command = [sys.executable, "-m", "gateway", "serve", "--data-dir", directory]
        gateway = start([*command, "--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0"], 0, settings)
        try:
            base = str(ready(gateway)["http"])
            url = str(ready(echo)["http"])
            register = json.dumps({"url": url, "lease_seconds": 3600}).encode()
            call("POST", f"{base}/v1/components", register)
            call("PUT", f"{base}/v1/workflows/four/versions/1.0.0", WORKFLOW, "application/yaml")
            os.sched_setaffinity(0, {1})
            port = int(base.rsplit(":", 1)[1])
            results = {}
            for connections in options.connections:
                results[f"four_calls_c{connections}"] = uvloop.run(
                    measure(port, gateway.pid, connections=connections, seconds=options.seconds)
                )
            if options.open:
                results["open_c64"] = uvloop.run(
                    measure_open(port, gateway.pid, connections=64, seconds=options.seconds)
                )
            results["rss_mb"] = rss_mb(gateway.pid)
            results["load"] = os.getloadavg()[0]
            print(json.dumps(results))
        finally:
            for process in (gateway, echo):
                process.terminate()
                process.wait(20)


def rss_mb(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return round(pages * os.sysconf("SC_PAGE_SIZE") / 2**20, 1)


if __name__ == "__main__":
    main()
