"""Metrics: what is counted comes out under its name, and labels stay few."""

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from gateway.telemetry.instruments import CHILDREN_MAX
from gateway.telemetry.metrics import ALARMING, LOOPS, OUTCOMES_MAX, AttemptMeasure, Metrics

OPEN_METRICS = "application/openmetrics-text; version=1.0.0"
TRACE = "0af7651916cd43dd8448eb211c80319c"
RECORDED = (f"00-{TRACE}-b7ad6b7169203331-01", "S.abc")
UNRECORDED = (f"00-{TRACE}-b7ad6b7169203331-00", "S.def")


@pytest.fixture
def metrics() -> Metrics:
    return Metrics()


def value(metrics: Metrics, name: str, **labels: str) -> float | None:
    return metrics.registry.get_sample_value(name, labels)


def attempt(component: str = "ledger", outcome: str = "OK") -> AttemptMeasure:
    return AttemptMeasure(
        component=component, outcome=outcome, wait_ms=2, service_ms=40, example=RECORDED
    )


def test_sessions_are_counted_by_workflow_and_end(metrics: Metrics) -> None:
    metrics.session_opened("hotline")
    metrics.session_ended("hotline", "SUCCEEDED", open_ms=1_500, example=RECORDED)
    assert value(metrics, "acp_sessions_opened_total", workflow="hotline") == 1
    assert value(metrics, "acp_sessions_ended_total", workflow="hotline", status="SUCCEEDED") == 1
    assert value(metrics, "acp_session_seconds_sum", workflow="hotline") == 1.5


def test_waiting_and_serving_are_told_apart(metrics: Metrics) -> None:
    metrics.attempt_ended(attempt())
    metrics.attempt_ended(attempt(outcome="TIMEOUT"))
    assert value(metrics, "acp_attempts_total", component="ledger", outcome="TIMEOUT") == 1
    assert value(metrics, "acp_attempt_wait_seconds_sum", component="ledger") == 0.004
    assert value(metrics, "acp_attempt_service_seconds_sum", component="ledger") == 0.08


def test_a_component_that_makes_up_reasons_takes_no_other_components_place(
    metrics: Metrics,
) -> None:
    for number in range(CHILDREN_MAX + 1):
        metrics.attempt_ended(attempt(outcome=f"ORDER_{number}_FAILED"))
    for _ in range(3):
        metrics.attempt_ended(attempt(component="cards", outcome="TIMEOUT"))
    assert value(metrics, "acp_attempts_total", component="cards", outcome="TIMEOUT") == 3
    rest = value(metrics, "acp_attempts_total", component="ledger", outcome="other")
    assert rest == CHILDREN_MAX + 1 - OUTCOMES_MAX


def test_refusals_decisions_and_survived_failures_are_counted(metrics: Metrics) -> None:
    metrics.refused("OVERLOADED")
    metrics.decided("FAILED", "RETRY")
    metrics.loop_failed("driver")
    assert value(metrics, "acp_refusals_total", reason="OVERLOADED") == 1
    assert value(metrics, "acp_recovery_decisions_total", trigger="FAILED", option="RETRY") == 1
    assert value(metrics, "acp_loop_failures_total", loop="driver") == 1


def test_a_group_commit_counts_its_events_once(metrics: Metrics) -> None:
    metrics.journal_flushed(32, flush_s=0.002)
    assert value(metrics, "acp_journal_events_total") == 32
    assert value(metrics, "acp_journal_flush_seconds_count") == 1


def test_gauges_are_read_when_scraped(metrics: Metrics) -> None:
    waiting = [3.0]
    metrics.watch("outbox_lag_events", "Not yet written", read=lambda: waiting[0])
    metrics.watch_by(
        "queue_depth",
        "Calls that wait",
        label="step_type",
        reads={"plan": lambda: 1.0, "tool": lambda: waiting[0]},
    )
    waiting[0] = 7.0
    assert value(metrics, "acp_outbox_lag_events") == 7
    assert value(metrics, "acp_queue_depth", step_type="tool") == 7


def exemplars(metrics: Metrics) -> dict[str, dict[str, str]]:
    """Labels of the exemplars that a scraper of OpenMetrics reads, by the name of the sample."""
    content_type, text = metrics.render(OPEN_METRICS)
    assert content_type.startswith("application/openmetrics-text")
    return {
        sample.name: dict(sample.exemplar.labels)
        for family in text_string_to_metric_families(text.decode())  # type: ignore[no-untyped-call]
        for sample in family.samples
        if sample.exemplar is not None
    }


def test_trace_and_lineage_are_exemplars_for_those_that_ask_and_never_labels(
    metrics: Metrics,
) -> None:
    metrics.attempt_ended(attempt(outcome="TIMEOUT"))
    metrics.session_ended("w", "FAILED", open_ms=1, example=RECORDED)
    wanted = {"trace_id": TRACE, "lineage_id": "S.abc"}
    assert exemplars(metrics) == {
        "acp_attempts_total": wanted,
        "acp_attempt_wait_seconds_bucket": wanted,
        "acp_attempt_service_seconds_bucket": wanted,
        "acp_sessions_ended_total": wanted,
        "acp_session_seconds_bucket": wanted,
    }
    content_type, plain_text = metrics.render()
    assert content_type.startswith("text/plain")
    assert b"lineage_id" not in plain_text
    assert TRACE.encode() not in plain_text


def test_what_went_well_has_its_examples_in_the_histograms_alone(metrics: Metrics) -> None:
    metrics.attempt_ended(attempt())
    metrics.session_ended("w", "SUCCEEDED", open_ms=1, example=RECORDED)
    found = exemplars(metrics)
    assert not {"acp_attempts_total", "acp_sessions_ended_total"} & set(found)


def test_no_exemplar_names_a_trace_that_was_not_recorded(metrics: Metrics) -> None:
    metrics.session_ended("w", "SUCCEEDED", open_ms=1, example=UNRECORDED)
    assert exemplars(metrics)["acp_session_seconds_bucket"] == {"lineage_id": "S.def"}


def test_an_example_without_a_trace_does_not_take_the_place_of_one_with(metrics: Metrics) -> None:
    for example in (UNRECORDED, RECORDED, UNRECORDED):
        metrics.session_ended("w", "FAILED", open_ms=1, example=example)
    found = exemplars(metrics)
    assert {one["trace_id"] for one in found.values()} == {TRACE}


def test_labels_past_the_bound_share_one_child(metrics: Metrics) -> None:
    for number in range(CHILDREN_MAX - len(ALARMING) + 5):
        metrics.refused(f"R{number}")
    assert value(metrics, "acp_refusals_total", reason="other") == 5
    metrics.refused("R0")
    assert value(metrics, "acp_refusals_total", reason="R0") == 2


def test_two_gateways_in_one_process_count_apart(metrics: Metrics) -> None:
    metrics.refused("OVERLOADED")
    assert value(Metrics(), "acp_refusals_total", reason="OVERLOADED") == 0


def test_what_alerts_wait_for_is_told_before_it_happens(metrics: Metrics) -> None:
    for reason in ALARMING:
        assert value(metrics, "acp_refusals_total", reason=reason) == 0
    for loop in LOOPS:
        assert value(metrics, "acp_loop_failures_total", loop=loop) == 0
