"""Services in memory for tests of the borders: enough behaviour to tell right from wrong, no more.

Sessions do nothing: they are opened, stepped, judged and ended by what a test calls.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field

from acp_spec.bindings.errors import error
from acp_spec.model.card import Card
from acp_spec.model.enums import SessionStatus, StepStatus
from acp_spec.model.errors import AcpFailure, Reason
from acp_spec.model.gateway_calls import GiveFeedbackRequest
from acp_spec.model.payload import payload
from acp_spec.model.session import (
    CompleteOperation,
    Component,
    Feedback,
    FeedbackAccepted,
    FinishRequest,
    Heartbeat,
    Lease,
    ManualStep,
    Opened,
    OpenSession,
    RegisterRequest,
    SessionPage,
    SessionView,
    StepResult,
)
from gateway.board.audit import AuditLog
from gateway.board.policy import Policy
from gateway.engine.catalog import Catalog
from gateway.governance.domains import nobody
from gateway.governance.parameters import Parameters
from gateway.rewards.scoring import Scorer
from gateway.runtime.archive import Archive, ArchiveParts, RunningPass, Wish
from gateway.runtime.board import Board, BoardParts
from gateway.runtime.clock import ManualClock, SeededChance
from gateway.runtime.dashboard.dashboard import Dashboard, DashboardParts
from gateway.runtime.dashboard.open_sessions import OpenSessions
from gateway.runtime.dashboard.variance import Computed, VarianceAsked
from gateway.runtime.evidence import Evidences
from gateway.runtime.fallback_drills import DrillParts, Drills
from gateway.runtime.fallbacks import Fallbacks
from gateway.runtime.judging import Judged, JudgedMany
from gateway.runtime.lineage import Lineages
from gateway.runtime.lineage_search import LineageSearch
from gateway.runtime.measuring import Measurer
from gateway.runtime.parameters import LiveParameters, ParameterBook
from gateway.runtime.principal import NO_TRACE, Principal, Trace
from gateway.runtime.records import Records, RunningChild
from gateway.runtime.replays import ReplayRequest, ReplayResult
from gateway.runtime.review_queue import ReviewQueue
from gateway.runtime.reviews import Reviews
from gateway.runtime.reward_rules import RewardBook
from gateway.runtime.rollout_versions import (
    ComponentVersions,
    PolicyVersions,
    Versions,
    WorkflowVersions,
)
from gateway.runtime.rollouts import RolloutParts, Rollouts
from gateway.runtime.semantics_review import SemanticsReview
from gateway.runtime.sla_watch import SlaWatch
from gateway.runtime.tokens import Tokens
from gateway.runtime.unknown_values import UnknownValues
from gateway.runtime.workflows import Workflows
from gateway.stores.durable import Durable, WriteThrough
from gateway.stores.event_codec import Sealer
from gateway.stores.memory import MemoryStore
from gateway.stores.records.reach import Limits
from gateway.telemetry.masking import DEFAULT, Masker
from gateway.telemetry.metrics import Metrics
from gateway.transports.ports import Services

Event = tuple[int, str, bytes]
CALL_BACK_TOKEN = "call-back-token"


@dataclass
class Kept:
    """One session, and what a test wants to know of it."""

    view: SessionView
    tenant: str
    request: OpenSession
    trace: Trace
    events: list[Event] = field(default_factory=list)
    forgotten: int = 0
    changed: asyncio.Event = field(default_factory=asyncio.Event)


class InMemorySessions:
    """`ports.Sessions` over a dict; `ends_at_once` makes `wait` answer with the ended session."""

    def __init__(self) -> None:
        self.kept: dict[str, Kept] = {}
        self.ends_at_once = False
        self.breaks: Exception | None = None
        self.waits: list[float] = []
        self.feedbacks: list[Feedback] = []
        self.completed: dict[str, CompleteOperation] = {}
        self.steps: dict[str, StepResult] = {}

    async def open(
        self,
        request: OpenSession,
        principal: Principal,
        *,
        wait_s: float = 0,
        trace: Trace = NO_TRACE,
    ) -> tuple[Opened | SessionView, bool]:
        if self.breaks is not None:
            raise self.breaks
        self.waits.append(wait_s)
        if request.workflow.startswith("unknown"):
            raise AcpFailure(error(Reason.NOT_FOUND, f"no workflow {request.workflow!r}"))
        for session_id, kept in self.kept.items():
            if request.session_key and kept.request.session_key == request.session_key:
                if kept.request != request:
                    raise AcpFailure(error(Reason.ALREADY_EXISTS, "another body for this key"))
                return _opened(self.kept[session_id].view), False
        session_id = f"{len(self.kept):026d}"
        view = SessionView(
            session_id=session_id,
            lineage_id=f"{session_id}.0123456789ab",
            workflow=request.workflow,
            status=SessionStatus.RUNNING,
            state_version="1.0.0",
            output=request.input,
        )
        self.kept[session_id] = Kept(view, principal.tenant, request, trace)
        if wait_s and self.ends_at_once:
            return self._end(session_id, SessionStatus.SUCCEEDED), True
        return _opened(view), True

    async def view(
        self, session_id: str, principal: Principal, *, min_version: str = ""
    ) -> SessionView:
        if min_version == "9.9.9":
            raise AcpFailure(error(Reason.STALE_STATE, "older than 9.9.9", retry_after_ms=1500))
        return self.of(session_id, principal).view

    async def page(
        self,
        principal: Principal,
        *,
        status: SessionStatus | None = None,
        workflow: str = "",
        after: str = "",
        limit: int = 50,
    ) -> SessionPage:
        found = [
            kept.view
            for session_id, kept in sorted(self.kept.items(), reverse=True)
            if kept.tenant == principal.tenant
            and (not after or session_id < after)
            and (status is None or kept.view.status is status)
        ]
        following = found[limit - 1].session_id if len(found) > limit else ""
        return SessionPage(sessions=tuple(found[:limit]), next=following)

    async def manual_step(
        self, session_id: str, step: ManualStep, principal: Principal, *, wait_s: float
    ) -> StepResult:
        self.of(session_id, principal)
        self.waits.append(wait_s)
        status = StepStatus.SUCCEEDED if wait_s else StepStatus.RUNNING
        key = step.step_key or "step-1"
        result = StepResult(step_key=key, call_id="c", status=status, response=step.payload)
        self.steps[key] = result
        return result

    async def step_result(self, session_id: str, step_key: str, principal: Principal) -> StepResult:
        self.of(session_id, principal)
        if step_key not in self.steps:
            raise AcpFailure(error(Reason.NOT_FOUND, f"no step {step_key!r}"))
        return self.steps[step_key]

    async def finish(
        self, session_id: str, request: FinishRequest, principal: Principal
    ) -> SessionView:
        self.of(session_id, principal)
        return self._end(session_id, SessionStatus.SUCCEEDED)

    async def feedback(
        self, session_id: str, feedback: Feedback, principal: Principal
    ) -> FeedbackAccepted:
        self.of(session_id, principal)
        self.feedbacks.append(feedback)
        return FeedbackAccepted(feedback_id="f-1", state_version="1.0.1")

    async def feedback_in_bulk(
        self, asked: Sequence[GiveFeedbackRequest], *, principal: Principal
    ) -> JudgedMany:
        taken = [await self.feedback(one.session_id, one.feedback, principal) for one in asked]
        results = tuple(
            Judged(session_id=one.session_id, feedback_id=accepted.feedback_id)
            for one, accepted in zip(asked, taken, strict=True)
        )
        return JudgedMany(taken=len(results), refused=0, results=results)

    async def cancel(self, session_id: str, principal: Principal) -> SessionView:
        return self.of(session_id, principal).view

    async def erase(self, session_id: str, principal: Principal) -> None:
        self.of(session_id, principal)
        del self.kept[session_id]

    async def trajectory(self, session_id: str, principal: Principal) -> bytes:
        kept = self.of(session_id, principal)
        head = b'{"schema_version":"1.0","session_id":"%s"' % session_id.encode()
        ids = b',"lineage_id":"%s","status":"RUNNING"' % kept.view.lineage_id.encode()
        return head + ids + b',"input":%s}' % (bytes(kept.request.input) or b"null")

    async def lineage(self, lineage_id: str, principal: Principal) -> bytes:
        self.of(lineage_id.partition(".")[0], principal)
        return b'{"lineage_id":"%s"}' % lineage_id.encode()

    async def complete_operation(self, call_id: str, token: str, result: CompleteOperation) -> None:
        if token != CALL_BACK_TOKEN:
            raise AcpFailure(error(Reason.UNAUTHENTICATED, "not the token of this call"))
        self.completed[call_id] = result

    def events(self, session_id: str, principal: Principal, *, after: int) -> AsyncIterator[Event]:
        kept = self.of(session_id, principal)
        if after < kept.forgotten:
            raise AcpFailure(error(Reason.EVENTS_EXPIRED, "events are no longer kept"))
        return self._follow(kept, after)

    def of(self, session_id: str, principal: Principal) -> Kept:
        kept = self.kept.get(session_id)
        if kept is None or kept.tenant != principal.tenant:
            raise AcpFailure(error(Reason.NOT_FOUND, f"no session {session_id!r}"))
        return kept

    def happen(self, session_id: str, name: str, data: bytes = b"{}") -> None:
        """Something happened; `Ended` is the terminal event."""
        kept = self.kept[session_id]
        kept.events.append((len(kept.events) + 1, name, data))
        kept.changed.set()

    async def _follow(self, kept: Kept, after: int) -> AsyncIterator[Event]:
        seen = after
        while True:
            for event in kept.events[seen:]:
                seen += 1
                yield event
            if kept.events and kept.events[-1][1] == "Ended" and seen >= len(kept.events):
                return
            kept.changed.clear()
            await kept.changed.wait()

    def _end(self, session_id: str, status: SessionStatus) -> SessionView:
        kept = self.kept[session_id]
        view = kept.view
        kept.view = SessionView(
            session_id=view.session_id,
            lineage_id=view.lineage_id,
            workflow=view.workflow,
            status=status,
            state_version="1.0.0",
            output=view.output,
        )
        return kept.view


class InMemoryComponents:
    """`ports.Components` that believes every URL: the card's name is its host."""

    def __init__(self) -> None:
        self.known: dict[str, Component] = {}

    async def register(self, request: RegisterRequest, principal: Principal) -> Component:
        name = request.url.partition("://")[2].partition(":")[0]
        if not principal.may_serve(name):
            raise AcpFailure(error(Reason.PERMISSION_DENIED, f"this token may not serve {name!r}"))
        component = Component(
            component_id=f"component-{len(self.known)}",
            card=Card(name=name, version="1.0.0"),
            lease=Lease(lease_seconds=15, expires_at="2026-01-01T00:00:00Z"),
            url=request.url,
        )
        self.known[component.component_id] = component
        return component

    def list(self) -> tuple[Component, ...]:
        return tuple(self.known.values())

    def get(self, component_id: str) -> Component:
        if component_id not in self.known:
            raise AcpFailure(error(Reason.NOT_FOUND, f"no component {component_id!r}"))
        return self.known[component_id]

    async def heartbeat(self, component_id: str, beat: Heartbeat) -> Component:
        return self.get(component_id)

    async def drain(self, component_id: str) -> Component:
        return self.get(component_id)

    async def delete(self, component_id: str) -> None:
        self.get(component_id)
        del self.known[component_id]


