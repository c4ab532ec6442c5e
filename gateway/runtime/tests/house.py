"""A whole gateway without borders: the real service over fake components and a store in memory."""

import asyncio
import hashlib
from collections.abc import Awaitable

from acp_spec.model.card import Card
from acp_spec.model.enums import TERMINAL_SESSION, Mode
from acp_spec.model.errors import AcpFailure
from acp_spec.model.payload import payload
from acp_spec.model.session import OpenSession, SessionView
from gateway.board.audit import AuditLog
from gateway.engine.definition import Workflow
from gateway.engine.events import AnyEvent
from gateway.engine.states import SessionState
from gateway.engine.tests.stage import OBSERVER, PLANNER, REFLECTOR, TOOLS, workflow_of
from gateway.governance.backoff import Backoff
from gateway.governance.parameters import Parameters, Queues
from gateway.governance.rules import Slots
from gateway.runtime.absence import Absence
from gateway.runtime.admitting import Admitting
from gateway.runtime.clock import Clock, SeededChance
from gateway.runtime.committer import Committer
from gateway.runtime.context import ContextMaker
from gateway.runtime.driver import Defaults, Driver, DriverParts
from gateway.runtime.erasing import Erasing
from gateway.runtime.executors import Executors
from gateway.runtime.live import LiveSessions
from gateway.runtime.observing import Observers
from gateway.runtime.opening import OpeningLimits, Openings
from gateway.runtime.pages import Pages
from gateway.runtime.parameters import LiveParameters
from gateway.runtime.principal import LOCAL, Principal
from gateway.runtime.queueing import Admission
from gateway.runtime.restart import open_sessions, resume_all
from gateway.runtime.service import ServiceParts, SessionService
from gateway.runtime.sla_watch import SlaWatch
from gateway.runtime.streams import Streams
from gateway.runtime.tests.fake_components import FakeTargets
from gateway.runtime.tests.virtual_time import LoopClock
from gateway.runtime.workflows import Workflows
from gateway.stores.event_codec import Sealer
from gateway.stores.journal import read_events
from gateway.stores.memory import MemoryStore
from gateway.stores.ports import Store
from gateway.telemetry.metrics import Metrics

CARDS = (PLANNER, OBSERVER, REFLECTOR, TOOLS)
LIMITS = OpeningLimits(
    node=1,
    max_open_sessions=100,
    session_deadline_ms=30_000,
    max_session_deadline_ms=600_000,
    retry_budget=8,
    cancel_grace_ms=1_000,
    backoff=Backoff(),
    sample_ratio=0.0,
)


def slots(limit: int = 100, *, queue: int | None = None, waiting: int = 100) -> Parameters:
    """Parameters with so many slots of each target and each step type."""
    of_type = Slots(limit=limit if queue is None else queue, max_waiting=waiting)
    return Parameters(
        target=Slots(limit=limit, max_waiting=waiting),
        queues=Queues(plan=of_type, tool=of_type, llm=of_type),
    )


PARAMETERS = slots()


class Seen:
    """The driver's observer: every event, as it is applied."""

    def __init__(self) -> None:
        self.events: list[AnyEvent] = []

    def seen(self, state: SessionState, event: AnyEvent) -> None:
        self.events.append(event)


