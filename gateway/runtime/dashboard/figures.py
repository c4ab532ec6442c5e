"""The dashboard's figures of a window: each answer is a few questions to the records, side by side.

What nobody can tell is absent. Whatever keeps the records from answering leaves as UNAVAILABLE.
"""

import asyncio
from collections.abc import Iterable
from typing import Final

from gateway.insight.signals import ComponentSignals, WorkflowSignals
from gateway.runtime.dashboard.answers import (
    ComponentRow,
    DashboardComponent,
    DashboardOverview,
    DashboardSignals,
    DashboardTotals,
    DashboardWorkflow,
    GoldenSignals,
    RecordsStanding,
    WorstFallback,
)
from gateway.runtime.dashboard.open_sessions import OpenSessions
from gateway.runtime.dashboard.variance import ContributionVariance, VarianceAsked, Variances
from gateway.runtime.records import Records
from gateway.stores.records.questions import (
    components,
    errors,
    quality,
    series,
    workflows,
)
from gateway.stores.records.questions.components import AttemptFigures, Blame
from gateway.stores.records.questions.span import Span
from gateway.stores.records.questions.workflows import WorkflowFigures

POINTS_WANTED: Final = 60
_SECOND: Final = 1_000
STEPS_MS: Final = tuple(
    _SECOND * seconds
    for seconds in (
        *(1, 5, 10, 30, 60, 300, 600, 1_800, 3_600, 3 * 3_600, 6 * 3_600, 12 * 3_600),
        *(86_400, 7 * 86_400),
    )
)
"""Widths of a point that people read off a clock or a calendar."""


NOTHING: Final = WorkflowFigures(
    name="", ended=0, succeeded=0, failed=0, cancelled=0, fell_back=0, in_review=0
)


def standing(records: Records) -> RecordsStanding:
    """How the records stand, without asking them."""
    feed = records.feed
    return RecordsStanding(
        state=records.state.value,
        lag_bytes=feed.waiting_bytes if feed is not None else None,
        problem=records.problem or (feed.problem if feed is not None else ""),
    )


def step_of(span: Span) -> int:
    """The width of a point of a series over this window."""
    length_ms = span.to_ms - span.from_ms
    return next((step for step in STEPS_MS if step * POINTS_WANTED >= length_ms), STEPS_MS[-1])