class NoVersions:
    """A registry in which nothing has versions: rollouts of components find nothing to move."""

    def catalog(self) -> Catalog:
        return Catalog()

    def pick(self, pin: str, session_id: str) -> None:
        return None

    async def activate(self, name: str, version: str) -> None:
        raise AssertionError("nothing can be rolled out here")


class NoReplays:
    """Nothing can be replayed where sessions do nothing."""

    async def run(self, request: ReplayRequest, principal: Principal) -> ReplayResult:
        raise AcpFailure(error(Reason.NOT_FOUND, "nothing is registered here"))


def _no_records() -> Records:
    """Records whose process cannot start."""

    async def launch() -> RunningChild:
        raise OSError("there is no process here")

    return Records(launch, cluster=lambda: None, most=Limits, on_start=lambda: None)


async def _nothing_computed(asked: VarianceAsked) -> Computed:
    return Computed(reason="nothing is computed here")


class House:
    """All services, with what tests turn and look at."""

    def __init__(self) -> None:
        store = MemoryStore()
        durable = WriteThrough(store)
        self.clock = ManualClock()
        self.sessions = InMemorySessions()
        self.components = InMemoryComponents()
        self.reasons: list[str] = []
        audit = AuditLog(store, durable, now_ms=self.clock.now_ms)
        chance = SeededChance(8)
        parts = BoardParts(
            store=store, durable=durable, audit=audit, clock=self.clock, chance=chance
        )
        board = Board(parts, Policy())
        workflows = Workflows(store, durable, clock=self.clock, catalog=Catalog)
        metrics = Metrics()
        records = _no_records()
        versions = Versions(
            ComponentVersions(NoVersions()),
            WorkflowVersions(workflows),
            policies=PolicyVersions(store, durable),
        )
        rolled = RolloutParts(
            store=store, durable=durable, audit=audit, clock=self.clock, metrics=metrics
        )
        self.services = Services(
            sessions=self.sessions,
            components=self.components,
            rollouts=Rollouts(rolled, versions),
            replays=NoReplays(),
            rewards=RewardBook(
                Scorer(), store, durable=durable, audit=audit, now_ms=self.clock.now_ms
            ),
            workflows=workflows,
            tokens=Tokens(store, durable, clock=self.clock, chance=SeededChance(7)),
            audit=audit,
            board=board,
            evidences=Evidences(
                board,
                Measurer(timeout_s=10).run,
                plans={},
                clock=self.clock,
                chance=chance,
            ),
            sla=SlaWatch(store, durable, audit=audit, metrics=Metrics(), now_ms=self.clock.now_ms),
            parameters=ParameterBook(
                LiveParameters(Parameters()), store, durable=durable, audit=audit, clock=self.clock
            ),
            targets=lambda: (),
            records=records,
            dashboard=self._dashboard(records, store),
            reviews=_reviews(store, self.sessions, audit=audit, clock=self.clock),
            lineages=_lineages(self.sessions, records),
            archive=_no_archive(store, durable),
            drills=_drills(store, workflows, clock=self.clock),
            semantics=_semantics(store, workflows, audit=audit, clock=self.clock),
            unready=lambda: tuple(self.reasons),
            metrics=metrics,
        )

    def _dashboard(self, records: Records, store: MemoryStore) -> Dashboard:
        return Dashboard(
            DashboardParts(
                records=records,
                sessions=self.sessions,
                open_now=OpenSessions(store, lambda session_id: None),
                components=self.components.list,
                targets=lambda: (),
                compute=_nothing_computed,
                masker=DEFAULT,
                clock=self.clock,
            )
        )


