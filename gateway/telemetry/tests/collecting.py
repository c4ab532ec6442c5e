"""An OTLP collector for tests: the official messages over HTTP, and any answer a collector gives.

`answers` are given in turn, then 200; while `open` is not set it hangs, as a stuck collector does.
"""

import gzip
import queue
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTracePartialSuccess,
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One answer; `rejected` is told as a partial success."""

    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    rejected: int = 0

    @property
    def body(self) -> bytes:
        if not self.rejected:
            return b""
        partly = ExportTracePartialSuccess(rejected_spans=self.rejected, error_message="no")
        return bytes(ExportTraceServiceResponse(partial_success=partly).SerializeToString())


@dataclass(frozen=True, slots=True)
class Request:
    """One export request as it came."""

    headers: dict[str, str]
    message: ExportTraceServiceRequest


class Collector(ThreadingHTTPServer):
    """Keeps what it is sent; answers once `open` is set."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Receive)
        self.open = Event()
        self.open.set()
        self.asked = Event()
        self.answers: list[Answer] = []
        self.received: queue.Queue[Request] = queue.Queue()

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    @property
    def endpoint(self) -> str:
        return f"{self.base}/v1/traces"


class _Receive(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.asked.set()
        self.server.open.wait()
        if self.headers.get("content-encoding") == "gzip":
            body = gzip.decompress(body)
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.received.put(Request(headers, ExportTraceServiceRequest.FromString(body)))
        answer = self.server.answers.pop(0) if self.server.answers else Answer()
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(answer.body)))
        self.end_headers()
        self.wfile.write(answer.body)

    def log_message(self, format: str, *args: object) -> None:
        """Stay silent."""


@contextmanager
def collecting() -> Iterator[Collector]:
    """A collector that runs until the end of the block."""
    with Collector() as server:
        thread = Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        yield server
        server.open.set()
        server.shutdown()
        thread.join()
