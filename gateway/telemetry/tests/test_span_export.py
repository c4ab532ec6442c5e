"""Spans reach an OTLP receiver; one that is down, slow or refuses costs spans, never calls."""

import logging
from collections.abc import Iterator

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Status
from opentelemetry.semconv.schemas import Schemas

from gateway.telemetry import genai, span_export
from gateway.telemetry.span_export import OtlpSpans
from gateway.telemetry.spans import Fate, SpanKind, SpanRecord, TraceParent, session_span
from gateway.telemetry.tests.collecting import Answer, Collector, collecting

SESSION = session_span("S1", None, ratio=1.0)
OTHER = SESSION.child("c1", "2")


@pytest.fixture
def collector() -> Iterator[Collector]:
    with collecting() as server:
        yield server


def span(name: str, at: TraceParent, *, error: str = "") -> SpanRecord:
    return SpanRecord(
        name=name,
        at=at,
        parent_span_id=SESSION.span_id,
        kind=SpanKind.CLIENT,
        start_ns=1_000,
        end_ns=3_000,
        attributes=(("acp.session_id", "S1"), ("acp.attempt", 1)),
        links=(OTHER,),
        error=error,
    )


def sink_to(endpoint: str, *, max_queued: int = 100) -> OtlpSpans:
    return OtlpSpans(
        endpoint,
        headers={"authorization": "Bearer x"},
        max_queued=max_queued,
        about={"service.name": "acp-gateway"},
    )


def fates(sink: OtlpSpans) -> dict[Fate, int]:
    return {fate: count for fate, count in sink.fates.items() if count}


def test_a_span_arrives_with_ids_times_attributes_links_and_error(collector: Collector) -> None:
    sink = sink_to(collector.endpoint)
    at = SESSION.child("c1", "1")
    sink.offer(span("execute_tool ledger", at, error="TIMEOUT"))
    sink.close()
    request = collector.received.get(timeout=5)
    (got,) = request.message.resource_spans[0].scope_spans[0].spans
    assert request.headers["authorization"] == "Bearer x"
    assert (got.trace_id.hex(), got.span_id.hex()) == (at.trace_id, at.span_id)
    assert got.parent_span_id.hex() == SESSION.span_id
    assert (got.name, got.start_time_unix_nano, got.end_time_unix_nano) == (
        "execute_tool ledger",
        1_000,
        3_000,
    )
    assert (got.status.code, got.status.message) == (Status.STATUS_CODE_ERROR, "TIMEOUT")
    assert {attribute.key for attribute in got.attributes} == {"acp.session_id", "acp.attempt"}
    assert [link.span_id.hex() for link in got.links] == [OTHER.span_id]
    assert fates(sink) == {Fate.EXPORTED: 1}


def test_a_span_that_went_well_has_no_status(collector: Collector) -> None:
    sink = sink_to(collector.endpoint)
    sink.offer(span("x", SESSION))
    sink.close()
    (got,) = collector.received.get(timeout=5).message.resource_spans[0].scope_spans[0].spans
    assert got.status.code == Status.STATUS_CODE_UNSET


def test_a_batch_is_packed_and_says_whose_it_is_and_by_which_conventions(
    collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=staging")
    sink = sink_to(collector.endpoint)
    sink.offer(span("x", SESSION))
    sink.close()
    request = collector.received.get(timeout=5)
    assert request.headers["content-encoding"] == "gzip"
    (about,) = request.message.resource_spans
    attributes = {one.key: one.value.string_value for one in about.resource.attributes}
    assert attributes["service.name"] == "acp-gateway"
    assert attributes["deployment.environment.name"] == "staging"
    (scope,) = about.scope_spans
    assert scope.schema_url == genai.SCHEMA_URL
    (convention,) = scope.scope.attributes
    assert convention.value.string_value == genai.CONVENTION


def test_the_schema_is_one_that_the_conventions_have() -> None:
    assert genai.SCHEMA_URL in {one.value for one in Schemas}


def test_a_trace_that_is_not_sampled_is_not_sent(collector: Collector) -> None:
    sink = sink_to(collector.endpoint)
    sink.offer(span("x", session_span("S1", None, ratio=0.0)))
    sink.close()
    assert collector.received.empty()
    assert fates(sink) == {}


def test_a_full_queue_drops_and_counts_and_never_waits(collector: Collector) -> None:
    collector.open.clear()
    sink = sink_to(collector.endpoint, max_queued=2)
    sink.offer(span("the thread holds this one", SESSION))
    assert collector.asked.wait(timeout=10)
    for number in range(10):
        sink.offer(span("x", SESSION.child(str(number))))
    assert fates(sink) == {Fate.QUEUE_FULL: 8}
    assert sink.waiting == 2
    collector.open.set()
    sink.close()
    assert fates(sink) == {Fate.EXPORTED: 3, Fate.QUEUE_FULL: 8}


def test_what_a_collector_rejects_of_a_batch_it_took_is_counted_as_lost(
    collector: Collector,
) -> None:
    collector.answers = [Answer(rejected=1)]
    sink = sink_to(collector.endpoint)
    sink.offer(span("x", SESSION))
    sink.close()
    assert fates(sink) == {Fate.REJECTED: 1}


@pytest.mark.parametrize("status", [429, 503])
def test_a_collector_that_asks_for_patience_is_asked_again(
    collector: Collector, status: int
) -> None:
    collector.answers = [Answer(status=status, headers={"retry-after": "0"})]
    sink = sink_to(collector.endpoint)
    sink.offer(span("x", SESSION))
    sink.close()
    assert collector.received.qsize() == 2
    assert fates(sink) == {Fate.EXPORTED: 1}


def test_one_that_asks_for_more_patience_than_there_is_loses_the_batch_at_once(
    collector: Collector,
) -> None:
    collector.answers = [Answer(status=503, headers={"retry-after": "3600"})]
    sink = sink_to(collector.endpoint)
    sink.offer(span("x", SESSION))
    sink.close()
    assert fates(sink) == {Fate.NOT_TAKEN: 1}


def test_a_refusal_is_counted_and_told_once_not_at_every_batch(
    collector: Collector, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    collector.answers = [Answer(status=400)] * 3
    sink = sink_to(collector.endpoint)
    for number in range(3):
        sink.offer(span("x", SESSION.child(str(number))))
        collector.received.get(timeout=5)
    sink.close()
    assert fates(sink) == {Fate.NOT_TAKEN: 3}
    assert [record.getMessage() for record in caplog.records] == ["spans_lost"]


def test_nobody_listening_costs_the_spans_and_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(span_export, "EXPORT_TIMEOUT_S", 0.2)
    with collecting() as gone:
        endpoint = gone.endpoint
    sink = sink_to(endpoint)
    sink.offer(span("x", SESSION))
    sink.close()
    assert fates(sink) == {Fate.NOT_TAKEN: 1}
