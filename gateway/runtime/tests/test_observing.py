"""The golden signals (R21), counted live and computed from the records of the same sessions."""

from collections.abc import Sequence

import pytest

from acp_spec.model.errors import Reason
from acp_spec.model.trajectory import Trajectory
from gateway.engine.events import SessionEnded
from gateway.engine.tests.casting import Cast, Said, Terms
from gateway.engine.tests.playing import Play
from gateway.engine.tests.stage import (
    CATALOG,
    FOUR_CALLS,
    Line,
    by_name,
    by_seed,
    failed,
    gave,
    judged,
    workflow_of,
)
from gateway.engine.trajectories import trajectory
from gateway.insight.signals import Signals, signals
from gateway.runtime.observing import Telemetry
from gateway.telemetry.metrics import SESSION_BUCKETS_S, Metrics
from gateway.telemetry.spans import NoSpans

FALLING = workflow_of(FOUR_CALLS + "fallback: {output: {n: 0}}\n")
SESSIONS = 80


def played(seed: int) -> Play:
    """A session that takes between milliseconds and a minute, and ends in any way there is."""

    def sometimes(name: str, odds: float, line: Line) -> dict[str, Line]:
        return {name: line} if by_seed(seed, name) < odds else {}

    slow_ms = int(4_000 * by_seed(seed, "time") ** 4)
    lines: dict[str, Line] = (
        {"read": Said(response=gave(1).response, after_ms=slow_ms)}
        | sometimes("read", 0.3, failed(Reason.INTERNAL))
        | sometimes("judge", 0.4, judged("FALLBACK"))
        | ({"judge": judged("ABORT")} if by_seed(seed, "abort") < 0.2 else {})
    )
    cast = Cast(component=by_name(lines))
    play = Play(FALLING, CATALOG, cast, terms=Terms(seed=seed)).open()
    if by_seed(seed, "cancel") < 0.1:
        play.cancel()
    return play.run(until_ms=120_000)


@pytest.fixture(scope="module")
def told() -> tuple[Metrics, Signals]:
    """The same sessions, as the gateway counted them and as their records have them."""
    metrics = Metrics()
    telemetry = Telemetry(metrics, NoSpans())
    records: list[Trajectory] = []
    for seed in range(SESSIONS):
        play = played(seed)
        (ended,) = (event for event in play.journal if isinstance(event, SessionEnded))
        telemetry.seen(play.state, ended)
        records.append(trajectory(play.state))
    return metrics, signals(records)


def counted(metrics: Metrics, name: str, **labels: str) -> float:
    return metrics.registry.get_sample_value(f"acp_{name}", labels) or 0.0


def test_the_success_rate_is_the_same(told: tuple[Metrics, Signals]) -> None:
    metrics, found = told
    (one,) = found.workflows

    def ended(status: str) -> float:
        return counted(metrics, "sessions_ended_total", workflow=one.workflow, status=status)

    assert (one.succeeded, one.failed, one.cancelled) == (
        ended("SUCCEEDED"),
        ended("FAILED"),
        ended("CANCELLED"),
    )
    assert one.success_rate == ended("SUCCEEDED") / (ended("SUCCEEDED") + ended("FAILED"))
    assert min(one.succeeded, one.failed, one.cancelled) > 0


def test_p95_lies_in_the_histograms_bucket(told: tuple[Metrics, Signals]) -> None:
    metrics, found = told
    (one,) = found.workflows

    def below(bound: str) -> float:
        return counted(metrics, "session_seconds_bucket", workflow=one.workflow, le=bound)

    reached = [le for le in SESSION_BUCKETS_S if below(str(le)) >= 0.95 * below("+Inf")]
    upper = reached[0]
    lower = max(le for le in (0.0, *SESSION_BUCKETS_S) if le < upper)
    assert lower < one.p95_ms / 1000 <= upper


def test_each_components_fallback_rate_is_the_same(told: tuple[Metrics, Signals]) -> None:
    metrics, found = told
    assert {one.component for one in found.components} == components(metrics)
    for one in found.components:
        labels = {"component": one.component}
        assert one.sessions == counted(metrics, "component_sessions_total", **labels)
        assert one.fallbacks == counted(metrics, "component_fallbacks_total", **labels)
    highest = found.highest_fallback
    assert highest is not None
    assert highest.component == "tools"
    assert 0 < highest.fallbacks < highest.sessions


def components(metrics: Metrics) -> set[str]:
    families: Sequence[str] = [
        sample.labels["component"]
        for family in metrics.registry.collect()
        for sample in family.samples
        if sample.name == "acp_component_sessions_total"
    ]
    return set(families)
