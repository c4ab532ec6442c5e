"""What callers notice of a shadow: their times with the rollout running and paused, block by block.

One gateway, two components that are Python programs, `SHARE` of the sessions with a twin (as in
SHADOW by default). Blocks alternate: a busy machine is busy for both. JSON on the last line.
"""

import json
import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import Final

from gateway.tests.e2e.client import Client
from gateway.tests.governance.desk import Desk, desk, good, small
from gateway.tests.served import serve_gateway

BLOCKS: Final = 12
CALLERS: Final = 150
SHARE: Final = 0.05


def served_ms(one: Desk) -> list[float]:
    times = []
    for _ in range(CALLERS):
        begin = time.perf_counter()
        one.serve()
        times.append((time.perf_counter() - begin) * 1000)
    return times


def measured(one: Desk) -> dict[str, object]:
    one.hire("2.0.0", good)
    stage = {"share": SHARE, "min_samples": 10**6}
    rules = {**small(), "canary": stage, "shadow": stage}
    rollout = one.start(**rules)
    one.order(rollout, "promote")
    served_ms(one)  # connections are warm
    beside: list[float] = []
    alone: list[float] = []
    for number in range(BLOCKS):
        one.order(rollout, "resume" if number % 2 else "pause")
        (beside if number % 2 else alone).extend(served_ms(one))
    view = one.rollout(rollout)
    return {
        "share": SHARE,
        "callers": len(beside) + len(alone),
        "twins": view["candidates"],
        "dropped": view.get("dropped", 0),
        **figures("alone", alone),
        **figures("beside", beside),
        "load": round(os.getloadavg()[0], 2),
    }


def figures(name: str, times: list[float]) -> dict[str, float]:
    ordered = sorted(times)
    return {
        f"{name}_p50_ms": round(statistics.median(ordered), 2),
        f"{name}_p99_ms": round(ordered[int(len(ordered) * 0.99)], 2),
    }


def main() -> None:
    folder = Path(tempfile.mkdtemp(prefix="twins-"))
    served = serve_gateway(data_dir=folder / "data", log_file=folder / "log", environ={})
    try:
        with Client(served.url) as client, desk(client, "bench") as one:
            print(json.dumps(measured(one)))
    finally:
        served.stop()


if __name__ == "__main__":
    main()
