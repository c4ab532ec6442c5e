"""Everything one gateway counts, on a registry of its own, so that two gateways do not mix.

Labels are few and come from the operator's files: components, workflows, reasons. Trace and lineage
ids are never labels; they ride as exemplars of latencies and of what failed.
"""

from collections.abc import Callable

import msgspec
from prometheus_client import CollectorRegistry, Gauge
from prometheus_client.core import CounterMetricFamily
from prometheus_client.exposition import choose_encoder

from gateway.telemetry.instruments import (
    OTHER,
    Count,
    Counts,
    Example,
    Figures,
    Labelled,
    Spread,
    Spreads,
)

# From the journal's 7 us append to a model server's minute.
LATENCY_BUCKETS_S = (
    *(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5),
    *(1.0, 2.5, 5.0, 10.0, 30.0, 60.0),
)
FLUSH_BUCKETS_S = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 1.0)
SESSION_BUCKETS_S = (0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0, 600.0, 3600.0)


# A component has a dozen ways to fail; one that makes up a reason for each call must not take the
# places of all the others.
OUTCOMES_MAX = 50

# Told as 0 from the start: `increase` does not see the first of a series that begins with it, and
# these are what alerts wait for.
LOOPS = ("drills", "event loop", "prober", "rollouts")
ALARMING = (
    *("DATA_LOSS", "INTERNAL", "OVERLOADED", "PERMISSION_DENIED", "UNAUTHENTICATED"),
    "UNAVAILABLE",
)

# What needs no example in a counter: it is in the histograms beside.
WELL = frozenset({"OK", "SUPERSEDED", "SUCCEEDED", "CANCELLED"})


