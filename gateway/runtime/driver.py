"""The embedded driver: feed events to the engine, append what came of it, then act (idea 2).

`feed` runs the pure engine until it waits for the outside, appends everything as one record, and
hands the commands to the executors once the record is written. It decides nothing itself. It is
called on the event loop only and never from within itself: what a command causes comes later.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import msgspec

from acp_spec.bindings.errors import error
from acp_spec.model.card import Card
from acp_spec.model.enums import Boundary, SessionStatus
from acp_spec.model.errors import Reason
from gateway.engine import recovery
from gateway.engine.advance import advance
from gateway.engine.around import Around
from gateway.engine.commands import (
    Advance,
    Call,
    Command,
    Decide,
    End,
    Hedge,
    Record,
    StartTimer,
)
from gateway.engine.definition import Workflow
from gateway.engine.events import (
    AnyEvent,
    Decided,
    Event,
    FeedbackGiven,
    Opened,
    SessionEnded,
    TimerFired,
)
from gateway.engine.policies import defaults_of, policy_for
from gateway.engine.shards import changed
from gateway.engine.states import CallState, Phase, SessionState, evolve
from gateway.engine.step import apply, begin
from gateway.engine.world import World, nothing_told
from gateway.governance.backoff import Backoff
from gateway.runtime.clock import Clock
from gateway.runtime.committer import Committer
from gateway.runtime.live import Erased, Live, LiveSessions
from gateway.runtime.meaning import NO_GUESSES, Meaning
from gateway.runtime.targets import Targets
from gateway.runtime.timers import Timers
from gateway.stores.errors import StoreError
from gateway.stores.ports import Table
from gateway.stores.tables import listed_row, shard_row
from gateway.telemetry.logs import get_log

log = get_log("gateway.driver")


class Observer(Protocol):
    """Sees every event with the state it led to: metrics, spans, logs."""

    def seen(self, state: SessionState, event: AnyEvent) -> None: ...


class Executor(Protocol):
    """Does what the engine's commands say (`executors.Executors`)."""

    def admit(self, live: Live, call_id: str) -> AnyEvent | None:
        """Start, defer or refuse the next attempt, as an event; None while it must wait."""

    def act(self, live: Live, command: Command) -> None:
        """Reach the outside. The event behind this is written; WRITEs wait for the sync."""

    def hedge(self, live: Live, call_id: str) -> AnyEvent | None:
        """Start a second attempt elsewhere, as an event; None: the first one goes on alone."""

    def around(self, live: Live, call: CallState) -> Around:
        """What is known of the target now, for a recovery decision."""

    def settled(self, live: Live) -> None:
        """What was fed has been applied: close what is over by it."""


RecordTrajectory = Callable[[str, int], None]
"""`record(session_id, sequence)`: the outbox takes the trajectory, in the batch of the event."""


class Defaults(msgspec.Struct, frozen=True, kw_only=True):
    """Where a card, a workflow or a caller names nothing."""

    timeout_ms: int
    backoff: Backoff


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverParts:
    """What a driver stands on."""

    committer: Committer
    sessions: LiveSessions
    targets: Targets
    clock: Clock
    observer: Observer
    record: RecordTrajectory
    defaults: Defaults
    meaning: Meaning = NO_GUESSES


