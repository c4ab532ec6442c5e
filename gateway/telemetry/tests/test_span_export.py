"""Spans reach a real OTLP receiver; a receiver that is down or slow costs spans, never calls."""

import queue
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from gateway.telemetry.span_export import OtlpSpans
from gateway.telemetry.spans import SpanKind, SpanRecord, TraceParent, session_span

SESSION = session_span("S1", None, ratio=1.0)


class Collector(ThreadingHTTPServer):
    """Keeps what it is sent; answers once `open` is set."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Receive)
        self.open = Event()
        self.open.set()
        self.asked = Event()
        self.received: queue.Queue[tuple[str, ExportTraceServiceRequest]] = queue.Queue()

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1/traces"


class Receive(BaseHTTPRequestHandler):
    """One export request."""

    server: Collector

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.asked.set()
        self.server.open.wait()
        message = ExportTraceServiceRequest.FromString(body)
        self.server.received.put((self.headers.get("authorization", ""), message))
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Stay silent."""


@pytest.fixture
def collector() -> Iterator[Collector]:
    with Collector() as server:
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server
        server.open.set()
        server.shutdown()


def span(name: str, at: TraceParent, *, error: str = "") -> SpanRecord:
    return SpanRecord(
        name=name,
        at=at,
        parent_span_id=SESSION.span_id,
        kind=SpanKind.CLIENT,
        start_ns=1_000,
        end_ns=3_000,
        attributes=(("acp.session_id", "S1"), ("acp.attempt", 1)),
        error=error,
    )


def sink_to(endpoint: str, *, max_queued: int = 100) -> OtlpSpans:
    return OtlpSpans(
        endpoint, headers={"authorization": "Bearer x"}, max_queued=max_queued, instance="0"
    )


def test_a_span_arrives_with_ids_times_attributes_and_error(collector: Collector) -> None:
    sink = sink_to(collector.endpoint)
    at = SESSION.child("c1", "1")
    sink.offer(span("execute ledger", at, error="TIMEOUT"))
    sink.close()
    authorization, message = collector.received.get(timeout=5)
    (got,) = message.resource_spans[0].scope_spans[0].spans
    assert authorization == "Bearer x"
    assert (got.trace_id.hex(), got.span_id.hex()) == (at.trace_id, at.span_id)
    assert got.parent_span_id.hex() == SESSION.span_id
    assert (got.name, got.start_time_unix_nano, got.end_time_unix_nano) == (
        "execute ledger",
        1_000,
        3_000,
    )
    assert got.status.message == "TIMEOUT"
    assert {attribute.key for attribute in got.attributes} == {"acp.session_id", "acp.attempt"}
    assert (sink.exported, sink.dropped) == (1, 0)


def test_a_trace_that_is_not_sampled_is_not_sent(collector: Collector) -> None:
    sink = sink_to(collector.endpoint)
    sink.offer(span("x", session_span("S1", None, ratio=0.0)))
    sink.close()
    assert collector.received.empty()


def test_a_full_queue_drops_and_counts_and_never_waits(collector: Collector) -> None:
    collector.open.clear()
    sink = sink_to(collector.endpoint, max_queued=2)
    sink.offer(span("the thread holds this one", SESSION))
    assert collector.asked.wait(timeout=10)
    for number in range(10):
        sink.offer(span("x", SESSION.child(str(number))))
    assert sink.dropped == 8
    collector.open.set()
    sink.close()
    assert (sink.exported, sink.dropped) == (3, 8)