class AttemptMeasure(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt that ended. `outcome` is OK or the error's reason; waiting and serving are
    told apart (R12)."""

    component: str
    outcome: str
    wait_ms: float
    service_ms: float
    example: Example


class _Attempts:
    """What is counted of one component's attempts: looked up once, not at each of their ends."""

    __slots__ = ("_component", "_counts", "_of_outcome", "service_s", "wait_s")

    def __init__(
        self, component: str, counts: Counts, *, wait_s: Spread, service_s: Spread
    ) -> None:
        self._component = component
        self._counts = counts
        self._of_outcome: dict[str, Count] = {}
        self.wait_s = wait_s
        self.service_s = service_s

    def ended(self, outcome: str) -> Count:
        """The count of this outcome; past the bound all new ones share one."""
        found = self._of_outcome.get(outcome)
        if found is None:
            if len(self._of_outcome) >= OUTCOMES_MAX:
                outcome = OTHER
            found = self._of_outcome[outcome] = self._counts.at(self._component, outcome)
        return found


class Metrics:
    """Everything this gateway counts. Methods are cheap and may be called on the loop."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._opened = self._counts("sessions_opened", "Sessions opened", "workflow")
        self._ended = self._counts("sessions_ended", "Sessions ended", "workflow", "status")
        self._session_s = self._spreads(
            "session_seconds", "Open to end", "workflow", bounds=SESSION_BUCKETS_S
        )
        self._of_component: dict[str, _Attempts] = {}
        self._attempts = self._counts("attempts", "Attempts ended", "component", "outcome")
        self._wait_s = self._spreads("attempt_wait_seconds", "Waiting in the gateway", "component")
        self._service_s = self._spreads("attempt_service_seconds", "Sent to answered", "component")
        self._decisions = self._counts(
            "recovery_decisions", "Recovery decisions", "trigger", "option"
        )
        self._component_sessions = self._counts(
            "component_sessions", "Sessions a component took part in", "component"
        )
        self._component_fallbacks = self._counts(
            "component_fallbacks", "Of those, which fell back because of it", "component"
        )
        self._refusals = self._counts("refusals", "Requests the gateway refused", "reason")
        self._sla_breaches = self._counts(
            "sla_breaches", "Breaches of a contract's SLA", "workflow", "component", "demand"
        )
        self._sla_barred = self._counts(
            "sla_barred_calls", "Calls not made during a breach", "workflow", "component"
        )
        self._values = self._counts(
            "semantic_values", "Values looked up in a domain", "workflow", "how"
        )
        self._deferrals = self._counts("deferrals", "Attempts put off", "policy")
        self._breakers = {
            "open": self._counts("breaker_opened", "Breakers that opened", "component"),
            "closed": self._counts("breaker_closed", "Breakers that closed", "component"),
        }
        self._fallback_routes = self._counts(
            "fallback_sessions", "Sessions opened while rules answer", "workflow", "route"
        )
        self._fallback_changes = self._counts(
            "fallback_changes", "Rules took over, or gave back", "workflow", "to"
        )
        self._fallback_drills = self._counts(
            "fallback_drills", "Drills of the rules", "workflow", "outcome"
        )
        self._loop_failures = self._counts(
            "loop_failures", "Failures a loop survived: our bugs", "loop"
        )
        self._twins = self._counts("rollout_twins", "Twin sessions beside others", "outcome")
        self._rollout_changes = self._counts(
            "rollout_changes", "Changes of rollouts", "stage", "status"
        )
        self._journal_events = self._counts("journal_events", "Events appended").at()
        self._flush_s = self._spreads(
            "journal_flush_seconds", "One group commit", bounds=FLUSH_BUCKETS_S
        ).at()

        for loop in LOOPS:
            self._loop_failures.at(loop)
        for reason in ALARMING:
            self._refusals.at(reason)

    def session_opened(self, workflow: str) -> None:
        """A session was opened durably."""
        self._opened.at(workflow).add()

    def session_ended(
        self, workflow: str, status: str, *, open_ms: float, example: Example
    ) -> None:
        """A session reached its terminal status."""
        self._ended.at(workflow, status).add(1, None if status in WELL else example)
        self._session_s.at(workflow).add(open_ms / 1000, example)

    def took_part(self, component: str, *, to_blame: bool) -> None:
        """A session ended in which this component had calls; `to_blame`: it is why it fell back."""
        self._component_sessions.at(component).add()
        self._component_fallbacks.at(component).add(to_blame)

    def attempt_ended(self, measure: AttemptMeasure) -> None:
        """An attempt has its one terminal event."""
        counted = self._of_component.get(measure.component)
        if counted is None:
            counted = self._of_component[measure.component] = self._counted(measure.component)
        example = measure.example
        counted.ended(measure.outcome).add(1, None if measure.outcome in WELL else example)
        counted.wait_s.add(measure.wait_ms / 1000, example)
        counted.service_s.add(measure.service_ms / 1000, example)

    def _counted(self, component: str) -> _Attempts:
        wait_s, service_s = self._wait_s.at(component), self._service_s.at(component)
        return _Attempts(component, self._attempts, wait_s=wait_s, service_s=service_s)

    def decided(self, trigger: str, option: str) -> None:
        """The recovery policy chose."""
        self._decisions.at(trigger, option).add()

    def twin_ended(self, outcome: str) -> None:
        """A twin was counted, had no record, or was dropped; no caller's session is a twin."""
        self._twins.at(outcome).add()

    def rollout_changed(self, stage: str, status: str) -> None:
        """A rollout moved on, was paused, resumed or taken back."""
        self._rollout_changes.at(stage, status).add()

    def refused(self, reason: str) -> None:
        """The gateway itself answered with an error."""
        self._refusals.at(reason).add()

    def sla_breached(self, workflow: str, component: str, *, demand: str) -> None:
        """A breach of this demand has begun."""
        self._sla_breaches.at(workflow, component, demand).add()

    def sla_barred(self, workflow: str, component: str) -> None:
        """A call was not made because of a breach."""
        self._sla_barred.at(workflow, component).add()

    def values_mapped(self, workflow: str, how: str, *, count: int = 1) -> None:
        """Values with a declared domain came in; `how` they were found there, or REFUSED."""
        self._values.at(workflow, how).add(count)

    def deferred(self, policy: str) -> None:
        """An attempt was put off."""
        self._deferrals.at(policy).add()

    def breaker_changed(self, component: str, phase: str) -> None:
        """The breaker of one of its instances opened or closed."""
        if phase in self._breakers:
            self._breakers[phase].at(component).add()

    def fallback_routed(self, workflow: str, route: str) -> None:
        """A session was answered by the rules, or goes to see whether the components are well."""
        self._fallback_routes.at(workflow, route).add()

    def fallback_changed(self, workflow: str, to: str) -> None:
        """The rules answer from now on, or the components do again."""
        self._fallback_changes.at(workflow, to).add()

    def fallback_drilled(self, workflow: str, outcome: str) -> None:
        """The rules were tried on recorded inputs."""
        self._fallback_drills.at(workflow, outcome).add()

    def loop_failed(self, loop: str) -> None:
        """A loop that must live caught what it did not expect."""
        self._loop_failures.at(loop).add()

    def journal_flushed(self, events: int, *, flush_s: float) -> None:
        """One group of appended events is on disk."""
        self._journal_events.add(events)
        self._flush_s.add(flush_s)

    def watch(self, name: str, help_text: str, *, read: Callable[[], float]) -> None:
        """A gauge whose value is asked for at every scrape, such as outbox_lag_events."""
        self._gauge(name, help_text).set_function(read)

    def watch_figures(
        self, name: str, help_text: str, *, read: Callable[[], dict[str, dict[str, float]]]
    ) -> None:
        """Gauges by component and figure, whichever there are when somebody scrapes."""
        self.registry.register(Figures(f"acp_{name}", help_text, read=read))

    def watch_labelled(
        self, name: str, help_text: str, *, label: str, read: Callable[[], dict[str, float]]
    ) -> None:
        """Gauges of one name by a label whose values are known only when somebody scrapes."""
        self.registry.register(Labelled(f"acp_{name}", help_text, label=label, read=read))

    def watch_by(
        self, name: str, help_text: str, *, label: str, reads: dict[str, Callable[[], float]]
    ) -> None:
        """Gauges of one name by label value, such as queue_depth by step_type."""
        gauge = self._gauge(name, help_text, label)
        for value, read in reads.items():
            gauge.labels(value).set_function(read)

    def watch_counts(
        self, name: str, help_text: str, *, label: str, read: Callable[[], dict[str, int]]
    ) -> None:
        """A counter by one label that somebody else keeps, such as spans_lost by why."""
        self.registry.register(
            Labelled(f"acp_{name}", help_text, label=label, read=read, family=CounterMetricFamily)
        )

    def render(self, accept: str = "") -> tuple[str, bytes]:
        """Content type and body for GET /metrics; exemplars go to those that ask OpenMetrics."""
        encode, content_type = choose_encoder(accept)
        return content_type, encode(self.registry)

    def _gauge(self, name: str, help_text: str, *labels: str) -> Gauge:
        return Gauge(f"acp_{name}", help_text, labels, registry=self.registry)

    def _counts(self, name: str, help_text: str, *labels: str) -> Counts:
        made = Counts(f"acp_{name}", help_text, *labels)
        self.registry.register(made)
        return made

    def _spreads(
        self,
        name: str,
        help_text: str,
        *labels: str,
        bounds: tuple[float, ...] = LATENCY_BUCKETS_S,
    ) -> Spreads:
        made = Spreads(f"acp_{name}", help_text, *labels, bounds=bounds)
        self.registry.register(made)
        return made
