"""A records child as its parent starts it, for tests: an order in, a ready line out."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Self

import msgspec

from gateway.stores.records.comparing import Outcome
from gateway.stores.records.endpoint import Endpoint
from gateway.stores.records.feeding import FeedingStatus
from gateway.stores.records.order import Order, Ready
from gateway.stores.records.reach import ask

KEY = "test-key"


class Child:
    """One process; `with` stops it."""

    def __init__(
        self,
        data: Path,
        *,
        url: str = "",
        lock_wait_s: float = 30.0,
        module: str = "gateway.stores.records.child",
        arguments: tuple[str, ...] = (),
    ) -> None:
        self.log_dir, self.directory = data / "trajectories", data / "records"
        order = Order(
            log_dir=str(self.log_dir),
            records_dir=str(self.directory),
            key=KEY,
            url=url,
            tick_ms=10,
            lock_wait_s=lock_wait_s,
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
        while (status := self.status()).waiting_bytes or status.problem:
            pass
        return status

    def compared(self) -> FeedingStatus:
        """Ask for a comparison; how it stands once it is over."""
        ask(self.endpoint, "verify")
        while (status := self.status()).comparison.outcome in (Outcome.NONE, Outcome.RUNNING):
            pass
        return status

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