class Driver:
    """Sessions of one gateway over one store. `executor` is set once, before the first feed."""

    executor: Executor

    def __init__(self, parts: DriverParts) -> None:
        self.committer = parts.committer
        self.sessions = parts.sessions
        self.clock = parts.clock
        self.catalog = parts.targets.catalog
        self.meaning = parts.meaning
        self._targets = parts.targets
        self._observer = parts.observer
        self._record = parts.record
        self._defaults = parts.defaults
        self.signals: Callable[[], bytes] = nothing_told
        """What expressions read under the name `signals`."""
        self.backoff_of: Callable[[str], Backoff] = lambda component: parts.defaults.backoff
        self.timers = Timers(parts.clock, self._fire)
        self.open_sessions = 0
        self.on_session_end: Callable[[str], None] = lambda session_id: None

    # ---- events in -----------------------------------------------------------------------------

    def open(self, workflow: Workflow | None, opened: Opened) -> Live:
        """Begin a session; its opening is durable once the committer's next sync is."""
        state, commands = begin(workflow, opened)
        live = self.sessions.add(state)
        self.open_sessions += not opened.twin_of
        self._observer.seen(state, opened)
        try:
            self._run(live, None, record=[opened], todo=deque(commands))
        except StoreError:
            raise  # what is not on its way to disk was never opened
        except Exception as fault:
            self._tell_fault(live, fault)
            live.state, _ = begin(workflow, opened)
            self._run(live, None, record=[opened], todo=deque([self._fault(live)]))
        return live

    def feed(self, live: Live, *events: AnyEvent) -> None:
        """Apply events from outside, and everything that follows purely from them."""
        self._guarded(live, deque(events))

    def resume(
        self, live: Live, commands: Sequence[Command], *, events: Sequence[AnyEvent]
    ) -> None:
        """Bring a recovered session back to work."""
        self._guarded(live, deque([*events, *commands]))

    def _guarded(self, live: Live, todo: "deque[AnyEvent | Command]") -> None:
        """A fault of ours in one session ends that session: it must not wait for ever.

        An answer that comes after the committer's last sync finds nobody: to the next life it is
        one that came while no gateway ran.
        """
        if self.committer.closed:
            return
        before = live.state
        try:
            self._run(live, before, record=[], todo=todo)
        except Exception as fault:
            self._tell_fault(live, fault)
            live.state = before
            if not before.terminal:
                self._run(live, before, record=[], todo=deque([self._fault(live)]))

    def find(self, session_id: str) -> Live | None:
        """The session, for what comes from outside at its own time; none once it was deleted."""
        try:
            return self.sessions.find(session_id)
        except Erased:
            return None

    def tell(self, session_id: str, event: FeedbackGiven) -> None:
        """Feed what the gateway itself found, later: a feed may be running now."""
        asyncio.get_running_loop().call_soon(self._tell, session_id, event)

    def _tell(self, session_id: str, event: FeedbackGiven) -> None:
        live = self.find(session_id)
        if live is not None:
            self.feed(live, msgspec.structs.replace(event, at_ms=self.now_ms(live)))

    @staticmethod
    def _tell_fault(live: Live, fault: Exception) -> None:
        log.error(
            "session_fault",
            cause=fault,
            session_id=live.state.session_id,
            lineage_id=live.state.opened.lineage_id,
        )

    def _fault(self, live: Live) -> SessionEnded:
        message = "a fault of the gateway ended the session; its log has it by the lineage id"
        failure = error(Reason.INTERNAL, message, boundary=Boundary.GATEWAY)
        return SessionEnded(at_ms=self.now_ms(live), status=SessionStatus.FAILED, error=failure)

    def now_ms(self, live: Live) -> int:
        """The time an event of this session carries: never before its last one."""
        now_ms, last_ms = self.clock.now_ms(), live.state.now_ms
        return now_ms if now_ms > last_ms else last_ms

    def world(self, live: Live) -> World:
        """What the pure engine may know now."""
        return World(
            at_ms=self.now_ms(live),
            catalog=self.catalog(),
            signals=self.signals,
            default_timeout_ms=self._defaults.timeout_ms,
            nearest=self.meaning.nearest,
        )

    def card_of(self, call: CallState) -> Card | None:
        """The card of the instance that the latest attempt went to, while it is registered."""
        started = call.attempts[-1].started if call.attempts else None
        target = self._targets.instance(started.instance) if started else None
        return target.card if target else None

    # ---- the walk ------------------------------------------------------------------------------

    def _run(
        self,
        live: Live,
        before: SessionState | None,
        *,
        record: list[AnyEvent],
        todo: "deque[AnyEvent | Command]",
    ) -> None:
        acts: list[Command] = []
        seen = self._observer.seen
        wants_advance = False
        while todo or wants_advance:
            if not todo:
                wants_advance = False
                todo.extend(advance(live.state, self.world(live)))
                continue
            item = todo.popleft()
            # Types are compared: `isinstance` and `case` take five times as long to say no.
            if type(item) is Advance:
                wants_advance = True
            elif isinstance(item, Event):
                if live.state is before:
                    live.state = evolve(live.state)  # one copy for all events of this record
                todo.extend(apply(live.state, item))
                record.append(item)
                seen(live.state, item)
            elif type(item) is Call or type(item) is Decide or type(item) is Hedge:
                event = self._ask(live, item)
                if event is not None:
                    todo.appendleft(event)  # applied before anything else is asked: one budget
            else:
                acts.append(item)
        self._commit(live, before, record=record, acts=acts)
        self.executor.settled(live)

    def _ask(self, live: Live, command: Call | Decide | Hedge) -> AnyEvent | None:
        """Governance and policy: run once, their result is an event."""
        call = live.state.calls[command.call_id]
        if isinstance(command, Call):
            if call.phase is not Phase.READY or command.call_id in live.waiting:
                return None
            return self.executor.admit(live, command.call_id)
        if isinstance(command, Hedge):
            return self.executor.hedge(live, command.call_id)
        if call.phase is not Phase.DECIDING:
            return None
        workflow = live.state.workflow
        backoff = self.backoff_of(call.created.component)
        defaults = defaults_of(live.state.opened.recovery_params, backoff)
        policy = policy_for(workflow, call.created.step, defaults=defaults)
        around = self.executor.around(live, call)
        decision = recovery.decide(
            live.state, call, policy=policy, trigger=command.trigger, around=around
        )
        return Decided(at_ms=around.at_ms, call_id=command.call_id, decision=decision)

    # ---- append, then act ----------------------------------------------------------------------

    def _commit(
        self,
        live: Live,
        before: SessionState | None,
        *,
        record: list[AnyEvent],
        acts: list[Command],
    ) -> None:
        if record:
            self._append(live, before, record=record)
        if Record in map(type, acts) and not _is_twin(live):
            self._record(live.state.session_id, live.state.sequence)
        if not record and not acts:
            return
        live.unwritten += 1
        self.committer.after_write(lambda: self._act(live, acts))
        if live.on_change:
            self.committer.after_sync(lambda: _notify(live))

    def _append(self, live: Live, before: SessionState | None, *, record: list[AnyEvent]) -> None:
        state = live.state
        session_id = state.opened.session_id
        first = before.sequence + 1 if before else 1
        self.committer.append(session_id, first, events=record)
        put = self.committer.batch.put
        for row in changed(before, state):
            key = shard_row(session_id, row.shard.value, row=row.key.encode())
            put(Table.SHARD, key, row.data)
        if before is None or before.status is not state.status:
            self._list(before, state)

    def _list(self, before: SessionState | None, state: SessionState) -> None:
        """Put it in the list of all, once, and move it to the list of its status."""
        opened, batch = state.opened, self.committer.batch
        tenant, session_id = opened.tenant, opened.session_id
        workflow, twins = opened.workflow.encode(), bool(opened.twin_of)
        if before is None:
            batch.put(Table.INDEX, listed_row(tenant, session_id, twins=twins), workflow)
        else:
            left = listed_row(tenant, session_id, status=before.status.value, twins=twins)
            batch.delete(Table.INDEX, left)
        now = listed_row(tenant, session_id, status=state.status.value, twins=twins)
        batch.put(Table.INDEX, now, workflow)

    def _act(self, live: Live, acts: list[Command]) -> None:
        live.unwritten -= 1
        for command in acts:
            if type(command) is StartTimer:
                self.timers.start(live.state.session_id, command)
            elif type(command) is End:
                self.timers.drop(live.state.session_id)
                self.committer.after_sync(lambda: self._ended(live))
            elif type(command) is not Record:  # whose row was in the batch
                self.executor.act(live, command)

    def _ended(self, live: Live) -> None:
        """Its end is on disk. Until then it counts as open, so that a stalled disk is a bound."""
        self.open_sessions -= not _is_twin(live)
        self.on_session_end(live.state.session_id)
        _notify_end(live)

    def _fire(self, session_id: str, command: StartTimer) -> None:
        live = self.find(session_id)
        if live is not None and not live.state.terminal:
            fired = TimerFired(
                at_ms=self.now_ms(live),
                timer=command.timer,
                call_id=command.call_id,
                attempt=command.attempt,
            )
            self.feed(live, fired)


def _is_twin(live: Live) -> bool:
    """A twin is nobody's session: it is in no caller's count, list or trajectories."""
    return live.state.opened.twin_of != ""


def _notify(live: Live) -> None:
    for callback in tuple(live.on_change):
        callback()


def _notify_end(live: Live) -> None:
    live.end_on_disk = True
    _notify(live)
    for callback in tuple(live.on_end):
        callback()
