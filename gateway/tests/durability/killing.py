"""`acp serve` that kills itself (SIGKILL) at the n-th passage of a named point.

Only the constructors that the assembly calls are exchanged, for subclasses that count passages; all
else is the gateway as it ships. Run as a module it is a fork server: an order per line on standard
input, so that 200 lives cost 200 forks and not 200 times the imports.
"""

import asyncio
import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from acp_spec.model.calls import CancelResponse, OperationState
from acp_spec.model.card import Card, Health
from gateway.assembly import building, serving
from gateway.config.load import load_settings
from gateway.runtime.connection import Answer, Connection, Outgoing, Sink
from gateway.runtime.registered import Endpoint
from gateway.stores.ports import Batch, Table
from gateway.stores.rocksdb import RocksBatch, RocksStore
from gateway.stores.trajectory_log import TrajectoryLog
from gateway.transports.dialer import ComponentDialer
from gateway.transports.grpc_server import GrpcServer
from gateway.transports.http_server import HttpServer

POINTS = (
    "before append",
    "after append",
    "before sync",
    "during sync",
    "after sync",
    "during flush",
    "before send",
    "after send",
    "at answer",
    "after answer",
    "before end",
    "after end",
    "after opening",
    "during recovery",
    "after recovery append",
    "in an outbox line",
    "between outbox lines and rows",
    "before outbox rows go",
    "after outbox rows went",
    "before key erased",
    "after key erased",
    "during registration",
)
ON_THE_WIRE_S = 0.002
"""After so long a request over loopback has left, and most have been answered."""
OPEN_SESSIONS_MAX = 400
"""Fewer than may wait for one instance: on a fast machine the openers outrun the counter, and the
sessions over its queue would FAIL, rightly, and prove nothing about kills."""
AMID_S = 0.0002
"""A sync or flush takes some milliseconds here: this lies within."""


class Fuse:
    """Counts the passages of the one armed point, and ends the process at the n-th."""

    def __init__(self) -> None:
        self.point = ""
        self.left = 0
        self.is_ready = False

    def arm(self, point: str, passages: int) -> None:
        assert not point or point in POINTS, f"no such point: {point}"
        self.point, self.left = point, passages

    def burns(self, point: str) -> bool:
        """Whether this passage is the one; the caller has things to do before the end."""
        if point != self.point:
            return False
        self.left -= 1
        return self.left == 0

    def passes(self, point: str) -> None:
        if self.burns(point):
            die()


FUSE = Fuse()


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def die_amid(work: Callable[[], None]) -> None:
    """Die while `work` runs in the library's own code."""
    threading.Timer(AMID_S, die).start()
    work()


class KilledBatch(RocksBatch):
    """Knows what kind of step it is."""

    is_end = is_opening = is_registration = is_settling = False

    def delete(self, table: Table, key: bytes) -> None:
        super().delete(table, key)
        self.is_settling |= table is Table.OUTBOX

    def put(self, table: Table, key: bytes, value: bytes) -> None:
        super().put(table, key, value)
        ended = b"\0SUCCEEDED\0" in key or b"\0FAILED\0" in key
        self.is_end |= table is Table.INDEX and ended
        self.is_opening |= table is Table.KEY
        self.is_registration |= table is Table.REGISTRY


