"""CPU per outbound call of this process, against a raw echo component in a process of its own.

`python benchmarks/outbound.py [calls] [in flight]`. Layers: the bare pool (bytes out, bytes back)
and the HTTP connection (context, headers, time, scan, decode). The figure to trust is CPU per call;
run it twice when others use the machine.
"""

import asyncio
import json
import resource
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import uvloop

from acp_spec.model.context import Context
from acp_spec.model.enums import Effect, StepRole
from acp_spec.model.payload import payload
from gateway.config.networks import LOOPBACK_NETWORKS
from gateway.runtime.connection import Answer, Connection, Outgoing
from gateway.transports.address_guard import HTTP_SCHEMES, AddressGuard, parse_component_url
from gateway.transports.http_connection import HttpConnection
from gateway.transports.http_link import Fault, Response
from gateway.transports.http_pool import HttpPool

ARGUMENTS = b'{"query":"' + b"q" * 700 + b'","cents":123456789012345678.90}'
BODY = b'{"action":"bench.echo","arguments":' + ARGUMENTS + b"}"
CONTEXT = Context(
    session_id="01J0000000000000000000000S",
    lineage_id="01J0000000000000000000000S.0123456789ab",
    call_id="0123456789abcdef0123456789abcdef",
    attempt=1,
    body_digest="0" * 64,
    timeout_ms=5_000,
    retry_budget=2,
    workflow="bench@1.0.0",
    step="act",
    state_version="1.1.0",
    tenant="default",
)
OUTGOING = Outgoing(
    context=CONTEXT,
    role=StepRole.EXECUTE,
    effect=Effect.READ,
    body=payload(BODY),
)
Start = Callable[[Callable[[], None]], None]
"""`start(done)` begins one call and calls `done` at its end."""


class PoolCall:
    """A bare exchange."""

    def __init__(self, request: bytes, done: Callable[[], None]) -> None:
        self._request = request
        self._done = done

    def payload(self) -> bytes:
        return self._request

    def answered(self, response: Response) -> None:
        assert response.status == 200, response
        self._done()

    def failed(self, fault: Fault, message: str) -> None:
        raise AssertionError(message)


def over_pool(pool: HttpPool, request: bytes) -> Start:
    def start(done: Callable[[], None]) -> None:
        pool.submit(PoolCall(request, done))

    return start


def over_connection(connection: Connection) -> Start:
    def start(done: Callable[[], None]) -> None:
        def sink(answer: Answer, late: bool) -> None:
            assert answer.error is None, answer.error
            done()

        connection.send(OUTGOING, sink)

    return start


async def measure(name: str, start: Start, *, calls: int, in_flight: int) -> None:
    """Keep `in_flight` calls open until `calls` have ended."""
    loop = asyncio.get_running_loop()
    finished = loop.create_future()
    begun = ended = 0

    def done() -> None:
        nonlocal begun, ended
        ended += 1
        if begun < calls:
            begun += 1
            start(done)
        elif ended == calls:
            finished.set_result(None)

    cpu, wall = _cpu_s(), time.perf_counter()
    begun = min(in_flight, calls)
    for _ in range(begun):
        start(done)
    await finished
    cpu, wall = _cpu_s() - cpu, time.perf_counter() - wall
    print(f"{name:<16} {cpu / calls * 1e6:7.1f} us CPU a call  {calls / wall:9.0f} calls/s")


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


async def bench(url: str, *, calls: int, in_flight: int) -> None:
    guard = AddressGuard(LOOPBACK_NETWORKS)
    target = parse_component_url(url, HTTP_SCHEMES)
    pool, connection = HttpPool(target, guard), HttpConnection(target, guard)
    head = f"POST /acp/v1/execute HTTP/1.1\r\nhost: x\r\ncontent-length: {len(BODY)}\r\n\r\n"
    runs: list[tuple[str, Start, Callable[[], Awaitable[None]]]] = [
        ("pool", over_pool(pool, head.encode() + BODY), pool.close),
        ("http connection", over_connection(connection), connection.close),
    ]
    for name, start, _ in runs:
        await measure(f"{name} (warm-up)", start, calls=calls // 10, in_flight=in_flight)
    for _ in range(3):
        for name, start, _ in runs:
            await measure(name, start, calls=calls, in_flight=in_flight)
    for _, _, close in runs:
        await close()


def main() -> None:
    calls = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    in_flight = int(sys.argv[2]) if len(sys.argv) > 2 else 64
    echo = subprocess.Popen(
        [sys.executable, str(Path(__file__).parent / "echo.py")], stdout=subprocess.PIPE, text=True
    )
    try:
        assert echo.stdout is not None
        url = json.loads(echo.stdout.readline())["http"]
        uvloop.run(bench(url, calls=calls, in_flight=in_flight))
    finally:
        echo.terminate()
        echo.wait()


if __name__ == "__main__":
    main()
