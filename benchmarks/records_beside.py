"""What the records cost the gateway they stand beside: p99 and CPU of a session, with and without.

The gateway is alone on core 0, at 60 % of its peak without records; components, load and the
records' process share core 1. The loss at the peak itself is told as well.
"""

import json
import os
import time
from pathlib import Path

import uvloop
from open_loop import Clients
from pinned import OTHER_CORE, Bed, ask, cpu_s, gateway, stay_beside_the_gateway
from traffic import four_calls

SHARE = 0.6
WARM_SESSIONS, CONNECTIONS = 400, 20
DEADLINE_MS = 20_000


def beside(seconds: float) -> dict[str, float]:
    """The ratios: with records over without."""
    stay_beside_the_gateway()
    alone = _measured("first_use", seconds, rate=0.0)
    both = _measured("with_gateway", seconds, rate=alone["rate"])
    return {
        "gateway_p99_ratio": both["p99_ms"] / alone["p99_ms"],
        "gateway_cpu_ratio": both["cpu_s"] / alone["cpu_s"],
        "gateway_peak_ratio": both["peak"] / alone["peak"],
        "gateway_rate_per_s": alone["rate"],
    }


def _measured(start: str, seconds: float, *, rate: float) -> dict[str, float]:
    with gateway("http", environ={"ACP_RECORDS_START": start}) as bed:
        if start == "with_gateway":
            _move_away(bed)
        four_calls(bed, connections=CONNECTIONS, sessions=WARM_SESSIONS)
        peak = four_calls(bed, connections=CONNECTIONS, seconds=seconds).per_second
        rate = rate or peak * SHARE
        before = cpu_s(bed.pid)
        run = uvloop.run(_offered(bed, rate, seconds=seconds))
        used = cpu_s(bed.pid) - before
        return {
            "peak": peak,
            "rate": rate,
            "p99_ms": run[1],
            "cpu_s": used / run[0],
        }


async def _offered(bed: Bed, rate: float, *, seconds: float) -> tuple[int, float]:
    """Sessions that ended well, and their p99."""
    clients = Clients(bed.port, workflow="four", deadline_ms=DEADLINE_MS)
    run = await clients.run(rate, seconds)
    clients.close()
    return len(run.good()), run.admitted_ms(0.99)


def _move_away(bed: Bed) -> None:
    """The records' process, all its threads, to the other core."""
    while "feed" not in (found := json.loads(ask("GET", f"{bed.url}/v1/records/status"))):
        time.sleep(0.1)
    for task in Path(f"/proc/{found['feed']['pid']}/task").iterdir():
        os.sched_setaffinity(int(task.name), {OTHER_CORE})