def _lineages(sessions: InMemorySessions, records: Records) -> Lineages:
    async def synced() -> None:
        return None

    search = LineageSearch(
        in_memory=tuple, synced=synced, open_sessions=lambda: 0, query=records.query
    )
    return Lineages(sessions=sessions, search=search, masker=DEFAULT)


def _no_archive(store: MemoryStore, durable: Durable) -> Archive:
    """Nothing ever left the log, and there is nothing to make it leave with."""

    async def launch(wish: Wish) -> RunningPass:
        raise AssertionError("nothing is ever due")

    parts = ArchiveParts(
        launch=launch,
        due=lambda: False,
        has_left=lambda: False,
        missing=lambda: "the archive is an extra",
        every_s=600.0,
    )
    return Archive(parts, store, durable=durable)


def _drills(store: MemoryStore, workflows: Workflows, *, clock: ManualClock) -> Drills:
    durable, metrics = WriteThrough(store), Metrics()
    fallbacks = Fallbacks(store, durable, clock=clock, metrics=metrics, session_deadline_ms=30_000)
    return Drills(
        DrillParts(
            fallbacks=fallbacks,
            workflows=workflows,
            store=store,
            sealer=Sealer(store),
            durable=durable,
            clock=clock,
            metrics=metrics,
        )
    )


def _reviews(
    store: MemoryStore, sessions: InMemorySessions, *, audit: AuditLog, clock: ManualClock
) -> Reviews:
    return Reviews(
        queue=ReviewQueue(store, WriteThrough(store), secret=lambda: "of this test"),
        sessions=sessions,
        audit=audit,
        masker=Masker(),
        now_ms=clock.now_ms,
    )


def _semantics(
    store: MemoryStore, workflows: Workflows, *, audit: AuditLog, clock: ManualClock
) -> SemanticsReview:
    durable = WriteThrough(store)
    unknown = UnknownValues(store, durable, clock=clock, metrics=Metrics())
    return SemanticsReview(unknown=unknown, workflows=workflows, audit=audit, nearest=nobody)


def _opened(view: SessionView) -> Opened:
    return Opened(
        session_id=view.session_id,
        lineage_id=view.lineage_id,
        state_version=view.state_version,
        status=view.status,
    )


WORKFLOW = b"""workflow: hotline
version: 1.0.0
steps:
  - name: plan
    role: plan
    input_mapping: {goal: input.query}
output: plan.output
"""

PAYLOAD = payload(b'{"query": "What is my balance?"}')
