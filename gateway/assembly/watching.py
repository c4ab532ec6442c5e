"""Gauges that are read when somebody scrapes: what is open, queued, attached, beside."""

from collections.abc import Callable

from acp_spec.model.enums import StepType
from gateway.governance.rollout import Status
from gateway.runtime.driver import Driver
from gateway.runtime.executors import Executors
from gateway.runtime.fallback_drills import Drills
from gateway.runtime.outbox import Outbox
from gateway.runtime.rollouts import Rollouts
from gateway.runtime.signs import Signs
from gateway.runtime.sla_watch import SlaWatch
from gateway.runtime.target_views import TargetViews
from gateway.runtime.twins import Twins
from gateway.telemetry.metrics import Metrics
from gateway.telemetry.spans import Fate, SpanSink
from gateway.transports.attach_hub import AttachHub


def watch(metrics: Metrics, driver: Driver, *, executors: Executors, outbox: Outbox) -> None:
    """Gauges that are read when somebody scrapes."""
    metrics.watch("sessions_open", "Sessions not ended", read=lambda: driver.open_sessions)
    metrics.watch("sessions_live", "Sessions in memory", read=lambda: len(driver.sessions))
    metrics.watch("calls_in_flight", "Attempts sent", read=lambda: executors.inflight)
    metrics.watch_by(
        "queue_depth",
        "Calls that wait for a slot of their step type",
        label="step_type",
        reads={kind.value: _depth(executors, kind) for kind in StepType},
    )
    metrics.watch("outbox_lag", "Trajectories to deliver", read=lambda: outbox.lag)


def _depth(executors: Executors, kind: StepType) -> Callable[[], float]:
    return lambda: executors.admitting.queue_depth(kind.value)


def watch_beside(metrics: Metrics, hub: AttachHub, *, twins: Twins, sla: SlaWatch) -> None:
    """Attached components, twins of sessions, breaches of what was promised."""
    metrics.watch("sla_breaches_open", "Breaches that stand", read=lambda: sla.standing)
    waiting = "Attempts that wait for a credit of an attached component, or for its return"
    metrics.watch("attached_instances", "Attached streams", read=lambda: hub.attached)
    metrics.watch("attach_calls_waiting", waiting, read=lambda: hub.waiting)
    metrics.watch("twins_running", "Twin sessions under way", read=lambda: twins.running)
    metrics.watch("twins_waiting", "Twin sessions that wait", read=lambda: twins.waiting)


def watch_fallbacks(metrics: Metrics, drills: Drills) -> None:
    """Who is answered by rules now, and whose rules did not pass their last drill."""
    answering = "Workflows, counted per tenant, that their rules answer"
    failing = "Workflows, counted per tenant, whose last drill failed"
    metrics.watch("fallback_rules_answering", answering, read=drills.answering)
    metrics.watch("fallback_drills_failing", failing, read=drills.failing)


def watch_spans(metrics: Metrics, spans: SpanSink) -> None:
    """What became of the spans that were offered; nothing is while tracing is off."""
    lost = [one for one in Fate if one is not Fate.EXPORTED]
    metrics.watch("spans_waiting", "Spans to be sent", read=lambda: spans.waiting)
    metrics.watch_counts(
        "spans_exported",
        "Spans that a collector took",
        label="protocol",
        read=lambda: {"otlp": spans.fates[Fate.EXPORTED]},
    )
    metrics.watch_counts(
        "spans_lost",
        "Spans that no collector has",
        label="why",
        read=lambda: {one.value: spans.fates[one] for one in lost},
    )


def watch_row(metrics: Metrics, views: TargetViews, *, signs: Signs) -> None:
    """Breakers and what components say of their load."""
    metrics.watch("breakers_open", "Instances that get no calls now", read=lambda: views.broken)
    metrics.watch_figures(
        "component_load", "What components report, the worst of their instances", read=signs.worst
    )


def watch_rollouts(metrics: Metrics, rollouts: Rollouts) -> None:
    """How many go on or wait for a person, and bad news of the last day."""
    metrics.watch_by(
        "rollouts",
        "Rollouts that are not over",
        label="status",
        reads={one.value: _count(rollouts, one) for one in (Status.RUNNING, Status.PAUSED)},
    )
    taken_back = "Rollouts that their own rules took back within a day"
    metrics.watch("rollouts_taken_back", taken_back, read=rollouts.taken_back)


def _count(rollouts: Rollouts, status: Status) -> Callable[[], float]:
    return lambda: rollouts.count(status)
