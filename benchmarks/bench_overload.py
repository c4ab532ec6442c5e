"""`make bench-overload`: five times what it can do, and it still does what it can (R09).

A real gateway over components of known capacity. First the peak: the best goodput around its
capacity. Then five times the capacity for a while, by clients that do not wait for each other.
Goodput counts sessions that succeeded within their deadline. `--law off` shows what
becomes of it without the gate. The last line is one JSON object.
"""

import argparse
import json
import sys
import time
from contextlib import ExitStack

import uvloop
from figures import load_now
from open_loop import Clients, Run
from pinned import HERE, Bed, ask, cpu_s, gateway, rss_mb, running

# 4 slots of 40 ms are the bottleneck: 100 sessions a second, little for the gateway itself.
PLACES = ("lookup:16:20", "worker:4:40", "store:16:20")
CAPACITY_PER_S = 100.0
DEADLINE_MS = 1_000
PEAK_LOADS = (0.8, 1.0, 1.2)
OVERLOAD = 5.0

WORKFLOW = b"""
workflow: overload
version: 1.0.0
steps:
  - name: find
    role: execute
    component: lookup
    action: lookup.do
    input_mapping: {text: input.text}
  - name: work
    role: execute
    component: worker
    action: worker.do
    input_mapping: {text: find.output.text}
  - name: keep
    role: execute
    component: store
    action: store.do
    input_mapping: {text: work.output.text}
output: keep.output
"""


def main() -> None:
    options = _options()
    environ = {"ACP_OVERLOAD_QUEUE_TARGET_MS": "0"} if options.law == "off" else {}
    before = load_now()
    with ExitStack() as stack:
        bed = stack.enter_context(gateway(environ=environ, is_pinned=False))
        command = [sys.executable, str(HERE / "bounded.py"), *PLACES]
        _, said = stack.enter_context(running(command, core=None))
        prepare(bed, said["http"])
        runs, growth_mb = uvloop.run(_measure(bed, options))
    peak = max(run.goodput_per_s for run in runs[:-1])
    worst = runs[-1]
    unhinted = [one for one in worst.refused() if not one.has_hint]
    if unhinted:
        raise SystemExit(f"{len(unhinted)} refusals without Retry-After")
    print(f"peak {peak:.1f}/s; load average {before} before, {load_now()} after")
    found = {
        "goodput_ratio_at_5x": round(worst.goodput_per_s / peak, 3),
        "admitted_p99_ms": round(worst.admitted_ms(0.99), 1),
        "deadline_ms": DEADLINE_MS,
        "rss_growth_mb": round(growth_mb, 1),
    }
    print(json.dumps(found))


def prepare(bed: Bed, components: str) -> None:
    """Register the places and store the workflow."""
    for place in PLACES:
        url = f"{components}/{place.partition(':')[0]}"
        body = json.dumps({"url": url, "transport": "HTTP", "lease_seconds": 3_600}).encode()
        ask("POST", f"{bed.url}/v1/components", body=body)
    path = f"{bed.url}/v1/workflows/overload/versions/1.0.0"
    ask("PUT", path, body=WORKFLOW, kind="application/yaml")


async def _measure(bed: Bed, options: argparse.Namespace) -> tuple[list[Run], float]:
    clients = Clients(bed.port, workflow="overload", deadline_ms=DEADLINE_MS)
    _say(await clients.run(CAPACITY_PER_S / 2, 3))
    runs = []
    for share in PEAK_LOADS:
        runs.append(await clients.run(CAPACITY_PER_S * share, options.seconds))
        _say(runs[-1])
    _say(await clients.run(CAPACITY_PER_S * OVERLOAD, 5))  # memory is compared within overload
    begun_mb = rss_mb(bed.pid)
    begun_s = cpu_s(bed.pid)
    runs.append(await clients.run(CAPACITY_PER_S * OVERLOAD, 2 * options.seconds))
    share = (cpu_s(bed.pid) - begun_s) / runs[-1].seconds
    print(f"the gateway took {share:.0%} of a core meanwhile", flush=True)
    _say(runs[-1])
    growth_mb = rss_mb(bed.pid) - begun_mb
    clients.close()
    return runs, growth_mb


def _say(run: Run) -> None:
    print(f"{time.strftime('%H:%M:%S')} {run.told()}", flush=True)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10, help="per load; 5x runs twice as long")
    parser.add_argument("--law", choices=["on", "off"], default="on", help="off: nothing is shed")
    return parser.parse_args()


if __name__ == "__main__":
    main()
