"""`make bench-storm`: three levels that each try three times, 27 calls a request; and governed.

A gateway calls `front`, that calls `middle`, that calls `store`: real processes, the same in both
arms; in one governance is off: no breaker, no retry tokens, no gate, and components that try three
times whatever budget they were lent. First the store fails at once: how many calls a request makes.
Then it is out for ten seconds at 80% load: does what comes after succeed again? In the chain it
hangs and works off what still waits; in a third arm, governed, the gateway calls it directly and it
fails at once, so that the breaker opens. The last line is one JSON object, with the worse of both
governed arms.
"""

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from math import inf

import uvloop
from figures import load_now
from open_loop import Clients, Run
from pinned import HERE, Bed, ask, gateway, running

# Two slots of 50 ms: 40 requests a second, so that even the storm is no strain on two cores.
SLOTS_AND_MS = "2:50"
CAPACITY_PER_S = 40.0
LOAD = 0.8
DEADLINE_MS = 5_000
TRY_MS = 400
OUTAGE_S, BEFORE_S, AFTER_S = 10.0, 8.0, 15.0
STORM_S = 10.0
BACK_WITHIN_S = 5.0
BACK = 0.95
WINDOW_S = 3.0
UNGOVERNED, CHAIN, DIRECT = "ungoverned", "governed", "governed-direct"
STEP_S = 0.25

NOTHING_GOVERNED = {
    "ACP_GOVERNANCE_ENABLED": "false",
    "ACP_OVERLOAD_QUEUE_TARGET_MS": "0",
    "ACP_LIMITS_TARGET_CONCURRENCY": "10000",
    "ACP_LIMITS_TARGET_MAX_QUEUED": "100000",
}

WORKFLOW = b"""
workflow: storm
version: 1.0.0
steps:
  - name: ask
    role: execute
    component: front
    action: front.do
    input_mapping: {text: input.text}
output: ask.output
"""


@dataclass(frozen=True, slots=True)
class Place:
    """One arm: its gateway and the store's own address."""

    bed: Bed
    store: str
    name: str
    outage: str

    def store_calls(self) -> int:
        calls: dict[str, int] = json.loads(ask("GET", f"{self.store}/calls"))
        return calls[self.name]

    def store_is(self, how: str) -> None:
        ask("POST", f"{self.store}/{how}", body=b"{}")


@dataclass(slots=True)
class Found:
    """What one arm gave."""

    calls_per_request: float = 0.0
    recovery_s: float = float("inf")
    after_ratio: float = 0.0


@contextmanager
def arm(name: str) -> Iterator[Place]:
    """All processes of one arm."""
    is_governed, is_chain = name != UNGOVERNED, name != DIRECT
    mode = [] if is_governed else ["--naive"]
    with ExitStack() as stack:

        def run(script: str, *words: str) -> str:
            command = [sys.executable, str(HERE / script), *words]
            return stack.enter_context(running(command, core=None))[1]["http"]

        environ = {} if is_governed else NOTHING_GOVERNED
        bed = stack.enter_context(gateway(environ=environ, is_pinned=False))
        last = "store" if is_chain else "front"
        store = front = run("bounded.py", f"{last}:{SLOTS_AND_MS}")
        if is_chain:
            middle = run("relay.py", "middle", f"{store}/store", str(TRY_MS), *mode)
            front = run("relay.py", "front", f"{middle}/middle", str(3 * TRY_MS + 100), *mode)
        request = {"url": f"{front}/front", "transport": "HTTP", "lease_seconds": 3_600}
        ask("POST", f"{bed.url}/v1/components", body=json.dumps(request).encode())
        path = f"{bed.url}/v1/workflows/storm/versions/1.0.0"
        ask("PUT", path, body=WORKFLOW, kind="application/yaml")
        yield Place(bed, store, last, "hang" if is_chain else "down")