class House:
    """Everything behind the borders. Made inside a running loop."""

    def __init__(
        self,
        *,
        store: Store | None = None,
        targets: FakeTargets | None = None,
        cards: tuple[Card, ...] = CARDS,
        live_limit: int = 100,
        parameters: Parameters = PARAMETERS,
        sync: bool = False,
        limits: OpeningLimits = LIMITS,
        attach_grace_ms: int = 0,
        clock: Clock | None = None,
        seed: int = 7,
    ) -> None:
        self.store = store or MemoryStore()
        self.targets = targets or FakeTargets(*cards)
        self.clock = clock or LoopClock()
        self.sealer = Sealer(self.store)
        self.committer = Committer(self.store, self.sealer, sync=sync)
        self.workflows = Workflows(
            self.store, self.committer, clock=self.clock, catalog=self.targets.catalog
        )
        self.sessions = LiveSessions(
            self.store, self.sealer, workflow_of=self._workflow_of, limit=live_limit
        )
        self.seen = Seen()
        self.metrics = Metrics()
        self.audit = AuditLog(self.store, self.committer, now_ms=self.clock.now_ms)
        self.sla = self._sla()
        self.recorded: list[tuple[str, int]] = []
        self.forgotten: list[str] = []
        self.driver = self._driver(limits)
        self.parameters = LiveParameters(parameters)
        self.admission = Admission(self.clock)
        self.absence = Absence(
            self.targets, self.clock, pin_grace_ms=500, attach_grace_ms=attach_grace_ms
        )
        self.contexts = ContextMaker(gateway_id="g", secret=b"s" * 32)
        self.contexts.public_url = "http://gateway"
        self.admitting = Admitting(
            self.driver,
            admission=self.admission,
            absence=self.absence,
            contexts=self.contexts,
            rules_for=self.parameters.rules_for,
        )
        self.admission.wake = self.absence.wake = self.admitting.wake
        self.executors = Executors(
            self.driver, self.targets, admitting=self.admitting, contexts=self.contexts
        )
        self.driver.executor = self.executors
        self.executors.admitting.bar, self.sla.tell = self.sla.bar, self.driver.tell
        self.erasing = Erasing(self.driver, self.store, sealer=self.sealer, forget=self._forget)
        self.service = self._service(limits, seed)

    def _sla(self) -> SlaWatch:
        return SlaWatch(
            self.store,
            self.committer,
            audit=self.audit,
            metrics=self.metrics,
            now_ms=self.clock.now_ms,
        )

    def _driver(self, limits: OpeningLimits) -> Driver:
        return Driver(
            DriverParts(
                committer=self.committer,
                sessions=self.sessions,
                targets=self.targets,
                clock=self.clock,
                observer=Observers(self.seen, self.sla),
                record=lambda session_id, number: self.recorded.append((session_id, number)),
                defaults=Defaults(timeout_ms=5_000, backoff=limits.backoff),
            )
        )

    def _service(self, limits: OpeningLimits, seed: int) -> SessionService:
        openings = Openings(
            self.driver,
            self.workflows,
            store=self.store,
            chance=SeededChance(seed),
            limits=limits,
        )
        return SessionService(
            ServiceParts(
                driver=self.driver,
                openings=openings,
                pages=Pages(self.store),
                streams=Streams(self.driver, self.store, sealer=self.sealer),
                erasing=self.erasing,
                contexts=self.contexts,
            )
        )

    def _workflow_of(self, digest: str) -> Workflow | None:
        return self.workflows.by_digest(digest) if digest else None

    async def _forget(self, session_id: str) -> int:
        self.forgotten.append(session_id)
        return 1

    # ---- what tests do ------------------------------------------------------------------------

    async def learn(self, text: str) -> str:
        """Store a workflow under a name of its own; its reference."""
        unique = hashlib.sha256(text.encode()).hexdigest()[:8]
        text = text.replace("workflow: ", f"workflow: w{unique}-", 1)
        workflow = workflow_of(text)
        await self.workflows.put(workflow.name, workflow.version, source=text.encode())
        return f"{workflow.name}@{workflow.version}"

    async def open(
        self, text: str, *, principal: Principal = LOCAL, wait_s: float = 0, **fields: object
    ) -> str:
        """Open a session of this workflow; its id."""
        request = await self.request(text, **fields)
        found, _ = await self.service.open(request, principal, wait_s=wait_s)
        return found.session_id

    async def request(self, text: str, **fields: object) -> OpenSession:
        name = await self.learn(text) if text else ""
        mode = Mode.AUTOMATIC if text else Mode.MANUAL
        plain = {"input": payload(b'{"query":"hello"}'), "mode": mode, **fields}
        return OpenSession(workflow=name, **plain)  # type: ignore[arg-type]

    async def ended(self, session_id: str, principal: Principal = LOCAL) -> SessionView:
        """Let time pass until the session has ended."""
        for _ in range(10_000):
            view = await self.service.view(session_id, principal)
            if view.status in TERMINAL_SESSION:
                return view
            await asyncio.sleep(0.05)
        raise AssertionError(f"{session_id} does not end")

    def journal(self, session_id: str) -> list[AnyEvent]:
        """What is written of a session."""
        return [e for _, e in read_events(self.store, self.sealer, session_id=session_id)]

    def state(self, session_id: str) -> SessionState:
        live = self.sessions.find(session_id)
        assert live is not None
        return live.state

    async def resume(self) -> int:
        """What a start does with sessions that had not ended."""
        return await resume_all(self.driver, open_sessions(self.store))

    def check_permits(self) -> None:
        """Nothing is held once nothing runs."""
        assert self.executors.inflight == 0
        assert not len(self.admitting.permits), "every permit is closed"
        assert not self.admission.row.waiting, "nobody stands in a queue"
        assert not self.admission.row.taken(), "every slot is given back"
        assert not self.absence._since
        assert not self.absence._waiting


async def told(awaitable: Awaitable[object]) -> str:
    """The reason that this fails with."""
    try:
        found = await awaitable
    except AcpFailure as failure:
        return failure.error.reason
    raise AssertionError(f"this should have been refused: {found}")
