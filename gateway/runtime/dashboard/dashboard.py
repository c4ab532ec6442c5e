"""The dashboard's answers, each for one caller: always of the caller's tenant and of nothing else.

Figures come from the records, what is live from the gateway itself, one session from its
trajectory. Whatever keeps the records from answering leaves as UNAVAILABLE with what to do.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

import msgspec

from acp_spec.model.session import Component
from acp_spec.model.trajectory import Trajectory
from gateway.runtime.clock import Clock
from gateway.runtime.dashboard.answers import (
    ComponentStanding,
    DashboardComponent,
    DashboardLive,
    DashboardOverview,
    DashboardSessions,
    DashboardWorkflow,
    GoldenSignals,
)
from gateway.runtime.dashboard.figures import Figures, standing
from gateway.runtime.dashboard.listing import merged, wants_ended, wants_open
from gateway.runtime.dashboard.one_session import DashboardSession, session_page
from gateway.runtime.dashboard.open_sessions import Found, OpenSessions
from gateway.runtime.dashboard.variance import Compute, Variances
from gateway.runtime.principal import Principal
from gateway.runtime.records import Records
from gateway.runtime.target_views import TargetView
from gateway.stores.masked import masked
from gateway.stores.records.questions import sessions as session_questions
from gateway.stores.records.questions.span import Span
from gateway.telemetry.masking import Masker

Filters = Mapping[str, str | int]


class Trajectories(Protocol):
    """Where one session's record is found; NOT_FOUND for another tenant's."""

    async def trajectory(self, session_id: str, principal: Principal) -> bytes: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class DashboardParts:
    """What the answers are made from."""

    records: Records
    sessions: Trajectories
    open_now: OpenSessions
    components: Callable[[], Iterable[Component]]
    targets: Callable[[], Iterable[TargetView]]
    compute: Compute
    masker: Masker
    clock: Clock


class Dashboard:
    """One gateway's."""

    def __init__(self, parts: DashboardParts) -> None:
        self._parts = parts
        self.variances = Variances(parts.compute, parts.clock)
        self._figures = Figures(parts.records, parts.open_now, variances=self.variances)

    async def close(self) -> None:
        """Break off what is computed beside."""
        await self.variances.close()

    async def overview(
        self, principal: Principal, *, window_ms: int, workflow: str
    ) -> DashboardOverview:
        return await self._figures.overview(
            self._span(principal, window_ms=window_ms, workflow=workflow)
        )

    async def signals(
        self, principal: Principal, *, window_ms: int, until: int, workflow: str
    ) -> GoldenSignals:
        """Of a window that ends at `until`; 0: now."""
        span = self._span(principal, window_ms=window_ms, workflow=workflow)
        if until:
            span = msgspec.structs.replace(span, from_ms=until - window_ms, to_ms=until)
        return await self._figures.signals(span)

    async def workflow(
        self, principal: Principal, *, name: str, window_ms: int
    ) -> DashboardWorkflow:
        return await self._figures.workflow(
            self._span(principal, window_ms=window_ms, workflow=name)
        )

    async def component(
        self, principal: Principal, *, name: str, window_ms: int
    ) -> DashboardComponent:
        return await self._figures.component(
            self._span(principal, window_ms=window_ms, component=name)
        )

    def live(self, principal: Principal) -> DashboardLive:
        """What holds now; needs no records."""
        parts = self._parts
        return DashboardLive(
            at=parts.clock.now_ms(),
            open=parts.open_now.count(principal.tenant),
            components=_standing(parts.components(), parts.targets()),
            records=standing(parts.records),
        )

    async def sessions(
        self, principal: Principal, filters: Filters, *, limit: int
    ) -> DashboardSessions:
        """One page of those that pass every filter."""
        found = []
        if wants_open(filters):
            found.append(self._parts.open_now.page(principal.tenant, filters, limit=limit))
        if wants_ended(filters):
            question = session_questions.page(principal.tenant, filters, limit=limit)
            items = await self._parts.records.rows(question)
            down_to = items[-1].session_id if len(items) == limit else ""
            found.append(Found(items, down_to=down_to))
        return merged(tuple(found), limit=limit)

    async def session(self, session_id: str, principal: Principal) -> DashboardSession:
        """One session; masking a large payload is off the loop."""
        text = await self._parts.sessions.trajectory(session_id, principal)
        return await asyncio.to_thread(_read, text, self._parts.masker)

    def _span(
        self, principal: Principal, *, window_ms: int, workflow: str = "", component: str = ""
    ) -> Span:
        now_ms = self._parts.clock.now_ms()
        return Span(
            tenant=principal.tenant,
            from_ms=now_ms - window_ms,
            to_ms=now_ms,
            workflow=workflow,
            component=component,
        )


def _read(text: bytes, masker: Masker) -> DashboardSession:
    return session_page(masked(msgspec.json.decode(text, type=Trajectory), masker))


def _standing(
    registered: Iterable[Component], targets: Iterable[TargetView]
) -> tuple[ComponentStanding, ...]:
    """The instances of each version together, by name."""
    of_target = {one.component_id: one for one in targets}
    by_version: dict[tuple[str, str], list[Component]] = {}
    for one in registered:
        by_version.setdefault((one.card.name, one.card.version), []).append(one)
    return tuple(
        _of_version(
            instances,
            [of_target[one.component_id] for one in instances if one.component_id in of_target],
        )
        for _, instances in sorted(by_version.items())
    )


def _of_version(instances: list[Component], targets: list[TargetView]) -> ComponentStanding:
    card = instances[0].card
    states = [one.state for one in instances]
    return ComponentStanding(
        name=card.name,
        version=card.version,
        roles=tuple(role.value for role in card.roles),
        instances=len(instances),
        active=states.count("ACTIVE"),
        draining=states.count("DRAINING"),
        expired=states.count("EXPIRED"),
        unreachable=states.count("UNREACHABLE"),
        breakers_open=sum(one.breaker != "closed" for one in targets),
        in_flight=sum(one.in_flight for one in targets),
        waiting=sum(one.waiting for one in targets),
    )
