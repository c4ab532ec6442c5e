"""What the configuration means to the parts: values made of settings alone."""

from importlib.metadata import version

from gateway.assembly.parameters import backoff_of
from gateway.config.settings import Settings
from gateway.engine.definition import Workflow
from gateway.runtime.clock import Clock
from gateway.runtime.lasting import Failed
from gateway.runtime.live import WorkflowOf
from gateway.runtime.opening import OpeningLimits
from gateway.runtime.prober import Prober, ProberLimits
from gateway.runtime.registry import Registry
from gateway.runtime.workflows import Workflows
from gateway.telemetry.spans import NoSpans, SpanSink


def opening_limits(settings: Settings) -> OpeningLimits:
    """Bounds and defaults of new sessions."""
    return OpeningLimits(
        node=settings.node_id,
        max_open_sessions=settings.limits.max_open_sessions,
        session_deadline_ms=settings.deadlines.session_deadline_ms,
        max_session_deadline_ms=settings.deadlines.max_session_deadline_ms,
        retry_budget=settings.retry.session_budget,
        cancel_grace_ms=settings.grace.cancel_grace_ms,
        backoff=backoff_of(settings),
        sample_ratio=settings.tracing.sample_ratio if settings.tracing.enabled else 0.0,
    )


def workflow_of(workflows: Workflows) -> WorkflowOf:
    """The workflow of a digest; None for a session without one."""

    def find(digest: str) -> Workflow | None:
        return workflows.by_digest(digest) if digest else None

    return find


def prober_of(settings: Settings, registry: Registry, *, clock: Clock, failed: Failed) -> Prober:
    """Who asks registered addresses whether they are well."""
    leases = settings.leases
    return Prober(
        registry,
        clock,
        limits=ProberLimits(
            interval_ms=leases.probe_interval_ms, timeout_ms=leases.probe_timeout_ms
        ),
        failed=failed,
    )


def spans_of(settings: Settings) -> SpanSink:
    """Where spans go."""
    tracing = settings.tracing
    if not tracing.enabled:
        return NoSpans()
    from gateway.telemetry.span_export import OtlpSpans  # 7 MB that most gateways never need

    return OtlpSpans(
        tracing.endpoint,
        headers={name: value.get_secret_value() for name, value in tracing.headers.items()},
        max_queued=tracing.max_queued,
        about={
            "service.name": "acp-gateway",
            "service.version": version("acp-decision-gateway"),
            "service.instance.id": str(settings.node_id),
        },
    )
