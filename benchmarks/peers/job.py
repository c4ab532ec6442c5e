"""The job that every engine does: four steps, each one POST to the echo component.

Runs in the peers' own environment, where only their libraries are. `measured` is the closed loop
around an engine: it keeps N jobs in flight and prints what came of it as one JSON line.
"""

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
from load import Measured, answer, post

STEPS = ("plan", "act", "remember", "judge")
INPUT = {"text": "x" * 600, "amount": 9007199254740993}
REQUEST = post("/acp/v1/execute", json.dumps({"arguments": INPUT}).encode())
WARM_UP = 40

Job = Callable[[int], Awaitable[object]]


class Echo:
    """Keep-alive connections to the component, as cheap as the load generator's own."""

    def __init__(self, url: str) -> None:
        self._port = int(url.rsplit(":", 1)[1])
        self._idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def post(self) -> str:
        """One step: the component's answer as text."""
        if self._idle:
            connection = self._idle.pop()
        else:
            connection = await asyncio.open_connection("127.0.0.1", self._port)
        reader, writer = connection
        writer.write(REQUEST)
        status, body = await answer(reader)
        if status != 200:
            raise RuntimeError(f"the component answered {status}")
        self._idle.append(connection)
        return body.decode()


def options() -> argparse.Namespace:
    """What every driver of a peer is told."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--echo", required=True, help="URL of the component")
    parser.add_argument("--engine", default="", help="where the engine listens")
    parser.add_argument("--in-flight", type=int, nargs="*", default=[20, 64])
    parser.add_argument("--seconds", type=float, default=8.0)
    return parser.parse_args()


async def measured(job: Job, told: argparse.Namespace) -> None:
    """Warm up, then measure every width, and print one line for each."""
    await _loop(job, in_flight=min(told.in_flight), jobs=WARM_UP)
    for in_flight in told.in_flight:
        result = await _loop(job, in_flight=in_flight, seconds=told.seconds)
        line = {
            "in_flight": in_flight,
            "per_second": result.per_second,
            "p50_ms": result.percentile(0.5),
            "p99_ms": result.percentile(0.99),
        }
        print(json.dumps(line), flush=True)


async def _loop(job: Job, *, in_flight: int, seconds: float = 0.0, jobs: int = 0) -> Measured:
    result = Measured()
    begin = time.perf_counter()
    until = begin + seconds if seconds else float("inf")
    numbers = iter(range(jobs or 1 << 62))

    async def one() -> None:
        while (sent := time.perf_counter()) < until:
            number = next(numbers, None)
            if number is None:
                return
            await job(number)
            result.latencies_ms.append((time.perf_counter() - sent) * 1000)

    await asyncio.gather(*(one() for _ in range(in_flight)))
    result.seconds = time.perf_counter() - begin
    return result