class KilledStore(RocksStore):
    def batch(self) -> KilledBatch:
        return KilledBatch(self._handles)

    def write(self, batch: Batch) -> None:
        assert isinstance(batch, KilledBatch)
        FUSE.passes("before append")
        if batch.is_end:
            FUSE.passes("before end")
        if batch.is_settling:
            FUSE.passes("before outbox rows go")
        if FUSE.burns("during flush"):
            threading.Thread(target=self._flush_all).start()
            threading.Timer(AMID_S, die).start()
        super().write(batch)
        FUSE.passes("after append")
        for is_so, point in (
            (batch.is_end, "after end"),
            (batch.is_settling, "after outbox rows went"),
            (batch.is_opening, "after opening"),
            (batch.is_registration, "during registration"),
            (not FUSE.is_ready, "after recovery append"),
        ):
            if is_so:
                FUSE.passes(point)

    def sync(self) -> None:
        FUSE.passes("before sync")
        if FUSE.burns("during sync"):
            die_amid(super().sync)
        super().sync()
        FUSE.passes("after sync")

    def scan(
        self, table: Table, prefix: bytes, *, after: bytes = b"", reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        if table is Table.JOURNAL and not FUSE.is_ready:
            FUSE.passes("during recovery")
        return super().scan(table, prefix, after=after, reverse=reverse)

    def erase(self, table: Table, *keys: bytes) -> None:
        FUSE.passes("before key erased")
        super().erase(table, *keys)
        FUSE.passes("after key erased")

    def _flush_all(self) -> None:
        """What RocksDB does by itself whenever a buffer is full."""
        for family in self._tables.values():
            family.flush()


class KilledLog(TrajectoryLog):
    def append(self, lines: Sequence[bytes], now_ms: int) -> None:
        if FUSE.burns("in an outbox line"):
            file = self._current(now_ms)
            file.write(b"".join(lines[:-1]) + lines[-1][: len(lines[-1]) // 2])
            file.flush()
            die()
        super().append(lines, now_ms)
        FUSE.passes("between outbox lines and rows")


class KilledConnection:
    """A `Connection` around the real one."""

    def __init__(self, inner: Connection) -> None:
        self._inner = inner

    def send(self, outgoing: Outgoing, sink: Sink) -> None:
        def counted(answer: Answer, late: bool) -> None:
            FUSE.passes("at answer")
            sink(answer, late)
            FUSE.passes("after answer")

        FUSE.passes("before send")
        self._inner.send(outgoing, counted)
        if FUSE.burns("after send"):
            asyncio.get_running_loop().call_later(ON_THE_WIRE_S, die)

    def reset(self, call_id: str, attempt: int) -> None:
        self._inner.reset(call_id, attempt)

    async def describe(self, timeout_ms: int) -> Card:
        return await self._inner.describe(timeout_ms)

    async def health(self, timeout_ms: int) -> Health:
        return await self._inner.health(timeout_ms)

    async def cancel(self, call_id: str, attempt: int, *, timeout_ms: int) -> CancelResponse:
        return await self._inner.cancel(call_id, attempt, timeout_ms=timeout_ms)

    async def operation(self, call_id: str, timeout_ms: int) -> OperationState:
        return await self._inner.operation(call_id, timeout_ms)

    async def cancel_operation(self, call_id: str, timeout_ms: int) -> CancelResponse:
        return await self._inner.cancel_operation(call_id, timeout_ms)

    async def close(self) -> None:
        await self._inner.close()


class KilledDialer(ComponentDialer):
    def open(self, endpoint: Endpoint) -> Connection:
        return KilledConnection(super().open(endpoint))


def exchange_constructors() -> None:
    """The assembly builds the gateway out of these from now on."""
    say_ready = serving._say_ready

    def ready(http: HttpServer, grpc: GrpcServer) -> None:
        FUSE.is_ready = True
        say_ready(http, grpc)

    for module, name, stand_in in (
        (building, "RocksStore", KilledStore),
        (building, "TrajectoryLog", KilledLog),
        (building, "ComponentDialer", KilledDialer),
        (serving, "_say_ready", ready),
    ):
        assert hasattr(module, name), f"{module.__name__} has no {name} any more"
        setattr(module, name, stand_in)


def live(order: dict[str, object], log: Path) -> int:
    """One life of a gateway, in a forked process."""
    with log.open("ab") as errors:
        os.dup2(errors.fileno(), 2)
    FUSE.arm(str(order["point"]), int(str(order["passages"])))
    flags = {
        "data_dir": order["data_dir"],
        "http.bind": order["http"],
        "grpc.bind": "127.0.0.1:0",
        "limits.max_open_sessions": OPEN_SESSIONS_MAX,
    }
    return serving.serve(load_settings(environ=os.environ, flags=flags).settings)


def main() -> None:
    """Fork a gateway per order; say its pid, and how it ended. Its ready line is its own."""
    exchange_constructors()
    log = Path(sys.argv[1])
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            os._exit(live(json.loads(line), log))
        say({"pid": pid})
        _, status = os.waitpid(pid, 0)
        say({"ended": os.waitstatus_to_exitcode(status)})


def say(fact: dict[str, int]) -> None:
    sys.stdout.write(json.dumps(fact) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
