"""A gateway that samples its own main thread: `profiled_gateway.py serve ...` with BENCH_PROFILE.

The kernel's profiling clock interrupts every few milliseconds of CPU; a sample weighs the CPU time
of the main thread since the one before, so the weights add up to it. SIGUSR1 begins anew, SIGUSR2
stops and writes `{cost: seconds}` to the file. Costs: the innermost frame that `PLACES` knows.
"""

import json
import os
import signal
import time
from collections import defaultdict
from functools import cache
from pathlib import Path
from types import FrameType

from gateway.cli import main

INTERVAL_S = 0.004  # the kernel's tick; a smaller one is not served
LOOP = "asyncio/runners.py"
BEGUN = 8  # bytes of code before a function's first line
OTHER = "event loop, sockets and the rest"

# The first match decides: part of the file's path, the function ("" is any), the cost.
PLACES: tuple[tuple[str, str, str], ...] = (
    ("acp_spec/codec/json.py", "encode", "encode"),
    ("acp_spec/codec/json.py", "_scan", "scan"),
    ("acp_spec/codec/json.py", "", "decode"),
    ("acp_spec/codec/scan.py", "", "scan"),
    ("acp_spec/codec/payloads.py", "", "scan"),
    ("acp_spec/codec/leniency.py", "", "decode"),
    ("acp_spec/codec/proto.py", "to_proto", "encode"),
    ("acp_spec/codec/proto.py", "", "decode"),
    ("gateway/engine/views.py", "", "encode"),
    ("gateway/engine/trajectories.py", "", "records"),
    ("gateway/engine/shards.py", "", "journal"),
    ("gateway/rewards/", "", "records"),
    ("gateway/runtime/outbox.py", "", "records"),
    ("gateway/stores/trajectory_log.py", "", "records"),
    ("gateway/stores/", "", "journal"),
    ("gateway/runtime/committer.py", "", "journal"),
    ("gateway/runtime/driver.py", "_append", "journal"),
    ("gateway/governance/", "", "governance"),
    ("gateway/runtime/queueing.py", "", "governance"),
    ("gateway/runtime/absence.py", "", "governance"),
    ("gateway/runtime/executors.py", "admit", "governance"),
    ("gateway/runtime/executors.py", "_ask", "governance"),
    ("gateway/runtime/executors.py", "_started", "governance"),
    ("gateway/runtime/observing.py", "", "telemetry"),
    ("gateway/telemetry/spans.py", "", "call"),  # the attempt's id, made when it is sent
    ("gateway/telemetry/", "", "telemetry"),
    ("prometheus_client/", "", "telemetry"),
    ("gateway/engine/", "", "engine"),
    ("gateway/expressions/", "", "engine"),
    ("gateway/runtime/driver.py", "", "engine"),
    ("gateway/runtime/live.py", "", "engine"),
    ("gateway/runtime/opening.py", "", "engine"),
    ("gateway/transports/http_response.py", "", "encode"),
    ("gateway/transports/http_app.py", "", "receive"),
    ("gateway/transports/http_request.py", "", "receive"),
    ("gateway/transports/http_routes.py", "", "receive"),
    ("gateway/transports/http_server.py", "", "receive"),
    ("gateway/transports/auth.py", "", "receive"),
    ("gateway/transports/routing.py", "", "receive"),
    ("gateway/transports/operations.py", "", "receive"),
    ("gateway/transports/own_failures.py", "", "receive"),
    ("gateway/runtime/service.py", "", "receive"),
    ("acp_spec/sdk/http_protocol.py", "", "receive"),
    ("uvicorn/", "", "receive"),
    ("gateway/transports/", "", "call"),
    ("gateway/runtime/executors.py", "", "call"),
    ("gateway/runtime/context.py", "", "call"),
    ("acp_spec/", "", "call"),
    ("grpc/", "", "call"),
)


class _Profile:
    """CPU seconds of the main thread by cost."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._until = 0.0

    def begin(self, number: int, frame: FrameType | None) -> None:
        self._seconds.clear()
        self._until = time.thread_time()
        signal.setitimer(signal.ITIMER_PROF, INTERVAL_S, INTERVAL_S)

    def sample(self, number: int, frame: FrameType | None) -> None:
        now = time.thread_time()
        self._seconds[_cost_at(frame)] += now - self._until
        self._until = now

    def write(self, number: int, frame: FrameType | None) -> None:
        signal.setitimer(signal.ITIMER_PROF, 0)
        beside = self._path.with_suffix(".part")
        beside.write_text(json.dumps(self._seconds), encoding="utf-8")
        beside.replace(self._path)


def _cost_at(frame: FrameType | None) -> str:
    if frame is not None and _loop_ran(frame):
        return OTHER
    while frame is not None:
        found = _cost_of(frame.f_code.co_filename, frame.f_code.co_name)
        if found:
            return found
        frame = frame.f_back
    return OTHER


def _loop_ran(frame: FrameType) -> bool:
    """Python hears of an interrupt late: at the first line of what the loop's own C code calls."""
    caller = frame.f_back
    called_by_loop = caller is not None and caller.f_code.co_filename.endswith(LOOP)
    return called_by_loop and frame.f_lasti <= BEGUN


@cache
def _cost_of(file: str, function: str) -> str:
    for part, name, cost in PLACES:
        if part in file and name in ("", function):
            return cost
    return ""


def _run() -> None:
    profile = _Profile(Path(os.environ["BENCH_PROFILE"]))
    signal.signal(signal.SIGUSR1, profile.begin)
    signal.signal(signal.SIGUSR2, profile.write)
    signal.signal(signal.SIGPROF, profile.sample)
    main()


if __name__ == "__main__":
    _run()