class Figures:
    """Asks for one gateway."""

    def __init__(self, records: Records, open_now: OpenSessions, *, variances: Variances) -> None:
        self._records = records
        self._open = open_now
        self._variances = variances

    async def overview(self, span: Span) -> DashboardOverview:
        """All of a window, or one workflow of it."""
        rows, count, points, attempts, blamed = await asyncio.gather(
            self._records.rows(workflows.by_name(span)),
            self._records.rows(workflows.opened(span)),
            self._records.rows(series.series(span, step_of(span))),
            self._records.rows(components.by_version(span)),
            self._records.rows(components.blame(span)),
        )
        all_of_it = next((row for row in rows if not row.name), NOTHING)
        still_open = self._open.count(span.tenant, since_ms=span.from_ms, workflow=span.workflow)
        return DashboardOverview(
            from_ms=span.from_ms,
            to_ms=span.to_ms,
            step_ms=step_of(span),
            records=standing(self._records),
            totals=_totals(
                all_of_it,
                opened=sum(row.opened for row in count) + still_open.running + still_open.waiting,
            ),
            signals=DashboardSignals(
                success_rate=all_of_it.success_rate,
                p95_ms=all_of_it.p95_ms,
                worst_fallback=_worst(blamed),
                contribution_variance=self._variance(span, rows),
            ),
            series=tuple(points),
            workflows=tuple(row for row in rows if row.name),
            components=_with_blame(attempts, blamed),
        )

    async def signals(self, span: Span) -> GoldenSignals:
        """The four signals, of sessions as metrics count them."""
        rows, blamed = await asyncio.gather(
            self._records.rows(workflows.by_version(span)),
            self._records.rows(components.blame(span)),
        )
        return GoldenSignals(
            from_ms=span.from_ms,
            to_ms=span.to_ms,
            workflows=tuple(sorted(map(_signals, rows), key=lambda one: one.workflow)),
            components=tuple(
                ComponentSignals(
                    component=one.name,
                    sessions=one.sessions,
                    fallbacks=one.fallbacks,
                    fallback_rate=one.fallbacks / one.sessions,
                )
                for one in blamed
            ),
            contribution_variance=self._variance(span, rows),
        )

    def _variance(self, span: Span, rows: list[WorkflowFigures]) -> ContributionVariance | None:
        """Of the busiest workflow; nothing where none ended."""
        busiest = next((row.name for row in rows if row.name), "")
        if not busiest:
            return None
        return self._variances.told(
            VarianceAsked(
                tenant=span.tenant,
                workflow=busiest,
                from_ms=2 * span.from_ms - span.to_ms,
                middle_ms=span.from_ms,
                to_ms=span.to_ms,
            )
        )

    async def workflow(self, span: Span) -> DashboardWorkflow:
        """One workflow."""
        versions, attempts, blamed, points, reasons, judged = await asyncio.gather(
            self._records.rows(workflows.by_version(span)),
            self._records.rows(components.by_version(span)),
            self._records.rows(components.blame(span)),
            self._records.rows(series.series(span, step_of(span))),
            self._records.rows(errors.of_sessions(span)),
            self._records.rows(quality.judged(span)),
        )
        return DashboardWorkflow(
            name=span.workflow,
            from_ms=span.from_ms,
            to_ms=span.to_ms,
            step_ms=step_of(span),
            judged=judged[0],
            versions=tuple(versions),
            components=_with_blame(attempts, blamed),
            series=tuple(points),
            errors=tuple(reasons),
        )

    async def component(self, span: Span) -> DashboardComponent:
        """One component, all its versions."""
        versions, actions, blamed, points, reasons, judged = await asyncio.gather(
            self._records.rows(components.by_version(span)),
            self._records.rows(components.by_action(span)),
            self._records.rows(components.blame(span)),
            self._records.rows(series.series(span, step_of(span))),
            self._records.rows(errors.of_attempts(span)),
            self._records.rows(quality.judged(span)),
        )
        return DashboardComponent(
            name=span.component,
            from_ms=span.from_ms,
            to_ms=span.to_ms,
            step_ms=step_of(span),
            judged=judged[0],
            blame=next((one for one in blamed if one.name == span.component), None),
            versions=_with_blame(versions, blamed),
            actions=tuple(actions),
            series=tuple(points),
            errors=tuple(reasons),
        )


def _totals(row: WorkflowFigures, *, opened: int) -> DashboardTotals:
    return DashboardTotals(
        opened=opened,
        succeeded=row.succeeded,
        failed=row.failed,
        cancelled=row.cancelled,
        fell_back=row.fell_back,
        in_review=row.in_review,
    )


def _signals(row: WorkflowFigures) -> WorkflowSignals:
    assert row.p95_ms is not None, "a version is in the answer because something of it ended"
    return WorkflowSignals(
        workflow=f"{row.name}@{row.version}" if row.version else row.name,
        succeeded=row.succeeded,
        failed=row.failed,
        cancelled=row.cancelled,
        success_rate=row.success_rate,
        p95_ms=row.p95_ms,
    )


def _worst(blamed: list[Blame]) -> WorstFallback | None:
    """They come with the highest rate first."""
    first = blamed[0] if blamed else None
    if first is None or first.fallback_rate is None:
        return None
    return WorstFallback(
        component=first.name,
        rate=first.fallback_rate,
        sessions=first.sessions,
        fallbacks=first.fallbacks,
    )


def _with_blame(
    attempts: Iterable[AttemptFigures], blamed: Iterable[Blame]
) -> tuple[ComponentRow, ...]:
    of = {one.name: one for one in blamed}
    return tuple(_component(row, of.get(row.name)) for row in attempts)


def _component(row: AttemptFigures, blame: Blame | None) -> ComponentRow:
    return ComponentRow(
        name=row.name,
        version=row.version,
        role=row.role,
        calls=row.calls,
        failed=row.failed,
        failure_rate=row.failure_rate,
        wait_p95_ms=row.wait_p95_ms,
        service_p95_ms=row.service_p95_ms,
        sessions=blame.sessions if blame else None,
        fallbacks=blame.fallbacks if blame else None,
        fallback_rate=blame.fallback_rate if blame else None,
    )
