"""A real OTLP collector of somebody else's: `rotel`, a process of its own, started by the test.

It takes what the gateway sends (protobuf over HTTP, packed), reads it with its own code, prints
what it understood, and sends it on to a `Collector` of ours, where the test looks at it.
"""

import importlib.util
import queue
import signal
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic

from opentelemetry.proto.common.v1.common_pb2 import InstrumentationScope, KeyValue
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from acp_spec.sdk.kept_ports import KeptPorts
from conftest import skip_or_fail
from gateway.telemetry.tests.collecting import Collector, collecting

UNTIL_S = 90.0
STOP_S = 10.0
LOCAL = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Received:
    """One span with what stood around it."""

    resource: Resource
    scope: InstrumentationScope
    schema_url: str
    span: Span

    @property
    def attributes(self) -> dict[str, str | int | float | bool]:
        return plain(list(self.span.attributes))


def plain(found: list[KeyValue]) -> dict[str, str | int | float | bool]:
    """Attributes as Python's own values."""
    return {one.key: getattr(one.value, one.value.WhichOneof("value") or "") for one in found}


@dataclass(slots=True)
class Receiver:
    """The collector's process, where it listens, and what it passed on so far."""

    process: subprocess.Popen[bytes]
    endpoint: str
    printed: Path
    collector: Collector
    spans: list[Received] = field(default_factory=list)

    def of_trace(self, trace_id: str, count: int) -> list[Received]:
        """The spans of a trace once there are so many."""
        until(lambda: len(self._found(trace_id)) >= count)
        return self._found(trace_id)

    def has(self, trace_id: str) -> bool:
        """Whether any span of that trace was passed on."""
        return bool(self._found(trace_id))

    def _found(self, trace_id: str) -> list[Received]:
        with suppress(queue.Empty):
            while True:
                for about in self.collector.received.get_nowait().message.resource_spans:
                    for scoped in about.scope_spans:
                        around = (about.resource, scoped.scope, scoped.schema_url)
                        self.spans += [Received(*around, span) for span in scoped.spans]
        return [one for one in self.spans if one.span.trace_id.hex() == trace_id]

    def hang(self) -> None:
        """It stays connected, and takes and says nothing."""
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self.process.send_signal(signal.SIGCONT)


@contextmanager
def receiving(folder: Path) -> Iterator[Receiver]:
    """A collector that runs until the end of the block."""
    program = _program()
    with KeptPorts() as ports, collecting() as collector, (folder / "rotel").open("wb") as out:
        http, grpc = ports.take(), ports.take()
        command: list[str | Path] = [
            *(program, "start", "--otlp-http-endpoint", f"{LOCAL}:{http}"),
            *("--otlp-grpc-endpoint", f"{LOCAL}:{grpc}", "--batch-timeout", "50ms"),
            *("--exporter", "otlp", "--otlp-exporter-protocol", "http"),
            *("--otlp-exporter-endpoint", collector.base),
            *("--debug-log", "traces", "--debug-log-verbosity", "detailed"),
            *("--pid-file", folder / "rotel.pid", "--log-file", folder / "rotel.log"),
        ]
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT)
        try:
            until(lambda: _listens(http))
            yield Receiver(process, f"http://{LOCAL}:{http}/v1/traces", folder / "rotel", collector)
        finally:
            process.send_signal(signal.SIGCONT)
            process.terminate()
            process.wait(STOP_S)


def _program() -> Path:
    found = importlib.util.find_spec("rotel")
    if found is None or found.origin is None:
        skip_or_fail("needs the collector rotel (Linux on x86-64, Python 3.11-3.13): make setup")
    return Path(found.origin).parent / "rotel-agent"


def _listens(port: int) -> bool:
    with suppress(OSError), socket.create_connection((LOCAL, port)):
        return True
    return False


def until(holds: Callable[[], bool]) -> None:
    """Ask again until it is so: what happens in other processes has no event here."""
    by, pause = monotonic() + UNTIL_S, threading.Event()
    while not holds():
        assert monotonic() < by, "it did not happen in time"
        pause.wait(0.02)
