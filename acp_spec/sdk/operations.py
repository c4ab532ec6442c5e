"""Long operations: accepted calls whose work goes on after the answer (SPEC sections 3 and 9.5).

The id is the call_id. Running ones live here; ended ones go to the outcome store, so that a poll
after a restart finds a result where the store is durable, and NOT_FOUND (side effect UNKNOWN)
where it is not.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable

import msgspec

from acp_spec.model.calls import CancelResponse, OperationState
from acp_spec.model.context import Callback
from acp_spec.model.enums import CancelState, OperationStatus, SideEffect
from acp_spec.model.errors import Reason
from acp_spec.model.session import CompleteOperation
from acp_spec.sdk.clock import Clock, sleep_ms
from acp_spec.sdk.faults import refusal
from acp_spec.sdk.outcomes import OutcomeStore, OutcomesUnavailable, Record, Stage
from acp_spec.sdk.running import Running

OPERATIONS_MAX = 1000
"""Accepted and unfinished at once; beyond it new ones are refused rather than forgotten."""
CALL_BACK_TRIES = 5
CALL_BACK_PAUSE_MS = 500.0
"""Doubled after each failure, so 7.5 s in all; polling finds the result anyway."""

log = logging.getLogger(__name__)


class CallBackFailed(Exception):
    """The caller did not take a result; it stays for polls."""


CallBack = Callable[[Callback, CompleteOperation], Awaitable[None]]
"""Reports one result; raises CallBackFailed when it did not arrive."""


class Operations:
    def __init__(self, store: OutcomeStore, *, clock: Clock, call_back: CallBack) -> None:
        self._store = store
        self._clock = clock
        self._call_back = call_back
        self._running: dict[str, tuple[Running, int]] = {}
        # Few: as many as ended while the store could not be written.
        self._unsaved: dict[str, Record] = {}
        self._reports: set[asyncio.Task[None]] = set()

    def check_room(self) -> None:
        if len(self._running) >= OPERATIONS_MAX:
            raise refusal(
                Reason.OVERLOADED, f"The component already has {OPERATIONS_MAX} operations going."
            )

    def accept(self, running: Running, poll_after_ms: int) -> None:
        """The operation exists from now on; it is found by polls before its work begins."""
        self._running[running.call_id] = (running, poll_after_ms)

    async def finish(
        self, call_id: str, state: OperationState, *, ttl_ms: float, callback: Callback | None
    ) -> None:
        """Remember the result, then report it: a poll never sees less than a call-back said."""
        record = Record(
            call_id=_key(call_id),
            digest="",
            attempt=0,
            stage=Stage.SETTLED,
            expires_at_ms=self._clock.wall_ms() + ttl_ms,
            outcome=msgspec.json.encode(state),
        )
        try:
            await self._store.put(record)
        except OutcomesUnavailable:
            log.exception("the result of operation %s is kept in memory only", call_id)
            self._unsaved[call_id] = record
        self._running.pop(call_id, None)
        if callback is not None:
            result = CompleteOperation(output=state.output, error=state.error)
            report = asyncio.create_task(self._report(callback, result, call_id=call_id))
            self._reports.add(report)
            report.add_done_callback(self._reports.discard)

    async def get(self, call_id: str) -> OperationState:
        """Where it stands; raises NOT_FOUND when nothing is known of it."""
        running = self._running.get(call_id)
        if running is not None:
            return OperationState(status=OperationStatus.RUNNING, poll_after_ms=running[1])
        record = self._unsaved.get(call_id) or await self._store.get(_key(call_id))
        if record is None or record.expires_at_ms <= self._clock.wall_ms():
            raise refusal(
                Reason.NOT_FOUND,
                f"No operation {call_id} is known here: it was never accepted, or it is forgotten.",
            )
        return msgspec.json.decode(record.outcome, type=OperationState)

    async def ended(self, call_id: str) -> CancelResponse:
        """How an operation ended that runs no more; raises NOT_FOUND when none is known."""
        state = await self.get(call_id)
        return CancelResponse(
            state=CancelState.FINISHED, side_effect=state.side_effect or SideEffect.UNKNOWN
        )

    def running(self, call_id: str) -> Running | None:
        entry = self._running.get(call_id)
        return entry[0] if entry else None

    async def reported(self) -> None:
        """Wait for call-backs under way (the drain does)."""
        while self._reports:
            await asyncio.wait(set(self._reports))

    async def _report(self, to: Callback, result: CompleteOperation, *, call_id: str) -> None:
        pause_ms = CALL_BACK_PAUSE_MS
        for tried in range(1, CALL_BACK_TRIES + 1):
            try:
                await self._call_back(to, result)
                return
            except CallBackFailed as error:
                log.warning("call-back %d of operation %s failed: %s", tried, call_id, error)
            if tried < CALL_BACK_TRIES:
                await sleep_ms(self._clock, pause_ms)
                pause_ms *= 2


def _key(call_id: str) -> str:
    """Operations share the store with outcomes; no call_id contains a NUL."""
    return f"operation\0{call_id}"
