"""Twins: sessions beside others, or on recorded traffic, whose results nobody is given.

A twin sends READ calls only (SPEC 9.7). Every other call is answered from a record, after the time
that it took there; what the record does not have is refused and counted, never sent. Twins stand
behind everybody: they begin when nothing waits, so many at once, and are dropped under load.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import msgspec

from acp_spec.bindings.errors import error
from acp_spec.model.enums import Boundary, Effect, SessionStatus, SideEffect
from acp_spec.model.errors import AcpError, AcpFailure, Code, Reason
from gateway.engine.around import Around
from gateway.engine.commands import CancelCall, Command, Reset, Send
from gateway.engine.definition import Workflow
from gateway.engine.events import (
    AnyEvent,
    AttemptEnded,
    AttemptStarted,
    CancelRequested,
    Opened,
    Refused,
    SessionEnded,
)
from gateway.engine.recording import RecordedCall, Recording, matched
from gateway.engine.states import CallState, Phase, SessionState
from gateway.runtime.driver import Driver
from gateway.runtime.executors import Executors
from gateway.runtime.live import Live
from gateway.runtime.restart import open_sessions
from gateway.stores.ports import Store
from gateway.telemetry.logs import get_log

# Looks at whether there is room again after so long: a short call's time.
LOOK_AGAIN_S: Final = 0.05
# A twin that found no room for so long is dropped: its place is for one that does.
PATIENCE_S: Final = 5.0
# No recorded call keeps a twin waiting longer; a long operation took hours.
ANSWER_AFTER_MS_MAX: Final = 30_000

log = get_log("gateway.twins")


class TwinLimits(msgspec.Struct, frozen=True, kw_only=True):
    """So many twins at once, so many that wait; more are dropped."""

    concurrency: int = 4
    max_queued: int = 256


class TwinWish(msgspec.Struct, frozen=True, kw_only=True):
    """A twin to run: its opening, its workflow, what its calls are answered from."""

    opened: Opened
    workflow: Workflow
    record: Recording


class TwinEnd(msgspec.Struct, frozen=True, kw_only=True):
    """How a twin ended. `uncovered`: calls that the record has no answer for (step, action)."""

    state: SessionState
    uncovered: tuple[str, ...] = ()


Make = Callable[[], TwinWish | None]
"""The wish, when its turn has come; None: it is not wanted any more."""
Done = Callable[[TwinEnd | None], None]
"""Told once how the twin ended; None: it was dropped."""


@dataclass(slots=True)
class _Run:
    """One twin under way. `recorded`: the attempts that are answered from the record."""

    record: Recording
    recorded: dict[tuple[str, int], RecordedCall] = field(default_factory=dict)
    uncovered: list[str] = field(default_factory=list)
    held_s: float = 0.0


class Twins:
    """The driver's executor: everything passes through, twins are taken aside."""

    def __init__(
        self, driver: Driver, inner: Executors, *, limits: TwinLimits = TwinLimits()
    ) -> None:
        self._driver = driver
        self._inner = inner
        self._limits = limits
        self._runs: dict[str, _Run] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._slots = asyncio.Semaphore(limits.concurrency)

    @property
    def running(self) -> int:
        """Twins under way."""
        return len(self._runs)

    @property
    def waiting(self) -> int:
        """Twins that wait for their turn."""
        return len(self._tasks) - len(self._runs)

    # ---- one twin ------------------------------------------------------------------------------

    def offer(self, make: Make, done: Done) -> None:
        """Run a twin when there is room; `done` is told how it ended, at once if it is dropped."""
        if self._inner.admitting.stopped or self.waiting >= self._limits.max_queued:
            done(None)
            return
        task = asyncio.get_running_loop().create_task(self._in_turn(make, done))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _in_turn(self, make: Make, done: Done) -> None:
        """Whatever happens, `done` is told: somebody may wait for it."""
        end = None
        try:
            async with self._slots:
                wish = await self._wish(make)
                end = await self._run(wish) if wish is not None else None
        except Exception as fault:
            log.error("twin_fault", cause=fault)
        done(end)

    async def _wish(self, make: Make) -> TwinWish | None:
        """The wish once nothing of anybody else waits; None when that takes too long."""
        waited_s = 0.0
        while self._is_busy():
            if waited_s >= PATIENCE_S:
                return None
            await asyncio.sleep(LOOK_AGAIN_S)
            waited_s += LOOK_AGAIN_S
        try:
            return make()
        except AcpFailure as failure:
            log.info("twin_not_made", reason=failure.error.reason, said=failure.error.message)
            return None

    async def _run(self, wish: TwinWish) -> TwinEnd | None:
        session_id = wish.opened.session_id
        run = self._runs[session_id] = _Run(wish.record)
        ended = asyncio.Event()
        try:
            live = self._driver.open(wish.workflow, wish.opened)
            live.on_end.append(ended.set)
            await ended.wait()
            live.on_end.remove(ended.set)
        finally:
            del self._runs[session_id]
        if live.state.status is SessionStatus.CANCELLED:
            return None
        return TwinEnd(state=live.state, uncovered=tuple(run.uncovered))

    def _is_busy(self) -> bool:
        return self._inner.admitting.stopped or self._inner.admitting.is_busy

    # ---- the driver's executor -----------------------------------------------------------------

    def admit(self, live: Live, call_id: str) -> AnyEvent | None:
        if not live.state.opened.twin_of:
            return self._inner.admit(live, call_id)
        run = self._runs.get(live.state.session_id)
        call = live.state.calls[call_id]
        if run is None or self._inner.admitting.stopped or live.state.terminal:
            return None  # cut off by a restart: `drop_leftovers` ends it
        if not _is_sent(run.record, call):
            return self._from_record(live, call, run=run)
        if not self._inner.admitting.has_room(live, call):
            self._hold(live, call, run=run)
            return None
        return self._inner.admit(live, call_id)

    def around(self, live: Live, call: CallState) -> Around:
        """Of a call that is answered from the record nothing but the time is known."""
        run = self._runs.get(live.state.session_id) if live.state.opened.twin_of else None
        if run is not None and not _is_sent(run.record, call):
            return Around(at_ms=self._driver.now_ms(live))
        return self._inner.around(live, call)

    def hedge(self, live: Live, call_id: str) -> AnyEvent | None:
        """A twin sends nothing twice."""
        return None if live.state.opened.twin_of else self._inner.hedge(live, call_id)

    def settled(self, live: Live) -> None:
        self._inner.settled(live)

    def act(self, live: Live, command: Command) -> None:
        run = self._runs.get(live.state.session_id) if live.state.opened.twin_of else None
        match command:
            case Send() | CancelCall() | Reset() if run is not None and self._is_kept(run, command):
                self._act_recorded(live, command, run=run)
            case _:
                self._inner.act(live, command)

    @staticmethod
    def _is_kept(run: _Run, command: Send | CancelCall | Reset) -> bool:
        return (command.call_id, command.attempt) in run.recorded

    # ---- answered from the record ----------------------------------------------------------------

    def _from_record(self, live: Live, call: CallState, *, run: _Run) -> AnyEvent:
        found = matched(run.record, live.state, call=call)
        created, at_ms = call.created, self._driver.now_ms(live)
        if found is None:
            what = f"{created.step}: {created.action}" if created.action else created.step
            run.uncovered.append(what)
            return Refused(
                at_ms=at_ms,
                call_id=created.call_id,
                attempt=call.number,
                error=_not_recorded(what),
                policy="record",
            )
        run.recorded[created.call_id, call.number] = found
        return AttemptStarted(
            at_ms=at_ms,
            call_id=created.call_id,
            attempt=call.number,
            component=created.component,
            version=created.version,
            instance=f"record:{found.call_id}",
            timeout_ms=created.timeout_ms,
            queued_at_ms=call.queued_at_ms,
        )

    def _act_recorded(self, live: Live, command: Send | CancelCall | Reset, *, run: _Run) -> None:
        """Nobody has to be told of a cancel: the answer comes, or the grace ends the call."""
        session_id, loop = live.state.session_id, asyncio.get_running_loop()
        if isinstance(command, Reset):
            loop.call_soon(lambda: self._answer(session_id, command, found=None))
        elif isinstance(command, Send):
            found = run.recorded[command.call_id, command.attempt]
            after_ms = min(found.answer(command.attempt).took_ms, ANSWER_AFTER_MS_MAX)
            loop.call_later(after_ms / 1000, lambda: self._answer(session_id, command, found=found))

    def _answer(
        self, session_id: str, command: Send | Reset, *, found: RecordedCall | None
    ) -> None:
        live = self._driver.find(session_id)
        call = live.state.calls[command.call_id] if live else None
        if live is None or call is None or live.state.terminal:
            return
        if call.phase is not Phase.SENT or call.number != command.attempt:
            return
        at_ms = self._driver.now_ms(live)
        self._driver.feed(live, _ended(command, found, at_ms=at_ms))

    # ---- behind everybody ------------------------------------------------------------------------

    def _hold(self, live: Live, call: CallState, *, run: _Run) -> None:
        """Ask again in a moment; a twin that finds no room for long gives its place up."""
        call_id = call.created.call_id
        live.waiting.add(call_id)
        run.held_s += LOOK_AGAIN_S
        ask = self._give_up if run.held_s >= PATIENCE_S else self._ask_again
        loop = asyncio.get_running_loop()
        loop.call_later(LOOK_AGAIN_S, ask, live.state.session_id, call_id)

    def _ask_again(self, session_id: str, call_id: str) -> None:
        live = self._driver.find(session_id)
        if live is None or live.state.terminal:
            return
        live.waiting.discard(call_id)
        call = live.state.calls[call_id]
        event = self.admit(live, call_id) if call.phase is Phase.READY else None
        if event is not None:
            self._driver.feed(live, event)

    def _give_up(self, session_id: str, call_id: str) -> None:
        live = self._driver.find(session_id)
        if live is not None and not live.state.terminal:
            at_ms = self._driver.now_ms(live)
            self._driver.feed(live, CancelRequested(at_ms=at_ms, by="the gateway, under load"))

    # ---- start and stop --------------------------------------------------------------------------

    def drop_leftovers(self, store: Store) -> tuple[SessionState, ...]:
        """End every twin that an earlier run left open: what it was compared with goes on alone."""
        dropped = []
        for session_id in open_sessions(store, twins=True):
            try:
                live = self._driver.find(session_id)
            except AcpFailure as problem:
                log.error("twin_unreadable", cause=problem, session_id=session_id)
                continue
            if live is not None and not live.state.terminal:
                end_twin(self._driver, live, why="the gateway was restarted")
                dropped.append(live.state)
        return tuple(dropped)

    async def close(self) -> None:
        """Stop; twins under way are dropped at the next start."""
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


