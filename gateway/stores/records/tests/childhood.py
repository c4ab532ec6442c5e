"""A records child as its parent starts it, for tests: an order in, a ready line out."""

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from time import monotonic
from typing import Self

import msgspec

from gateway.stores.records.endpoint import Endpoint
from gateway.stores.records.feed_status import FeedingStatus, Outcome
from gateway.stores.records.order import Order, Ready
from gateway.stores.records.reach import ask

KEY = "test-key"
LOOK_AGAIN_S = 0.01


def patiently(within_s: float = 120.0) -> Iterator[None]:
    """Turns to look again, for so long; then it has not come true."""
    pause, deadline = threading.Event(), monotonic() + within_s
    while monotonic() < deadline:
        yield
        pause.wait(LOOK_AGAIN_S)
    raise AssertionError(f"it did not come true within {within_s} s")


class Child:
    """One process; `with` stops it."""

    def __init__(
        self,
        data: Path,
        *,
        url: str = "",
        gateway_id: str = "",
        lock_wait_s: float = 30.0,
        verify_every_ms: int = 0,
        module: str = "gateway.stores.records.child",
        arguments: tuple[str, ...] = (),
    ) -> None:
        self.log_dir, self.directory = data / "trajectories", data / "records"
        order = Order(
            log_dir=str(self.log_dir),
            records_dir=str(self.directory),
            key=KEY,
            url=url,
            gateway_id=gateway_id,
            tick_ms=10,
            look_every_ms=10,
            lock_wait_s=lock_wait_s,
            verify_every_ms=verify_every_ms,
        )
        self.process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
        )
        assert self.process.stdin is not None
        self.process.stdin.write(msgspec.json.encode(order) + b"\n")

    def ready(self) -> Self:
        """Once it can be asked."""
        assert self.process.stdout is not None
        text = self.process.stdout.readline()
        assert text, f"the child ended with {self.process.wait()}"
        port = msgspec.json.decode(text, type=Ready).port
        self.endpoint = Endpoint(host="127.0.0.1", port=port, password=KEY)
        return self

    def when_started(self, then: Callable[[], None]) -> Self:
        """Do something once this process runs, before it is ready."""
        then()
        return self

    def status(self) -> FeedingStatus:
        return msgspec.json.decode(ask(self.endpoint, "status"), type=FeedingStatus)

    def fed(self) -> FeedingStatus:
        """Once it has fed all there is in the log."""
        return self.once(lambda status: not status.waiting_bytes and not status.problem)

    def compared(self) -> FeedingStatus:
        """Ask for a comparison; how it stands once it is over."""
        ask(self.endpoint, "verify")
        over = (Outcome.IDENTICAL, Outcome.HEALED)
        return self.once(lambda status: status.comparison.outcome in over)

    def once(self, holds: Callable[[FeedingStatus], bool]) -> FeedingStatus:
        """The first status for which it holds."""
        for _ in patiently():
            status = self.status()
            if holds(status):
                return status
        raise AssertionError("patience has an end")

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def stop(self) -> int:
        """End it as a parent that stops does; its exit code."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.process.wait(timeout=30)

    def __enter__(self) -> Self:
        return self.ready()

    def __exit__(self, *error: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            pipe.close()
