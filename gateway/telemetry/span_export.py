"""Sends span records to an OTLP collector, in batches, from a thread of its own.

The hot path only puts a record into a bounded queue; a full queue drops and counts. A collector
that is down, hangs, refuses or asks for patience costs spans, never calls, and every span that was
lost is counted by why. OpenTelemetry is imported when tracing is switched on.
"""

import logging
import queue
import threading
import time
from collections.abc import Mapping, Sequence

import requests
from google.protobuf.message import DecodeError
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode, TraceFlags

from gateway.telemetry import genai, spans
from gateway.telemetry.logs import get_log
from gateway.telemetry.spans import Fate

BATCH_SPANS_MAX = 512
# A collector answers in milliseconds; a slower one loses the batch, not our thread.
EXPORT_TIMEOUT_S = 5.0
CLOSE_TIMEOUT_S = 6.0
# A collector that is down is one line a minute; how much was lost is for the metrics.
TELL_EVERY_S = 60.0

KINDS: Mapping[spans.SpanKind, SpanKind] = {
    spans.SpanKind.SERVER: SpanKind.SERVER,
    spans.SpanKind.CLIENT: SpanKind.CLIENT,
    spans.SpanKind.INTERNAL: SpanKind.INTERNAL,
}
SCOPE = InstrumentationScope(
    "gateway.telemetry",
    schema_url=genai.SCHEMA_URL,
    attributes={"acp.genai_conventions": genai.CONVENTION},
)

log = get_log(__name__)
# The library's own lines come at every batch; ours say the same once a minute.
logging.getLogger("opentelemetry.exporter.otlp.proto.http.trace_exporter").setLevel(
    logging.CRITICAL
)


class OtlpSpans:
    """A sink that exports; `fates` says what became of the spans that were offered."""

    def __init__(
        self,
        endpoint: str,
        *,
        headers: Mapping[str, str],
        max_queued: int,
        about: Mapping[str, str],
    ) -> None:
        """`about`: resource attributes; the environment's OTEL_RESOURCE_ATTRIBUTES adds to them."""
        self.fates: dict[Fate, int] = dict.fromkeys(Fate, 0)
        self._told_s = -TELL_EVERY_S
        self._rejected = 0
        session = requests.Session()
        session.hooks["response"].append(self._answered)
        self._exporter = OTLPSpanExporter(
            endpoint=endpoint,
            headers=dict(headers),
            timeout=EXPORT_TIMEOUT_S,
            compression=Compression.Gzip,
            session=session,
        )
        self._resource = Resource.create(dict(about))
        self._waiting: queue.Queue[spans.SpanRecord | None] = queue.Queue(max_queued)
        self._thread = threading.Thread(target=self._run, name="span-export", daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> int:
        """Spans in the queue."""
        return self._waiting.qsize()

    def offer(self, record: spans.SpanRecord) -> None:
        """Queue one span of a sampled trace; others are ignored, a full queue drops."""
        if not record.at.sampled:
            return
        try:
            self._waiting.put_nowait(record)
        except queue.Full:
            self.fates[Fate.QUEUE_FULL] += 1

    def close(self) -> None:
        """Export what waits, for at most CLOSE_TIMEOUT_S."""
        try:
            self._waiting.put(None, timeout=CLOSE_TIMEOUT_S)
        except queue.Full:
            return  # the collector hangs; the daemon thread ends with the process
        self._thread.join(CLOSE_TIMEOUT_S)
        self._exporter.shutdown()  # type: ignore[no-untyped-call]  # it has no annotations

    def _run(self) -> None:
        while batch := self._next_batch():
            self._export([one for one in batch if one is not None])
            if batch[-1] is None:
                return

    def _next_batch(self) -> list[spans.SpanRecord | None]:
        """Wait for one record, then take what else is there; None marks the end."""
        batch = [self._waiting.get()]
        while batch[-1] is not None and len(batch) < BATCH_SPANS_MAX:
            try:
                batch.append(self._waiting.get_nowait())
            except queue.Empty:
                break
        return batch

    def _export(self, records: Sequence[spans.SpanRecord]) -> None:
        if not records:
            return
        self._rejected = 0
        result = self._exporter.export([self._readable(record) for record in records])
        if result is not SpanExportResult.SUCCESS:
            self._lost(Fate.NOT_TAKEN, len(records), why="the collector took none of a batch")
            return
        rejected = min(self._rejected, len(records))
        self.fates[Fate.EXPORTED] += len(records) - rejected
        if rejected:
            self._lost(Fate.REJECTED, rejected, why="the collector rejected some of a batch")

    def _answered(self, response: requests.Response, *_: object, **__: object) -> None:
        """Keep how many spans of a request that went well were not taken all the same."""
        if response.status_code != requests.codes.ok or not response.content:
            return
        try:
            answer = ExportTraceServiceResponse.FromString(response.content)
        except DecodeError:
            return  # JSON or nothing of ours: it was taken, and says no more
        self._rejected = max(0, answer.partial_success.rejected_spans)

    def _lost(self, fate: Fate, count: int, *, why: str) -> None:
        self.fates[fate] += count
        now_s = time.monotonic()
        if now_s - self._told_s >= TELL_EVERY_S:
            self._told_s = now_s
            lost = sum(n for one, n in self.fates.items() if one is not Fate.EXPORTED)
            log.warning("spans_lost", why=why, spans=count, since_start=lost)

    def _readable(self, record: spans.SpanRecord) -> ReadableSpan:
        parent = (
            _context(record.at.trace_id, record.parent_span_id) if record.parent_span_id else None
        )
        # A span that went well stays unset: whether it is OK is for the application to say.
        status = Status(StatusCode.ERROR, record.error) if record.error else Status()
        return ReadableSpan(
            name=record.name,
            context=_context(record.at.trace_id, record.at.span_id),
            parent=parent,
            resource=self._resource,
            attributes=dict(record.attributes),
            links=[Link(_context(one.trace_id, one.span_id)) for one in record.links],
            kind=KINDS[record.kind],
            status=status,
            start_time=record.start_ns,
            end_time=record.end_ns,
            instrumentation_scope=SCOPE,
        )


def _context(trace_id: str, span_id: str) -> SpanContext:
    return SpanContext(
        trace_id=int(trace_id, 16),
        span_id=int(span_id, 16),
        is_remote=False,
        trace_flags=TraceFlags(TraceFlags.SAMPLED),
    )
