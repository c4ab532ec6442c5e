"""A client's trace goes through a real gateway to components and into a real OTLP collector."""

import itertools
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from gateway.telemetry import genai
from gateway.tests.e2e.client import Client
from gateway.tests.observing.receiver import Receiver, plain, receiving, until
from gateway.tests.served import Served, serve_gateway

HOWS = ("over_http", "over_grpc", "attached")
CALLER = "00f067aa0ba902b7"
WORKFLOW = """
workflow: traced
version: 1.0.0
steps:
  - {name: first, role: execute, action: over_http.tell}
  - {name: second, role: execute, action: over_grpc.tell}
  - {name: third, role: execute, action: attached.tell}
output: third.output
"""
BROKEN = """
workflow: broken
version: 1.0.0
steps:
  - {name: only, role: execute, action: over_http.tell, input_mapping: {no: "1 / 0"}}
output: only.output
"""
QUEUED = 64
WHYS = ("queue_full", "not_taken")
STOP_S = 20.0


@pytest.fixture(scope="module")
def receiver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Receiver]:
    with receiving(tmp_path_factory.mktemp("receiver")) as one:
        yield one


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, receiver: Receiver) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("gateway")
    environ = {
        "ACP_TRACING_ENABLED": "true",
        "ACP_TRACING_ENDPOINT": receiver.endpoint,
        "ACP_TRACING_SAMPLE_RATIO": "0",
        "ACP_TRACING_MAX_QUEUED": str(QUEUED),
        "OTEL_RESOURCE_ATTRIBUTES": "deployment.environment.name=test",
    }
    gateway = serve_gateway(data_dir=folder / "d", log_file=folder / "log", environ=environ)
    yield gateway
    gateway.stop()


@pytest.fixture(scope="module")
def client(served: Served) -> Iterator[Client]:
    with Client(served.url) as one:
        yield one


@pytest.fixture(scope="module")
def components(served: Served, client: Client) -> Iterator[None]:
    """One over each way to reach a component."""
    command = [sys.executable, "-m", "gateway.tests.observing.traced"]
    started = [
        subprocess.Popen([*command, *words], stdout=subprocess.PIPE)
        for words in (("serve",), ("attach", served.grpc))
    ]
    said: list[Any] = []
    for process in started:
        assert process.stdout is not None
        said.append(json.loads(process.stdout.readline()))
    client.register(f"http://{said[0]['http']}")
    client.register(f"grpc://{said[0]['grpc']}", "GRPC")
    client.put_workflow(WORKFLOW)
    client.put_workflow(BROKEN)
    yield
    for process in started:
        process.terminate()
        process.wait(STOP_S)
        assert process.stdout is not None
        process.stdout.close()


def run(client: Client, workflow: str, traceparent: str) -> Any:
    """A session below that span, once it has ended."""
    body = {"workflow": workflow, "input": {}}
    reply = client.post("/v1/sessions", body, prefer="wait=30", traceparent=traceparent)
    assert reply.status == 200, reply.text
    return reply.json


def header(number: int, flag: str = "01") -> tuple[str, str]:
    """A trace of its own, and the header that a client sends for it."""
    trace_id = f"{number:032x}"
    return trace_id, f"00-{trace_id}-{CALLER}-{flag}"


@pytest.mark.usefixtures("components")
def test_a_clients_trace_reaches_every_kind_of_component_and_the_collector(
    client: Client, receiver: Receiver
) -> None:
    trace_id, sent = header(0xA1)
    session = run(client, "traced", sent)
    assert session["status"] == "SUCCEEDED"
    spans = {one.span.name: one for one in receiver.of_trace(trace_id, 7)}
    root = spans["invoke_workflow traced"].span
    assert root.parent_span_id.hex() == CALLER
    assert root.kind == Span.SPAN_KIND_SERVER
    calls = client.trajectory(session["session_id"])["calls"]
    for how, call, step in zip(HOWS, calls, ("first", "second", "third"), strict=True):
        between, attempt = spans[f"step {step}"].span, spans[f"execute_tool {how}.tell"].span
        assert between.parent_span_id == root.span_id
        assert attempt.parent_span_id == between.span_id
        assert attempt.kind == Span.SPAN_KIND_CLIENT
        told = call["output"]["traceparent"]
        assert told == f"00-{trace_id}-{attempt.span_id.hex()}-01", how
        assert root.start_time_unix_nano <= between.start_time_unix_nano
        assert between.start_time_unix_nano <= attempt.start_time_unix_nano
        assert attempt.end_time_unix_nano <= between.end_time_unix_nano
        assert between.end_time_unix_nano <= root.end_time_unix_nano
    assert {one.span.status.code for one in spans.values()} == {Status.STATUS_CODE_UNSET}


