"""Prometheus metrics of one gateway, on a registry of its own, so that two gateways do not mix.

A child is bound to its labels once and kept (0.4 us per count; looking it up by labels costs 1.4).
Labels are few and come from the operator's files: components, workflows, reasons. Session and
lineage ids are never labels; a lineage id rides as the exemplar of a latency.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import choose_encoder

# From the journal's 7 us append to a model server's minute.
LATENCY_BUCKETS_S = (
    *(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5),
    *(1.0, 2.5, 5.0, 10.0, 30.0, 60.0),
)
FLUSH_BUCKETS_S = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 1.0)
SESSION_BUCKETS_S = (0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0, 600.0, 3600.0)
# Children per metric: far over any sane set of files, under what hurts a scraper.
CHILDREN_MAX = 2_000
OTHER = "other"

Metric = TypeVar("Metric", Counter, Gauge, Histogram)


class _Children(Generic[Metric]):
    """Children of one metric by their label values; past the bound all share one named `other`."""

    __slots__ = ("_bound", "_metric")

    def __init__(self, metric: Metric) -> None:
        self._metric: Metric = metric
        self._bound: dict[tuple[str, ...], Metric] = {}

    def at(self, *labels: str) -> Metric:
        """The child with these label values."""
        child = self._bound.get(labels)
        if child is None:
            known = labels if len(self._bound) < CHILDREN_MAX else (OTHER,) * len(labels)
            child = self._metric.labels(*known)
            if known is labels:
                self._bound[labels] = child
        return child


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptMeasure:
    """One attempt that ended. `outcome` is OK or the error's reason; waiting and serving are
    told apart (R12)."""

    component: str
    outcome: str
    wait_ms: float
    service_ms: float
    lineage_id: str


class Metrics:
    """Everything this gateway counts. Methods are cheap and may be called on the loop."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._opened = _Children(self._counter("sessions_opened", "Sessions opened", "workflow"))
        self._ended = _Children(
            self._counter("sessions_ended", "Sessions ended", "workflow", "status")
        )
        self._session_s = _Children(
            self._histogram("session_seconds", "Open to end", "workflow", buckets=SESSION_BUCKETS_S)
        )
        self._attempts = _Children(
            self._counter("attempts", "Attempts ended", "component", "outcome")
        )
        self._wait_s = _Children(
            self._histogram("attempt_wait_seconds", "Waiting in the gateway", "component")
        )
        self._service_s = _Children(
            self._histogram("attempt_service_seconds", "Sent to answered", "component")
        )
        self._decisions = _Children(
            self._counter("recovery_decisions", "Recovery decisions", "trigger", "option")
        )
        self._refusals = _Children(
            self._counter("refusals", "Requests the gateway refused", "reason")
        )
        self._loop_failures = _Children(
            self._counter("loop_failures", "Failures a loop survived: our bugs", "loop")
        )
        self._journal_events = self._counter("journal_events", "Events appended")
        self._flush_s = self._histogram(
            "journal_flush_seconds", "One group commit", buckets=FLUSH_BUCKETS_S
        )

    def session_opened(self, workflow: str) -> None:
        """A session was opened durably."""
        self._opened.at(workflow).inc()

    def session_ended(self, workflow: str, status: str, *, open_ms: float) -> None:
        """A session reached its terminal status."""
        self._ended.at(workflow, status).inc()
        self._session_s.at(workflow).observe(open_ms / 1000)

    def attempt_ended(self, measure: AttemptMeasure) -> None:
        """An attempt has its one terminal event."""
        self._attempts.at(measure.component, measure.outcome).inc()
        self._wait_s.at(measure.component).observe(measure.wait_ms / 1000)
        # An exemplar is checked label by label at each use: one a attempt is enough to find it.
        exemplar = {"lineage_id": measure.lineage_id}
        self._service_s.at(measure.component).observe(measure.service_ms / 1000, exemplar)

    def decided(self, trigger: str, option: str) -> None:
        """The recovery policy chose."""
        self._decisions.at(trigger, option).inc()

    def refused(self, reason: str) -> None:
        """The gateway itself answered with an error."""
        self._refusals.at(reason).inc()

    def loop_failed(self, loop: str) -> None:
        """A loop that must live caught what it did not expect."""
        self._loop_failures.at(loop).inc()

    def journal_flushed(self, events: int, *, flush_s: float) -> None:
        """One group of appended events is on disk."""
        self._journal_events.inc(events)
        self._flush_s.observe(flush_s)

    def watch(self, name: str, help_text: str, *, read: Callable[[], float]) -> None:
        """A gauge whose value is asked for at every scrape, such as outbox_lag_events."""
        self._gauge(name, help_text).set_function(read)

    def watch_by(
        self, name: str, help_text: str, *, label: str, reads: dict[str, Callable[[], float]]
    ) -> None:
        """Gauges of one name by label value, such as queue_depth by step_type."""
        gauge = self._gauge(name, help_text, label)
        for value, read in reads.items():
            gauge.labels(value).set_function(read)

    def render(self, accept: str = "") -> tuple[str, bytes]:
        """Content type and body for GET /metrics; exemplars go to those that ask OpenMetrics."""
        encode, content_type = choose_encoder(accept)
        return content_type, encode(self.registry)

    def _counter(self, name: str, help_text: str, *labels: str) -> Counter:
        return Counter(f"acp_{name}", help_text, labels, registry=self.registry)

    def _gauge(self, name: str, help_text: str, *labels: str) -> Gauge:
        return Gauge(f"acp_{name}", help_text, labels, registry=self.registry)

    def _histogram(
        self,
        name: str,
        help_text: str,
        *labels: str,
        buckets: tuple[float, ...] = LATENCY_BUCKETS_S,
    ) -> Histogram:
        return Histogram(f"acp_{name}", help_text, labels, buckets=buckets, registry=self.registry)