def end_twin(driver: Driver, live: Live, *, why: str) -> None:
    """End a twin at once: its answers concern nobody."""
    failure = error(Reason.CANCELLED, f"the twin was dropped: {why}", boundary=Boundary.GATEWAY)
    at_ms = driver.now_ms(live)
    driver.feed(live, SessionEnded(at_ms=at_ms, status=SessionStatus.CANCELLED, error=failure))


def _is_sent(record: Recording, call: CallState) -> bool:
    """READ by its own card, and not called a WRITE by the card that the primary used."""
    created = call.created
    return created.effect is Effect.READ and created.action not in record.writes


def _not_recorded(what: str) -> AcpError:
    return AcpError(
        code=Code.FAILED_PRECONDITION,
        reason="NOT_RECORDED",
        message=f"a twin sends no writes, and the record has no such call ({what})",
        side_effect=SideEffect.NONE,
        boundary=Boundary.GATEWAY,
    )


def _ended(command: Send | Reset, found: RecordedCall | None, *, at_ms: int) -> AttemptEnded:
    if found is None:
        failure = error(Reason.CANCELLED, "reset", side_effect=SideEffect.NONE)
        return AttemptEnded(
            at_ms=at_ms,
            call_id=command.call_id,
            attempt=command.attempt,
            error=failure,
            side_effect=SideEffect.NONE,
            answered=False,
        )
    answer = found.answer(command.attempt)
    return AttemptEnded(
        at_ms=at_ms,
        call_id=command.call_id,
        attempt=command.attempt,
        response=answer.response,
        error=answer.error,
        side_effect=answer.side_effect,
    )
