"""What the borders need from behind them, as ports: sessions, components, readiness, metrics.

HTTP and gRPC call the same methods, so that both answer alike. Every method may raise `AcpFailure`;
any other exception is a bug of ours and leaves as INTERNAL.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from acp_spec.model.enums import SessionStatus
from acp_spec.model.gateway_calls import GiveFeedbackRequest
from acp_spec.model.session import (
    CompleteOperation,
    Component,
    Feedback,
    FeedbackAccepted,
    FinishRequest,
    Heartbeat,
    ManualStep,
    Opened,
    OpenSession,
    RegisterRequest,
    SessionPage,
    SessionView,
    StepResult,
)
from gateway.board.audit import AuditLog
from gateway.runtime.archive import Archive
from gateway.runtime.board import Board
from gateway.runtime.dashboard.dashboard import Dashboard
from gateway.runtime.evidence import Evidences
from gateway.runtime.fallback_drills import Drills
from gateway.runtime.judging import JudgedMany
from gateway.runtime.lineage import Lineages
from gateway.runtime.parameters import ParameterBook
from gateway.runtime.principal import NO_TRACE, Principal, Trace
from gateway.runtime.records import Records
from gateway.runtime.replays import ReplayRequest, ReplayResult
from gateway.runtime.reviews import Reviews
from gateway.runtime.reward_rules import RewardBook
from gateway.runtime.rollouts import Rollouts
from gateway.runtime.semantics_review import SemanticsReview
from gateway.runtime.sla_watch import SlaWatch
from gateway.runtime.target_views import TargetView
from gateway.runtime.tokens import Tokens
from gateway.runtime.workflows import Workflows
from gateway.telemetry.metrics import Metrics


class Sessions(Protocol):
    """Sessions of one gateway; a session of another tenant is NOT_FOUND everywhere."""

    async def open(
        self,
        request: OpenSession,
        principal: Principal,
        *,
        wait_s: float = 0,
        trace: Trace = NO_TRACE,
    ) -> tuple[Opened | SessionView, bool]:
        """Open once durable; the view if it ended within `wait_s`. False: the key was used."""

    async def view(
        self, session_id: str, principal: Principal, *, min_version: str = ""
    ) -> SessionView:
        """How it stands; STALE_STATE if older than `min_version`."""

    async def page(
        self,
        principal: Principal,
        *,
        status: SessionStatus | None = None,
        workflow: str = "",
        after: str = "",
        limit: int = 50,
    ) -> SessionPage:
        """One keyset page of this tenant's sessions."""

    async def manual_step(
        self, session_id: str, step: ManualStep, *, principal: Principal, wait_s: float
    ) -> StepResult:
        """Run one step of a MANUAL session; RUNNING when it takes longer than `wait_s`."""

    async def step_result(
        self, session_id: str, step_key: str, *, principal: Principal
    ) -> StepResult:
        """How a manual step stands."""

    async def finish(
        self, session_id: str, request: FinishRequest, *, principal: Principal
    ) -> SessionView:
        """End a MANUAL session with its output."""

    async def feedback(
        self, session_id: str, feedback: Feedback, *, principal: Principal
    ) -> FeedbackAccepted:
        """Take a judgement, also long after the end."""

    async def feedback_in_bulk(
        self, asked: Sequence[GiveFeedbackRequest], *, principal: Principal
    ) -> JudgedMany:
        """Take many judgements, each for itself; all that were taken are on disk."""

    async def cancel(self, session_id: str, principal: Principal) -> SessionView:
        """Ask it to stop; it is CANCELLED once every call has ended or its grace has passed."""

    async def erase(self, session_id: str, principal: Principal) -> None:
        """Erase its payloads; a tombstone stays."""

    async def trajectory(self, session_id: str, principal: Principal) -> bytes:
        """The whole record, as JSON text."""

    async def lineage(self, lineage_id: str, principal: Principal) -> bytes:
        """What was intended and what served, as JSON text."""

    async def complete_operation(
        self, call_id: str, token: str, *, result: CompleteOperation
    ) -> None:
        """The call-back of a long operation; `token` is bound to the call."""

    def events(
        self, session_id: str, principal: Principal, *, after: int
    ) -> AsyncIterator[tuple[int, str, bytes]]:
        """(number, name, JSON data) of synced events, until after the terminal one."""


class Components(Protocol):
    """The registry of component instances."""

    async def register(self, request: RegisterRequest, principal: Principal) -> Component: ...

    def list(self) -> tuple[Component, ...]: ...

    def get(self, component_id: str) -> Component:
        """Raises NOT_FOUND."""

    async def heartbeat(self, component_id: str, beat: Heartbeat) -> Component: ...

    async def drain(self, component_id: str) -> Component: ...

    async def delete(self, component_id: str) -> None: ...


class RunReplay(Protocol):
    """Recorded sessions on other versions."""

    async def run(self, request: ReplayRequest, principal: Principal) -> ReplayResult: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """All that a border can reach.

    `unready` gives the reasons why no traffic should come (none: ready).
    """

    sessions: Sessions
    components: Components
    workflows: Workflows
    tokens: Tokens
    audit: AuditLog
    sla: SlaWatch
    semantics: SemanticsReview
    drills: Drills
    board: Board
    evidences: Evidences
    rollouts: Rollouts
    records: Records
    dashboard: Dashboard
    lineages: Lineages
    archive: Archive
    parameters: ParameterBook
    targets: Callable[[], tuple[TargetView, ...]]
    replays: RunReplay
    rewards: RewardBook
    reviews: Reviews
    unready: Callable[[], tuple[str, ...]]
    metrics: Metrics
