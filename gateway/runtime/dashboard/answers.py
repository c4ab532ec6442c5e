"""The messages of `/v1/dashboard`: what a page gets. Figures nobody can tell are absent, never 0.

All times are milliseconds since the epoch. Names are those of docs/dashboard.md; additions only.
"""

import msgspec

from gateway.insight.signals import ComponentSignals, WorkflowSignals
from gateway.runtime.dashboard.open_sessions import OpenCount
from gateway.runtime.dashboard.variance import WINDOW, ContributionVariance
from gateway.stores.records.questions.components import AttemptFigures, Blame
from gateway.stores.records.questions.errors import ErrorReason
from gateway.stores.records.questions.quality import Judged
from gateway.stores.records.questions.series import SeriesPoint
from gateway.stores.records.questions.sessions import SessionItem
from gateway.stores.records.questions.workflows import WorkflowFigures


class RecordsStanding(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`lag_bytes`: of the log, not in the records yet. `problem`: why they cannot be asked."""

    state: str
    lag_bytes: int | None = None
    problem: str = ""


class ComponentStanding(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The registered instances of one version, and how they stand now."""

    name: str
    version: str
    roles: tuple[str, ...] = ()
    instances: int
    active: int
    draining: int
    expired: int
    unreachable: int
    breakers_open: int
    in_flight: int
    waiting: int


class DashboardLive(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What holds now; none of it comes from the records."""

    at: int
    open: OpenCount
    components: tuple[ComponentStanding, ...] = ()
    records: RecordsStanding


class DashboardTotals(msgspec.Struct, frozen=True, kw_only=True):
    """`opened` in the window; the others ended in it, `fell_back` and `in_review` among them."""

    opened: int
    succeeded: int
    failed: int
    cancelled: int
    fell_back: int
    in_review: int


class WorstFallback(msgspec.Struct, frozen=True, kw_only=True):
    """The component with the highest rate of sessions that fell back because of it."""

    component: str
    rate: float
    sessions: int
    fallbacks: int


class DashboardSignals(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The golden signals. `success_rate`: of those that succeeded or failed."""

    success_rate: float | None = None
    p95_ms: int | None = None
    worst_fallback: WorstFallback | None = None
    contribution_variance: ContributionVariance | None = None


class ComponentRow(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One version of a component in a window. `fallback_rate`, `sessions` and `fallbacks` are of
    all its versions together: a fallback is blamed on a component."""

    name: str
    version: str = ""
    role: str = ""
    calls: int
    failed: int
    failure_rate: float | None = None
    wait_p95_ms: int | None = None
    service_p95_ms: int | None = None
    sessions: int | None = None
    fallbacks: int | None = None
    fallback_rate: float | None = None


class DashboardOverview(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename=WINDOW
):
    """`step_ms`: the width of a point of `series`; steps in which nothing ended are absent."""

    from_ms: int
    to_ms: int
    step_ms: int
    records: RecordsStanding
    totals: DashboardTotals
    signals: DashboardSignals
    series: tuple[SeriesPoint, ...] = ()
    workflows: tuple[WorkflowFigures, ...] = ()
    components: tuple[ComponentRow, ...] = ()


class DashboardWorkflow(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename=WINDOW
):
    """One workflow, all its versions. Without sessions in the window `versions` is empty."""

    name: str
    from_ms: int
    to_ms: int
    step_ms: int
    judged: Judged
    versions: tuple[WorkflowFigures, ...] = ()
    components: tuple[ComponentRow, ...] = ()
    series: tuple[SeriesPoint, ...] = ()
    errors: tuple[ErrorReason, ...] = ()


class DashboardComponent(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename=WINDOW
):
    """One component. `judged` and `series` are of the sessions that it took part in; `errors` are
    those of its attempts."""

    name: str
    from_ms: int
    to_ms: int
    step_ms: int
    judged: Judged
    blame: Blame | None = None
    versions: tuple[ComponentRow, ...] = ()
    actions: tuple[AttemptFigures, ...] = ()
    series: tuple[SeriesPoint, ...] = ()
    errors: tuple[ErrorReason, ...] = ()


class GoldenSignals(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename=WINDOW):
    """The four signals as queries: what `/metrics` counts, of the sessions that ended in a window.

    Workflows by their versions. Components with the highest fallback rate first.
    """

    from_ms: int
    to_ms: int
    workflows: tuple[WorkflowSignals, ...] = ()
    components: tuple[ComponentSignals, ...] = ()
    contribution_variance: ContributionVariance | None = None


class DashboardSessions(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Newest first. A page may be short; `after` is absent on the last one only."""

    items: tuple[SessionItem, ...]
    after: str = ""
