"""The golden signals of a handful of sessions; against the live metrics: runtime/tests."""

from prometheus_client.parser import text_string_to_metric_families

from acp_spec.model.enums import SessionStatus
from gateway.insight.signals import exposition, quantile_ms, signals
from gateway.insight.tests.records import attempt, record

FAILED, CANCELLED = SessionStatus.FAILED, SessionStatus.CANCELLED


def test_cancelled_sessions_are_neither_a_success_nor_a_failure() -> None:
    (one,) = signals(
        [record(), record(), record(status=FAILED), record(status=CANCELLED)]
    ).workflows
    assert (one.succeeded, one.failed, one.cancelled) == (2, 1, 1)
    assert one.success_rate == 2 / 3


def test_where_nothing_was_decided_there_is_no_rate() -> None:
    (one,) = signals([record(status=CANCELLED)]).workflows
    assert one.success_rate is None


def test_twins_and_sessions_under_way_are_nobodys_signal() -> None:
    found = signals([record(twin_of="s0"), record(status=SessionStatus.RUNNING)])
    assert (found.workflows, found.components, found.highest_fallback) == ((), (), None)


def test_p95_is_the_nearest_rank() -> None:
    assert quantile_ms(list(range(1, 101)), 0.95) == 95
    assert quantile_ms(list(range(1, 102)), 0.95) == 96
    assert quantile_ms([7], 0.95) == 7
    (one,) = signals([record(took_ms=took) for took in range(1, 101)]).workflows
    assert one.p95_ms == 95


def test_workflow_versions_stand_apart_and_the_worst_component_first() -> None:
    good = attempt("c2", component="books", output=1)
    found = signals(
        [
            record("s1", attempt(failed="INTERNAL"), good, fell_back=True),
            record("s2", attempt(output=1), good),
            record("s3", workflow="four@2.0.0"),
        ]
    )
    assert [one.workflow for one in found.workflows] == ["four@1.0.0", "four@2.0.0"]
    rates = [(one.component, one.sessions, one.fallback_rate) for one in found.components]
    assert rates == [("desk", 2, 0.5), ("books", 2, 0.0)]


def test_prometheus_reads_what_is_written_for_it() -> None:
    found = signals([record("s1", attempt(output=1), workflow='odd"name\\@1'), record("s2")])
    text = exposition(found, 0.25)
    read = {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    assert read[("acp_records_success_rate", 'odd"name\\@1')] == 1.0
    assert read[("acp_records_p95_seconds", "four@1.0.0")] == 0.01
    assert read[("acp_records_fallback_rate", "desk")] == 0.0
    assert read[("acp_records_contribution_variance",)] == 0.25
    assert "variance" not in exposition(found, None)
