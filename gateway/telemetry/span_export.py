"""Sends span records to an OTLP collector, in batches, from a thread of its own.

The hot path only puts a record into a bounded queue; a full queue drops and counts. A collector
that is down costs spans, never calls. OpenTelemetry is imported when tracing is switched on.
"""

import queue
import threading
from collections.abc import Mapping, Sequence

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

from gateway.telemetry import spans

BATCH_SPANS_MAX = 512
# A collector answers in milliseconds; a slower one loses the batch, not our thread.
EXPORT_TIMEOUT_S = 5.0
CLOSE_TIMEOUT_S = 6.0

KINDS: Mapping[spans.SpanKind, SpanKind] = {
    spans.SpanKind.SERVER: SpanKind.SERVER,
    spans.SpanKind.CLIENT: SpanKind.CLIENT,
    spans.SpanKind.INTERNAL: SpanKind.INTERNAL,
}


class OtlpSpans:
    """A sink that exports; `dropped` and `exported` are counts for the metrics."""

    def __init__(
        self, endpoint: str, *, headers: Mapping[str, str], max_queued: int, instance: str
    ) -> None:
        self.dropped = 0
        self.exported = 0
        self._exporter = OTLPSpanExporter(
            endpoint=endpoint, headers=dict(headers), timeout=EXPORT_TIMEOUT_S
        )
        self._resource = Resource({"service.name": "acp-gateway", "service.instance.id": instance})
        self._scope = InstrumentationScope("gateway.telemetry")
        self._waiting: queue.Queue[spans.SpanRecord | None] = queue.Queue(max_queued)
        self._thread = threading.Thread(target=self._run, name="span-export", daemon=True)
        self._thread.start()

    def offer(self, record: spans.SpanRecord) -> None:
        """Queue one span of a sampled trace; others are ignored, a full queue drops."""
        if not record.at.sampled:
            return
        try:
            self._waiting.put_nowait(record)
        except queue.Full:
            self.dropped += 1

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
        result = self._exporter.export([self._readable(record) for record in records])
        if result is SpanExportResult.SUCCESS:
            self.exported += len(records)
        else:
            self.dropped += len(records)

    def _readable(self, record: spans.SpanRecord) -> ReadableSpan:
        parent = (
            _context(record.at.trace_id, record.parent_span_id) if record.parent_span_id else None
        )
        status = Status(StatusCode.ERROR, record.error) if record.error else Status(StatusCode.OK)
        return ReadableSpan(
            name=record.name,
            context=_context(record.at.trace_id, record.at.span_id),
            parent=parent,
            resource=self._resource,
            attributes=dict(record.attributes),
            kind=KINDS[record.kind],
            status=status,
            start_time=record.start_ns,
            end_time=record.end_ns,
            instrumentation_scope=self._scope,
        )


def _context(trace_id: str, span_id: str) -> SpanContext:
    return SpanContext(
        trace_id=int(trace_id, 16),
        span_id=int(span_id, 16),
        is_remote=False,
        trace_flags=TraceFlags(TraceFlags.SAMPLED),
    )
