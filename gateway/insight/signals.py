"""The golden signals (R21) of a window of records: success, p95, fallbacks by component.

The same figures as the gateway's metrics over the same sessions: `acp_sessions_ended_total`,
`acp_session_seconds`, `acp_component_sessions_total`, `acp_component_fallbacks_total`. The fourth,
the variance of contributions, is `contribution.py`'s. Pure.
"""

import math
from collections.abc import Iterable

import msgspec

from acp_spec.model.enums import TERMINAL_SESSION, SessionStatus
from acp_spec.model.trajectory import Trajectory
from gateway.engine.record_blame import of_record

P95 = 0.95


class WorkflowSignals(msgspec.Struct, frozen=True, kw_only=True):
    """`success_rate`: of those that succeeded or failed, None of none; cancelled ones are neither.
    `p95_ms`: from opened to ended, of all that ended."""

    workflow: str
    succeeded: int
    failed: int
    cancelled: int
    success_rate: float | None
    p95_ms: int


class ComponentSignals(msgspec.Struct, frozen=True, kw_only=True):
    """Sessions that it took part in, those of them that fell back because of it, and the rate."""

    component: str
    sessions: int
    fallbacks: int
    fallback_rate: float


class Signals(msgspec.Struct, frozen=True, kw_only=True):
    """Workflows by name; components by rate, the highest first."""

    workflows: tuple[WorkflowSignals, ...]
    components: tuple[ComponentSignals, ...]

    @property
    def highest_fallback(self) -> ComponentSignals | None:
        """The component with the highest fallback rate."""
        return self.components[0] if self.components else None


def signals(ended: Iterable[Trajectory]) -> Signals:
    """Of the sessions in a window that ended; twins and sessions under way are passed over."""
    durations: dict[str, list[int]] = {}
    statuses: dict[str, dict[SessionStatus, int]] = {}
    taking_part: dict[str, int] = {}
    blamed: dict[str, int] = {}
    for one in ended:
        if one.twin_of or one.status not in TERMINAL_SESSION:
            continue
        durations.setdefault(one.workflow, []).append(duration_ms(one))
        of = statuses.setdefault(one.workflow, {})
        of[one.status] = of.get(one.status, 0) + 1
        for component, is_blamed in of_record(one):
            taking_part[component] = taking_part.get(component, 0) + 1
            blamed[component] = blamed.get(component, 0) + is_blamed
    rows = [_component(name, taking_part[name], fallbacks=blamed[name]) for name in taking_part]
    return Signals(
        workflows=tuple(
            _workflow(name, statuses[name], durations=durations[name]) for name in sorted(durations)
        ),
        components=tuple(sorted(rows, key=lambda one: (-one.fallback_rate, one.component))),
    )


def exposition(found: Signals, variance: float | None) -> str:
    """As Prometheus reads it from a file, so that a query and a scrape can stand side by side."""
    lines = []
    for name, label, rows in (
        ("success_rate", "workflow", [(one.workflow, one.success_rate) for one in found.workflows]),
        ("p95_seconds", "workflow", [(one.workflow, one.p95_ms / 1000) for one in found.workflows]),
        (
            "fallback_rate",
            "component",
            [(one.component, one.fallback_rate) for one in found.components],
        ),
    ):
        lines.append(f"# TYPE acp_records_{name} gauge")
        lines += [
            f"acp_records_{name}{{{label}={_quoted(value)}}} {figure!r}"
            for value, figure in rows
            if figure is not None
        ]
    if variance is not None:
        lines.append("# TYPE acp_records_contribution_variance gauge")
        lines.append(f"acp_records_contribution_variance {variance!r}")
    return "\n".join(lines) + "\n"


def _quoted(label: str) -> str:
    escaped = label.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def duration_ms(one: Trajectory) -> int:
    """From opened to ended."""
    ended = one.ended_at_ms
    return (one.opened_at_ms if ended is None else ended) - one.opened_at_ms


def quantile_ms(durations: list[int], share: float) -> int:
    """The least duration that this share of all does not exceed (nearest rank)."""
    return sorted(durations)[max(0, math.ceil(share * len(durations)) - 1)]


def _workflow(
    name: str, statuses: dict[SessionStatus, int], *, durations: list[int]
) -> WorkflowSignals:
    succeeded = statuses.get(SessionStatus.SUCCEEDED, 0)
    failed = statuses.get(SessionStatus.FAILED, 0)
    decided = succeeded + failed
    return WorkflowSignals(
        workflow=name,
        succeeded=succeeded,
        failed=failed,
        cancelled=statuses.get(SessionStatus.CANCELLED, 0),
        success_rate=succeeded / decided if decided else None,
        p95_ms=quantile_ms(durations, P95),
    )


def _component(name: str, sessions: int, *, fallbacks: int) -> ComponentSignals:
    return ComponentSignals(
        component=name,
        sessions=sessions,
        fallbacks=fallbacks,
        fallback_rate=fallbacks / sessions,
    )
