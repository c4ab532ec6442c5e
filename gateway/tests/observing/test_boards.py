"""Every query in `deploy/` has data in a real Prometheus, and exemplars lead to real traces."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from math import isfinite
from pathlib import Path

import pytest

from gateway.tests.e2e.client import Client
from gateway.tests.observing import boards
from gateway.tests.observing.boards import Query
from gateway.tests.observing.receiver import Receiver, receiving, until
from gateway.tests.observing.scraping import Prometheus, scraping
from gateway.tests.observing.traffic import town
from gateway.tests.served import serve_gateway

EMPTY_IN_HEALTH: Mapping[str, str] = {
    "acp_contribution_variance": "computed when a page asks, of two windows with records in both",
    "acp_breaker_closed_total": "a breaker closes when its own time is over and a probe succeeds",
}
"""Metrics that this traffic cannot make, and why: their queries are run all the same."""


@dataclass(frozen=True, slots=True)
class Stage:
    prometheus: Prometheus
    receiver: Receiver
    page: str


@pytest.fixture(scope="module")
def stage(
    tmp_path_factory: pytest.TempPathFactory, needs: Callable[[str], Path]
) -> Iterator[Stage]:
    """A gateway that had its traffic, scraped before, between and after."""
    folder = tmp_path_factory.mktemp("stage")
    program = needs("prometheus")
    with ExitStack() as stack:
        receiver = stack.enter_context(receiving(folder))
        environ = {
            "ACP_TRACING_ENABLED": "true",
            "ACP_TRACING_ENDPOINT": receiver.endpoint,
            "ACP_TRACING_SAMPLE_RATIO": "1",
            "ACP_LEASES_PROBE_INTERVAL_MS": "200",
        }
        gateway = serve_gateway(data_dir=folder / "d", log_file=folder / "l", environ=environ)
        stack.callback(gateway.stop)
        client = stack.enter_context(Client(gateway.url))
        prometheus = stack.enter_context(scraping(program, gateway.http, folder=folder))
        one = stack.enter_context(town(client))
        one.rolled_back()
        for _ in range(2):  # a rate needs what was there before it rose
            one.failing()
            one.usual()
            seen = ended(client.get("/metrics").text)
            prometheus.wait_for("sum(acp_sessions_ended_total)", seen)
        until(lambda: bool(prometheus.ask("acp_component_load")))
        yield Stage(prometheus, receiver, client.get("/metrics").text)


def ended(page: str) -> float:
    lines = [line for line in page.splitlines() if line.startswith("acp_sessions_ended_total{")]
    return sum(float(line.rpartition(" ")[2]) for line in lines)


def is_excused(query: Query) -> bool:
    return bool(query.metrics & set(EMPTY_IN_HEALTH))


def has_data(stage: Stage, query: Query) -> bool:
    """Whether it gives any figure; a query that Prometheus refuses raises."""
    found = stage.prometheus.ask(query.text)
    return any(isfinite(float(one["value"][1])) for one in found)


def test_every_panel_has_data(stage: Stage) -> None:
    asked = boards.of_panels()
    assert len(asked) > 50
    empty = [query for query in asked if not has_data(stage, query) and not is_excused(query)]
    assert [f"{query.where}: {query.text}" for query in empty] == []


def test_every_variable_lists_something(stage: Stage) -> None:
    for query, label in boards.of_variables():
        found = stage.prometheus.ask(query.text)
        assert all(one["metric"].get(label) for one in found), query.where
        assert found, query.where


def test_every_alert_is_evaluated_and_its_data_is_there(stage: Stage) -> None:
    """Without its comparison an alert gives 0 or 1; it gives nothing only where it has no data."""
    for alert in boards.of_alerts():
        stage.prometheus.ask(alert.text)
        bare = boards.without_filter(alert)
        assert bare.text != alert.text, alert.where
        assert stage.prometheus.ask(bare.text), bare


def test_prometheus_loaded_the_alerts_and_none_of_them_fails(stage: Stage) -> None:
    until(lambda: all(rule["lastEvaluation"] > "0002" for rule in stage.prometheus.rules()))
    health = {rule["name"]: rule["health"] for rule in stage.prometheus.rules()}
    assert set(health) == {query.where.partition(" ")[2] for query in boards.of_alerts()}
    assert set(health.values()) == {"ok"}


@pytest.mark.parametrize(
    "series",
    [
        "acp_session_seconds_bucket",
        "acp_attempt_service_seconds_bucket",
        "acp_attempt_wait_seconds_bucket",
        'acp_attempts_total{outcome="INTERNAL"}',
        'acp_sessions_ended_total{status="FAILED"}',
    ],
)
def test_an_exemplar_that_prometheus_stored_is_a_trace_that_the_collector_has(
    stage: Stage, series: str
) -> None:
    until(lambda: bool(stage.prometheus.exemplars(series)))
    found = [
        one["labels"] for each in stage.prometheus.exemplars(series) for one in each["exemplars"]
    ]
    assert all(set(labels) == {"trace_id", "lineage_id"} for labels in found)
    for labels in found:
        spans = stage.receiver.of_trace(labels["trace_id"], 1)
        assert {one.attributes["acp.lineage_id"] for one in spans} == {labels["lineage_id"]}


def test_panels_with_exemplars_ask_for_series_that_have_some(stage: Stage) -> None:
    asked = [query for query in boards.of_panels() if query.exemplars]
    assert asked
    without = [query.where for query in asked if not stage.prometheus.exemplars(query.text)]
    assert without == []


def test_no_id_is_a_label(stage: Stage) -> None:
    for one in stage.prometheus.ask('{__name__=~"acp_.+"}'):
        assert not {"trace_id", "lineage_id", "session_id"} & set(one["metric"]), one["metric"]


def test_labels_are_those_of_the_table(stage: Stage) -> None:
    table = boards.documented()
    scraped = {"__name__", "instance", "job", "le"}
    for one in stage.prometheus.ask('{__name__=~"acp_.+"}'):
        name = boards.family(one["metric"]["__name__"])
        assert set(one["metric"]) - scraped == set(table[name][1]), name