@pytest.mark.usefixtures("components")
def test_the_collector_understood_whose_spans_these_are_and_what_they_say(
    client: Client, receiver: Receiver
) -> None:
    trace_id, sent = header(0xA2)
    session = run(client, "traced", sent)
    spans = receiver.of_trace(trace_id, 7)
    resource = plain(list(spans[0].resource.attributes))
    assert resource["service.name"] == "acp-gateway"
    assert resource["deployment.environment.name"] == "test"
    assert {one.schema_url for one in spans} == {genai.SCHEMA_URL}
    (attempt,) = [one for one in spans if one.span.name == "execute_tool attached.tell"]
    assert attempt.attributes["gen_ai.tool.name"] == "attached.tell"
    assert attempt.attributes["acp.session_id"] == session["session_id"]
    assert attempt.attributes["acp.attempt"] == 1
    printed = receiver.printed.read_text(encoding="utf-8")
    assert f"Trace ID       : {trace_id}" in printed
    assert "gen_ai.operation.name: Str(execute_tool)" in printed


@pytest.mark.usefixtures("components")
def test_a_failure_is_an_error_in_the_trace(client: Client, receiver: Receiver) -> None:
    trace_id, sent = header(0xA3)
    session = run(client, "broken", sent)
    assert session["status"] == "FAILED"
    spans = receiver.of_trace(trace_id, 2)
    assert {one.span.status.code for one in spans} == {Status.STATUS_CODE_ERROR}
    reason = session["error"]["reason"]
    assert {one.attributes["error.type"] for one in spans} == {reason}


@pytest.mark.usefixtures("components")
def test_a_caller_that_does_not_record_gets_ids_and_no_spans(
    client: Client, receiver: Receiver
) -> None:
    trace_id, sent = header(0xA4, "00")
    session = run(client, "traced", sent)
    told = client.trajectory(session["session_id"])["calls"][0]["output"]["traceparent"]
    assert told.startswith(f"00-{trace_id}-")
    assert told.endswith("-00")
    later, sent = header(0xA5)
    run(client, "traced", sent)
    receiver.of_trace(later, 7)  # sent behind: whatever was to come has come
    assert not receiver.has(trace_id)


@pytest.mark.usefixtures("components")
def test_a_collector_that_hangs_costs_spans_and_no_session(
    client: Client, receiver: Receiver
) -> None:
    numbers = itertools.count(0xB00)

    def one_more_costs_spans() -> bool:
        session = run(client, "traced", header(next(numbers))[1])
        assert session["status"] == "SUCCEEDED"
        return sum(counted(client, f'acp_spans_lost_total{{why="{why}"}}') for why in WHYS) > 0

    receiver.hang()
    try:
        until(one_more_costs_spans)
    finally:
        receiver.go_on()
    trace_id, sent = header(0xC1)
    until(lambda: counted(client, "acp_spans_waiting") == 0)
    run(client, "traced", sent)
    assert len(receiver.of_trace(trace_id, 7)) == 7


def counted(client: Client, series: str) -> float:
    page = client.get("/metrics").text
    (line,) = [one for one in page.splitlines() if one.startswith(f"{series} ")]
    return float(line.rpartition(" ")[2])


def test_what_is_sent_when_the_gateway_stops_still_arrives(
    tmp_path: Path, receiver: Receiver
) -> None:
    environ = {"ACP_TRACING_ENABLED": "true", "ACP_TRACING_ENDPOINT": receiver.endpoint}
    gateway = serve_gateway(data_dir=tmp_path / "d", log_file=tmp_path / "log", environ=environ)
    trace_id, sent = header(0xD1)
    with Client(gateway.url) as client:
        client.put_workflow(BROKEN)
        reply = client.post("/v1/sessions", {"workflow": "broken"}, traceparent=sent)
        assert reply.status in (200, 201, 202), reply.text
        client.ended(reply.json["session_id"])
    assert gateway.stop() == 0
    assert receiver.of_trace(trace_id, 2)
