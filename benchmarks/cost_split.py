"""Where the CPU of a four-call session goes, over HTTP with 20 in flight.

The main thread is split by a sampling profile inside the gateway (`profiled_gateway.py`), the other
threads are told by name as the kernel counts them. Profiling itself costs some 5 %.
"""

import json
import os
import signal
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from figures import Sample
from pinned import HERE, cpu_s_by_thread, gateway
from traffic import four_calls

WRITTEN_S_MAX = 10.0
# Threads below this share of a session are noise.
LEAST_US = 1.0


def cost_split(seconds: float, *, environ: Mapping[str, str]) -> Iterator[Sample]:
    """Microseconds of CPU a session, by what they were spent on."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "profile.json"
        program = (str(HERE / "profiled_gateway.py"),)
        environ = {**environ, "BENCH_PROFILE": str(path)}
        with gateway("http", environ=environ, program=program) as bed:
            four_calls(bed, connections=20, seconds=seconds / 8)
            before = cpu_s_by_thread(bed.pid)
            os.kill(bed.pid, signal.SIGUSR1)
            sessions = len(four_calls(bed, connections=20, seconds=seconds).latencies_ms)
            os.kill(bed.pid, signal.SIGUSR2)
            after = cpu_s_by_thread(bed.pid)
            main = _written(path)
    by_thread = {name: after[name] - before.get(name, 0.0) for name in after}
    for name, spent_s in sorted(main.items(), key=lambda item: -item[1]):
        yield Sample(f"cost of a session: {name}", spent_s * 1e6 / sessions, "us")
    for name, spent_s in sorted(by_thread.items(), key=lambda item: -item[1]):
        if spent_s * 1e6 / sessions >= LEAST_US:
            yield Sample(f"cost of a session: thread {name}", spent_s * 1e6 / sessions, "us")


def _written(path: Path) -> dict[str, float]:
    until = time.monotonic() + WRITTEN_S_MAX
    while not path.exists():
        if time.monotonic() > until:
            raise SystemExit("the profiled gateway wrote no profile")
        time.sleep(0.05)
    found: dict[str, float] = json.loads(path.read_text(encoding="utf-8"))
    return found
