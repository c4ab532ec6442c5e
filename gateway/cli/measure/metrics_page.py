"""The few numbers of a gateway's /metrics that the doctor divides by."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from prometheus_client.parser import text_string_to_metric_families


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """How long a component took, as the gateway saw it: sent to answered."""

    calls: float = 0.0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    cpu_s: float = 0.0
    flushes: float = 0.0
    flush_s: float = 0.0
    loop_lag_s: float = 0.0
    sessions_open: float = 0.0
    services: dict[str, Service] = field(default_factory=dict)

    def since(self, before: "Figures") -> "Figures":
        """What was added; a gauge stays as it is."""
        return Figures(
            cpu_s=self.cpu_s - before.cpu_s,
            flushes=self.flushes - before.flushes,
            flush_s=self.flush_s - before.flush_s,
            loop_lag_s=self.loop_lag_s,
            sessions_open=self.sessions_open,
            services=self.services,
        )


_FIELD_OF = {
    "acp_process_cpu_seconds": "cpu_s",
    "acp_journal_flush_seconds_count": "flushes",
    "acp_journal_flush_seconds_sum": "flush_s",
    "acp_loop_lag_seconds": "loop_lag_s",
    "acp_sessions_open": "sessions_open",
}


def figures(page: str) -> Figures:
    """Read a page in Prometheus' text form; what is not there stays 0."""
    found: dict[str, float] = {}
    calls: dict[str, float] = {}
    seconds: dict[str, float] = {}
    for name, component, value in _samples(page):
        if name in _FIELD_OF:
            found[_FIELD_OF[name]] = value
        elif name == "acp_attempt_service_seconds_count":
            calls[component] = calls.get(component, 0.0) + value
        elif name == "acp_attempt_service_seconds_sum":
            seconds[component] = seconds.get(component, 0.0) + value
    services = {
        name: Service(calls=count, seconds=seconds.get(name, 0.0)) for name, count in calls.items()
    }
    return Figures(
        cpu_s=found.get("cpu_s", 0.0),
        flushes=found.get("flushes", 0.0),
        flush_s=found.get("flush_s", 0.0),
        loop_lag_s=found.get("loop_lag_s", 0.0),
        sessions_open=found.get("sessions_open", 0.0),
        services=services,
    )


def _samples(page: str) -> Iterator[tuple[str, str, float]]:
    for family in text_string_to_metric_families(page):
        for sample in family.samples:
            yield sample.name, sample.labels.get("component", ""), sample.value
