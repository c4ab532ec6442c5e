"""Evidence for proposals: what is measured for which kind, and attaching what came out.

The gateway runs the measurement itself, so that the figures are its own and not the proposer's.
A measurement outlives the request that asked for it; it ends with the gateway.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, Final

import msgspec

from acp_spec.bindings.errors import error
from acp_spec.model.enums import Boundary
from acp_spec.model.errors import AcpFailure, Reason
from gateway.board.proposals import PENDING, Evidence, EvidenceKind, Proposal
from gateway.runtime.board import Board, ProposalView
from gateway.runtime.clock import Chance, Clock
from gateway.runtime.measuring import Measured, Measurement
from gateway.runtime.principal import Principal
from gateway.telemetry.logs import get_log

log = get_log(__name__)

WAITING_MAX: Final = 4
"""Measurements take minutes and run one by one; a longer queue is somebody's mistake."""
_ID_BYTES: Final = 6


class EvidenceRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What to measure: CONFORMANCE of the instance at `target`, or a LOAD_RUN of a `workflow`.

    `workflow`: name@version, the proposal's own if it is about one. `input`: JSON text of each
    session under load; `sessions` at once for `seconds`. Or a REPLAY of so many recorded
    `sessions` of the `workflow` on the versions that `candidates` name.
    """

    kind: EvidenceKind
    target: str = ""
    workflow: str = ""
    input: str = "null"
    sessions: Annotated[int, msgspec.Meta(ge=1, le=256)] = 4
    seconds: Annotated[float, msgspec.Meta(ge=0.5, le=300)] = 10
    candidates: tuple[str, ...] = ()


Plan = Callable[[Proposal, EvidenceRequest], Awaitable[Measurement]]
"""What to run for a request; raises AcpFailure when it does not say enough."""
Run = Callable[[Measurement], Awaitable[Measured]]


class Evidences:
    """Measurements of one gateway that run or wait."""

    def __init__(
        self,
        board: Board,
        run: Run,
        *,
        plans: Mapping[EvidenceKind, Plan],
        clock: Clock,
        chance: Chance,
    ) -> None:
        self._board = board
        self._run = run
        self._plans = plans
        self._clock = clock
        self._chance = chance
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(
        self,
        proposal_id: str,
        request: EvidenceRequest,
        *,
        principal: Principal,
        wait_s: float = 0,
    ) -> ProposalView:
        """Begin to measure, and wait so long for the end; it is attached whenever it ends."""
        view = self._board.get(proposal_id)
        if view.proposal.status not in PENDING:
            text = f"proposal: it is {view.proposal.status.value}, evidence cannot be attached"
            raise AcpFailure(error(Reason.INVALID_REQUEST, text))
        plan = self._plans.get(request.kind)
        if plan is None:
            text = f"kind: this gateway cannot measure {request.kind.value}"
            raise AcpFailure(error(Reason.INVALID_REQUEST, text))
        if len(self._tasks) >= WAITING_MAX:
            text = f"{WAITING_MAX} measurements run or wait: ask again when one has ended"
            failure = error(
                Reason.OVERLOADED, text, boundary=Boundary.GATEWAY, retry_after_ms=30_000
            )
            raise AcpFailure(failure)
        measurement = await plan(view.proposal, request)
        task = asyncio.create_task(
            self._measure(proposal_id, request.kind, measurement=measurement, principal=principal)
        )
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        if wait_s:
            await asyncio.wait((task,), timeout=wait_s)
        return self._board.get(proposal_id)

    async def _measure(
        self,
        proposal_id: str,
        kind: EvidenceKind,
        *,
        measurement: Measurement,
        principal: Principal,
    ) -> None:
        measured = await self._run(measurement)
        evidence = Evidence(
            evidence_id=self._chance.random_bytes(_ID_BYTES).hex(),
            kind=kind,
            at_ms=self._clock.now_ms(),
            figures=measured.figures,
            command=measurement.words,
            exit_code=measured.exit_code,
            report_sha256=measured.report_sha256,
            asked_by=principal.subject,
        )
        try:
            await self._board.attach(proposal_id, evidence, principal=principal)
        except AcpFailure as refused:  # it was closed meanwhile
            log.info("evidence_dropped", proposal=proposal_id, why=refused.error.message)

    async def close(self) -> None:
        """Stop what runs; nothing is attached for it."""
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
