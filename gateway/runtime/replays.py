"""Recorded sessions run again on other versions, before anybody is served by those (R25).

A replay is a twin whose primary is a record that came with the request: READ calls go to the
candidate for real, every other call is answered from the record. It is nobody's session, keeps no
trajectory, and waits behind all callers like every twin.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import msgspec

from acp_spec.bindings.errors import error, invalid_request
from acp_spec.model.bounds import NonEmpty
from acp_spec.model.enums import Boundary, SessionStatus
from acp_spec.model.errors import AcpError, AcpFailure, Reason
from acp_spec.model.ids import is_session_id
from acp_spec.model.payload import ABSENT, Payload
from acp_spec.model.session import OpenSession, RolloutMark
from acp_spec.model.trajectory import Trajectory
from gateway.engine.catalog import Catalog
from gateway.engine.measures import sample
from gateway.engine.pins import swapped
from gateway.engine.recording import recording
from gateway.engine.states import SessionState
from gateway.governance.rollout_judging import Arm
from gateway.runtime.driver import Driver
from gateway.runtime.opening import Openings
from gateway.runtime.principal import Principal
from gateway.runtime.rollout_traffic import Intent, guarded
from gateway.runtime.twins import TwinEnd, Twins, TwinWish

MARK = RolloutMark(rollout="replay", stage="REPLAY", arm=Arm.CANDIDATE.value)
"""What a replay's trajectory says it is."""


class ReplayRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`workflow`: name or name@range; `candidates`: `component@version` in place of what would
    serve; `trajectory`: the recorded session, as it was exported. `keep`: the replay can be looked
    at later; else it is erased, because deleting the recorded session would not delete it."""

    workflow: NonEmpty
    candidates: tuple[str, ...] = ()
    trajectory: Payload = ABSENT
    keep: bool = False


class ReplayResult(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How the replay ended. `work_ms`: without waits for the gateway; `uncovered`: calls that the
    record has no answer for; `deviations`: calls that another version than the candidate served."""

    session_id: str
    lineage_id: str
    status: SessionStatus
    fell_back: bool = False
    output: Payload = ABSENT
    error: AcpError | None = None
    work_ms: int
    calls: int
    intended: dict[str, str] = {}
    uncovered: tuple[str, ...] = ()
    deviations: int = 0


@dataclass(frozen=True, slots=True)
class Replays:
    """Runs recorded sessions of one gateway's operators."""

    driver: Driver
    openings: Openings
    twins: Twins
    erase: Callable[[str], Awaitable[None]]

    async def run(self, request: ReplayRequest, principal: Principal) -> ReplayResult:
        """Run it to its end. Raises INVALID_REQUEST, NOT_FOUND, or OVERLOADED when there was no
        room for it."""
        recorded = _recorded(request.trajectory)
        wish = self._wish(request, recorded, principal=principal)
        done: asyncio.Future[TwinEnd | None] = asyncio.get_running_loop().create_future()

        def told(end: TwinEnd | None) -> None:
            if not done.done():
                done.set_result(end)

        self.twins.offer(lambda: wish, told)
        end = await done
        if end is None:
            message = "no room for a replay beside the callers: try again later, or slower"
            raise AcpFailure(
                error(Reason.OVERLOADED, message, boundary=Boundary.GATEWAY, retry_after_ms=1_000)
            )
        if not request.keep:
            await self.erase(end.state.session_id)
        return _result(end.state, uncovered=end.uncovered)

    def _wish(
        self, request: ReplayRequest, recorded: Trajectory, *, principal: Principal
    ) -> TwinWish:
        catalog = self.driver.catalog()
        opening = OpenSession(
            workflow=request.workflow, input=recorded.input, labels=recorded.labels
        )
        before: dict[str, str] = {}

        def swap(intent: Intent) -> Intent:
            before.update(intent.pins)
            return _swapped(intent, request.candidates, catalog=catalog)

        workflow, opened = self.openings.replayed(opening, principal, swap=swap)
        marked = msgspec.structs.replace(opened, twin_of=recorded.session_id, rollouts=(MARK,))
        record = guarded(recording(recorded), before, catalog=catalog)
        return TwinWish(opened=marked, workflow=workflow, record=record)


def _recorded(text: Payload) -> Trajectory:
    try:
        found = msgspec.json.decode(bytes(text) or b"null", type=Trajectory)
    except msgspec.DecodeError as problem:
        raise invalid_request(f"trajectory: {problem}") from None
    if not is_session_id(found.session_id):
        # Without it the replay would be nobody's twin, and its writes would be sent.
        raise invalid_request(
            f"trajectory.session_id: {found.session_id[:40]!r} is no session's id"
        )
    return found


def _swapped(intent: Intent, candidates: tuple[str, ...], *, catalog: Catalog) -> Intent:
    """Every candidate in the place of the version that would serve; each must have a place."""
    pins = intent.pins
    for candidate in candidates:
        name, _, version = candidate.rpartition("@")
        if not name or not version:
            raise invalid_request(f"candidates: {candidate!r} is not component@version")
        if catalog.exact(candidate) is None:
            message = f"candidates: no instance of {candidate} is registered"
            raise AcpFailure(error(Reason.NOT_FOUND, message))
        for pin in sorted(set(pins.values())):
            if pin.rpartition("@")[0] == name and pin != candidate:
                pins = swapped(pins, intent.workflow, catalog=catalog, to=(pin, candidate))
        if candidate not in pins.values():
            raise invalid_request(
                f"candidates: the workflow has no step that {candidate} could serve"
            )
    return msgspec.structs.replace(intent, pins=pins)


def _result(state: SessionState, *, uncovered: tuple[str, ...]) -> ReplayResult:
    return ReplayResult(
        session_id=state.session_id,
        lineage_id=state.opened.lineage_id,
        status=state.status,
        fell_back=state.fell_back,
        output=state.output,
        error=state.error,
        work_ms=int(sample(state).work_ms),
        calls=len(state.calls),
        intended=state.opened.pins,
        uncovered=uncovered,
        deviations=len(state.deviations),
    )