async def measure(place: Place, name: str) -> Found:
    clients = Clients(place.bed.port, workflow="storm", deadline_ms=DEADLINE_MS)
    found = Found()
    print(f"{name}: {(await clients.run(CAPACITY_PER_S * LOAD, 2)).told()}")
    await storm(place, clients, found=found, name=name)
    await asyncio.sleep(BACK_WITHIN_S)
    await outage(place, clients, found=found, name=name)
    clients.close()
    return found


async def storm(place: Place, clients: Clients, *, found: Found, name: str) -> None:
    """The store fails at once: calls that reach it, per request."""
    await _off(place, "down")
    before = place.store_calls()
    run = await clients.run(CAPACITY_PER_S * LOAD, STORM_S)
    calls = place.store_calls() - before
    await _off(place, "up")
    found.calls_per_request = calls / len(run.sessions)
    print(f"{name}: {run.told()}")
    print(f"{name}, failing at once: {calls} calls of {len(run.sessions)} requests", flush=True)


async def outage(place: Place, clients: Clients, *, found: Found, name: str) -> None:
    """The store is out for a while: goodput before, and how soon it is that again."""
    loop = asyncio.get_running_loop()
    begin = BEFORE_S + OUTAGE_S
    loop.call_later(BEFORE_S, lambda: loop.create_task(_off(place, place.outage)))
    loop.call_later(begin, lambda: loop.create_task(_off(place, "up")))
    run = await clients.run(CAPACITY_PER_S * LOAD, begin + AFTER_S)
    print(f"{name}: {run.told()}")
    usual = goodput(run, 1.0, end_s=BEFORE_S - DEADLINE_MS / 1000)
    found.after_ratio = goodput(run, begin + BACK_WITHIN_S, end_s=begin + AFTER_S) / usual
    found.recovery_s = recovery_s(run, begin, usual=usual)
    print(
        f"{name}, out for {OUTAGE_S:.0f} s ({place.outage}): {usual:.1f}/s before,"
        f" {goodput(run, BEFORE_S, end_s=begin):.1f}/s meanwhile, then by the second:"
        f" {[round(goodput(run, begin + s, end_s=begin + s + 1)) for s in range(int(AFTER_S))]}",
        flush=True,
    )


def goodput(run: Run, begin_s: float, *, end_s: float) -> float:
    """Of the sessions offered in this time, those that succeeded in theirs, per second."""
    good = [one for one in run.good() if begin_s <= one.at_s < end_s]
    return len(good) / (end_s - begin_s)


def recovery_s(run: Run, begin_s: float, *, usual: float) -> float:
    """How long after the outage three seconds begin that have what was usual, within 5%."""
    steps = int((AFTER_S - WINDOW_S) / STEP_S)
    for at_s in (step * STEP_S for step in range(steps + 1)):
        begin = begin_s + at_s
        if goodput(run, begin, end_s=begin + WINDOW_S) >= BACK * usual:
            return at_s
    return float("inf")


async def _off(place: Place, how: str) -> None:
    await asyncio.to_thread(place.store_is, how)


def main() -> None:
    options = _options()
    before = load_now()
    found: dict[str, Found] = {}
    for name in options.arms:
        with arm(name) as place:
            found[name] = uvloop.run(measure(place, name))
        print(f"{time.strftime('%H:%M:%S')} {name}: {found[name]}", flush=True)
    print(f"load average {before} before, {load_now()} after")
    ungoverned = found.pop(UNGOVERNED, Found())
    recovery_s = max((one.recovery_s for one in found.values()), default=inf)
    told = {
        "ungoverned_calls_per_request": round(ungoverned.calls_per_request, 2),
        "governed_calls_per_request": round(
            max((one.calls_per_request for one in found.values()), default=0.0), 3
        ),
        "recovery_s": None if recovery_s == inf else recovery_s,
        "goodput_after_ratio": round(
            min((one.after_ratio for one in found.values()), default=0.0), 3
        ),
    }
    print(json.dumps(told))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    arms = [UNGOVERNED, CHAIN, DIRECT]
    parser.add_argument("--arms", nargs="*", choices=arms, default=arms)
    return parser.parse_args()


if __name__ == "__main__":
    main()
