"""Whole sessions in a plain loop: no event loop, no store, no socket, no clock but this one's.

A `Play` does what the driver and the executors do, in their order: events go through `step`, what
`advance`, governance and `recovery` say becomes events, and commands are acted on behind them.
Components are pure functions from what was sent to what is answered. Time jumps from one due thing
to the next. A crash is `crashed`: a new play from any beginning of the journal.
"""

import heapq
from collections import deque
from collections.abc import Callable

import msgspec

from acp_spec.bindings.errors import effective_side_effect, error
from acp_spec.model.calls import OperationState
from acp_spec.model.enums import Boundary, OperationStatus, SideEffect
from acp_spec.model.errors import AcpError, Reason
from acp_spec.model.payload import payload
from gateway.engine import hedges, recovery
from gateway.engine import replay as replaying
from gateway.engine.advance import advance
from gateway.engine.around import Around
from gateway.engine.catalog import Catalog
from gateway.engine.commands import (
    Advance,
    Call,
    CancelCall,
    Command,
    Decide,
    End,
    Hedge,
    Poll,
    Record,
    Reset,
    Send,
    StartTimer,
)
from gateway.engine.definition import Workflow
from gateway.engine.events import (
    AnyEvent,
    AttemptEnded,
    AttemptStarted,
    CancelRequested,
    Decided,
    Deferred,
    Event,
    Late,
    Refused,
    Timer,
    TimerFired,
)
from gateway.engine.pending import attempts_in_flight, lost_attempt, pending
from gateway.engine.policies import policy_for
from gateway.engine.states import CallState, Phase, SessionState
from gateway.engine.step import begin, step
from gateway.engine.tests.casting import (
    START_MS,
    Cast,
    Said,
    Sent,
    Terms,
    effect_of,
    opening,
    operation_ended,
)
from gateway.engine.world import World
from gateway.governance import budget, deadline

LATE_GRACE_MS = 2_000
POLL_AGAIN_MS = 2_000
DUE_MAX = 20_000
"""Due things in one play before it counts as one that never ends."""


def lost_attempts(state: SessionState, at_ms: int) -> list[AttemptEnded]:
    """The end of every attempt that was in flight when the gateway stopped."""
    return [
        lost_attempt(state, call, attempt=attempt, at_ms=at_ms)
        for call, attempt in attempts_in_flight(state)
    ]


class Play:
    """One session being played. `journal` is what a gateway would have on disk."""

    def __init__(
        self, workflow: Workflow | None, catalog: Catalog, cast: Cast, *, terms: Terms | None = None
    ) -> None:
        self.workflow = workflow
        self.catalog = catalog
        self.cast = cast
        self.terms = terms or Terms()
        self.now_ms = START_MS
        self.journal: list[AnyEvent] = []
        self.sent: list[Sent] = []
        self.cancelled: list[tuple[str, int]] = []
        self.records = 0
        self.ended = 0
        self.on_event: Callable[[SessionState, AnyEvent, SessionState], None] | None = None
        self._due: list[tuple[int, int, Callable[[], None]]] = []
        self._order = 0
        self._timers: dict[tuple[Timer, str], int] = {}
        self._flying: dict[tuple[str, int], int] = {}
        self._polls: dict[str, int] = {}
        self.state: SessionState

    @property
    def status(self) -> str:
        return self.state.status.value

    # ---- what a client does -----------------------------------------------------------------

    def open(self) -> "Play":
        opened = opening(self.workflow, self.catalog, self.terms)
        self.state, commands = begin(self.workflow, opened)
        self.journal.append(opened)
        self._run(deque(commands))
        return self

    def cancel(self) -> None:
        self.feed(CancelRequested(at_ms=self.now_ms, by="test"))

    def feed(self, *events: AnyEvent) -> None:
        """Events from outside, and all that follows."""
        self._run(deque(events))

    def at(self, after_ms: int, do: Callable[[], None]) -> None:
        """Do something `after_ms` from now."""
        self._push(self.now_ms + after_ms, do)

    # ---- time -------------------------------------------------------------------------------

    def run(self, until_ms: int | None = None) -> "Play":
        """Let everything that is due happen, until nothing is, or until so many ms from START."""
        for _ in range(DUE_MAX):
            if not self._due or (until_ms is not None and self._due[0][0] > START_MS + until_ms):
                break
            at_ms, _, do = heapq.heappop(self._due)
            self.now_ms = max(self.now_ms, at_ms)
            do()
        else:
            raise AssertionError("the session never comes to rest")
        if until_ms is not None:
            self.now_ms = max(self.now_ms, START_MS + until_ms)
        return self

    def crashed(self, kept: int, *, after_ms: int = 100) -> "Play":
        """The gateway died when `kept` events were written, and has started again."""
        again = Play(self.workflow, self.catalog, self.cast, terms=self.terms)
        again.journal = list(self.journal[:kept])
        again.state, _ = replaying.play(again.journal, self.workflow)
        again.now_ms = max(self.now_ms, again.state.now_ms) + after_ms
        lost = lost_attempts(again.state, again.now_ms)
        again._run(deque([*lost, *pending(again.state, again.now_ms)]))
        return again

    # ---- the driver's walk (`Driver._run`) ------------------------------------------------------

    def _run(self, todo: "deque[AnyEvent | Command]") -> None:
        acts: list[Command] = []
        wants_advance = False
        while todo or wants_advance:
            if not todo:
                wants_advance = False
                todo.extend(advance(self.state, self.world()))
                continue
            item = todo.popleft()
            match item:
                case Advance():
                    wants_advance = True
                case Call() | Decide() | Hedge():
                    event = self._ask(item)
                    if event is not None:
                        todo.appendleft(event)
                case Event():
                    todo.extend(self._apply(item))
                case _:
                    acts.append(item)
        for act in acts:
            self._act(act)

    def _apply(self, event: AnyEvent) -> list[Command]:
        before = self.state
        self.state, commands = step(before, event)
        self.journal.append(event)
        if self.on_event is not None:
            self.on_event(before, event, self.state)
        return commands

    def world(self) -> World:
        return World(at_ms=max(self.now_ms, self.state.now_ms), catalog=self.catalog)

    def _ask(self, command: Call | Decide | Hedge) -> AnyEvent | None:
        call = self.state.calls[command.call_id]
        if isinstance(command, Hedge):
            return self._hedge(call)
        if isinstance(command, Call):
            return self._admit(call) if call.phase is Phase.READY else None
        if call.phase is not Phase.DECIDING:
            return None
        policy = policy_for(self.workflow, call.created.step, defaults=self.terms.backoff)
        decision = recovery.decide(
            self.state,
            call,
            policy=policy,
            trigger=command.trigger,
            around=Around(at_ms=self.now_ms),
        )
        return Decided(at_ms=self.now_ms, call_id=command.call_id, decision=decision)

    # ---- the executors: admission ------------------------------------------------------------

    def _admit(self, call: CallState) -> AnyEvent:
        created, number, now_ms = call.created, call.number, self.now_ms
        said = self.cast.gate(call, number, now_ms)
        if isinstance(said, int):
            self.at(said, lambda: self._again(created.call_id, number))
            until_ms = now_ms + said
            return Deferred(
                at_ms=now_ms,
                call_id=created.call_id,
                attempt=number,
                policy="gate",
                until_ms=until_ms,
            )
        left_ms = self._left_ms(call)
        verdict = deadline.check(left_ms)
        failure = said or getattr(verdict, "error", None)
        if failure is None and recovery.outlived(call, now_ms):
            failure = recovery.forgotten(call)
        if failure is not None:
            return Refused(
                at_ms=now_ms, call_id=created.call_id, attempt=number, error=failure, policy="gate"
            )
        return AttemptStarted(
            at_ms=now_ms,
            call_id=created.call_id,
            attempt=number,
            component=created.component,
            version=created.version or "1.0.0",
            instance=f"{created.component}-1",
            timeout_ms=left_ms,
            lease=budget.lease(self.state.budget_left, call.lease_most),
            wait_ms=max(0, now_ms - call.queued_at_ms),
            queued_at_ms=call.queued_at_ms,
            hedge_after_ms=self.terms.hedge_after_ms if hedges.may_have_one(call) else 0,
        )

    def _hedge(self, call: CallState) -> AnyEvent | None:
        """A second attempt, unless nobody is free for it (the gate says so)."""
        created, number = call.created, call.number + 1
        left_ms = self._left_ms(call)
        if left_ms <= 0 or self.cast.gate(call, number, self.now_ms) is not None:
            return None
        return AttemptStarted(
            at_ms=self.now_ms,
            call_id=created.call_id,
            attempt=number,
            component=created.component,
            version=created.version or "1.0.0",
            instance=f"{created.component}-2",
            timeout_ms=left_ms,
            lease=budget.lease(self.state.budget_left - 1, call.lease_most - 1),
            queued_at_ms=self.now_ms,
            hedge=True,
        )

    def _again(self, call_id: str, number: int) -> None:
        call = self.state.calls[call_id]
        if call.phase is Phase.READY and call.number == number:
            self.feed(self._admit(call))

    def _left_ms(self, call: CallState) -> int:
        return deadline.timeout_ms(
            call.created.timeout_ms, self.state.deadline_at(self.now_ms), now_ms=self.now_ms
        )

    # ---- the executors: acting -----------------------------------------------------------------

    def _act(self, command: Command) -> None:
        match command:
            case StartTimer():
                self._start(command)
            case Send():
                self._send(command)
            case CancelCall():
                self._cancel(command)
            case Reset():
                failure = error(Reason.CANCELLED, "reset", side_effect=SideEffect.UNKNOWN)
                self._push(self.now_ms, lambda: self._end_unanswered(command, failure))
            case Poll():
                self._push(self.now_ms + 1, lambda: self._poll(command))
            case Record():
                self.records += 1
            case End():
                self.ended += 1
                self._timers.clear()
            case _:
                raise AssertionError(f"nobody acts on {command}")

    def _start(self, command: StartTimer) -> None:
        name = (command.timer, command.call_id)
        self._order += 1
        order = self._timers[name] = self._order
        at_ms = max(self.now_ms, command.at_ms)
        heapq.heappush(self._due, (at_ms, order, lambda: self._fire(command, order)))

    def _fire(self, command: StartTimer, order: int) -> None:
        name = (command.timer, command.call_id)
        if self._timers.get(name) != order or self.state.terminal:
            return
        del self._timers[name]
        self.feed(
            TimerFired(
                at_ms=self.now_ms,
                timer=command.timer,
                call_id=command.call_id,
                attempt=command.attempt,
            )
        )

    def _send(self, command: Send) -> None:
        call = self.state.calls[command.call_id]
        started = call.started(command.attempt)
        assert started is not None, "what is sent was started"
        if call.cancelling:
            failure = error(Reason.CANCELLED, "cancelled before it was sent")
            said = Said(error=failure, side_effect=SideEffect.NONE, not_sent=True, after_ms=0)
            self._push(self.now_ms, lambda: self._answered(command, said, late=False))
            return
        sent = Sent(
            created=call.created,
            attempt=command.attempt,
            at_ms=self.now_ms,
            timeout_ms=self._left_ms(call),
            lease=started.lease,
        )
        self.sent.append(sent)
        self._flying[command.call_id, command.attempt] = len(self.sent) - 1
        answer = self.cast.component(sent)
        if answer is not None and answer.after_ms <= sent.timeout_ms:
            self.at(answer.after_ms, lambda: self._answered(command, answer, late=False))
            return
        self.at(sent.timeout_ms, lambda: self._overdue(command))
        if answer is not None and answer.after_ms <= sent.timeout_ms + LATE_GRACE_MS:
            self.at(answer.after_ms, lambda: self._answered(command, answer, late=True))

    def _overdue(self, command: Send) -> None:
        message = "no answer came in time"
        self._end_unanswered(command, error(Reason.TIMEOUT, message))

    def _end_unanswered(self, command: Send | Reset, failure: AcpError) -> None:
        call = self.state.calls[command.call_id]
        if call.is_out(command.attempt):
            self.feed(
                AttemptEnded(
                    at_ms=self.now_ms,
                    call_id=command.call_id,
                    attempt=command.attempt,
                    error=failure,
                    side_effect=effective_side_effect(failure, call.created.effect),
                    answered=False,
                )
            )

    def _answered(self, command: Send, said: Said, *, late: bool) -> None:
        call = self.state.calls[command.call_id]
        current = call.is_out(command.attempt)
        if current and not late:
            good = said.error is None
            beaten = hedges.superseded(call, command.attempt, at_ms=self.now_ms) if good else ()
            self.feed(*beaten, self._ended(call, command, said))
        elif not current:
            self.feed(
                Late(
                    at_ms=self.now_ms,
                    call_id=command.call_id,
                    attempt=command.attempt,
                    response=payload(said.response),
                    error=said.error,
                    side_effect=effect_of(call, said),
                )
            )

    def _ended(self, call: CallState, command: Send, said: Said) -> AttemptEnded:
        return AttemptEnded(
            at_ms=self.now_ms,
            call_id=command.call_id,
            attempt=command.attempt,
            response=payload(said.response),
            error=said.error,
            side_effect=effect_of(call, said),
            answered=not said.not_sent,
            not_sent=said.not_sent,
            retries_spent=said.retries_spent,
            operation_poll_after_ms=said.poll_after_ms,
        )

    # ---- cancel and operations ----------------------------------------------------------------

    def _cancel(self, command: CancelCall) -> None:
        self.cancelled.append((command.call_id, command.attempt))
        place = self._flying.get((command.call_id, command.attempt))
        said = self.cast.on_cancel(self.sent[place]) if place is not None else None
        if said is None:
            return
        send = Send(command.call_id, command.attempt)
        if self.state.calls[command.call_id].phase is Phase.OPERATION:
            failure = said.error or error(Reason.CANCELLED, "stopped on request")
            effect = said.side_effect or SideEffect.UNKNOWN
            self.at(said.after_ms, lambda: self._end_operation(send, failure, effect))
        else:
            self.at(said.after_ms, lambda: self._answered(send, said, late=False))

    def _poll(self, command: Poll) -> None:
        nth = self._polls[command.call_id] = self._polls.get(command.call_id, 0) + 1
        send = Send(command.call_id, command.attempt)
        found = self.cast.operation(command.call_id, nth)
        if isinstance(found, AcpError) and found.reason == Reason.NOT_FOUND.value:
            lost = msgspec.structs.replace(
                found, side_effect=SideEffect.UNKNOWN, boundary=Boundary.COMPONENT
            )
            self._end_operation(send, lost, SideEffect.UNKNOWN)
        elif isinstance(found, OperationState) and found.status is not OperationStatus.RUNNING:
            effect = found.side_effect or SideEffect.PERFORMED
            self._end_operation(send, found.error, effect, bytes(found.output))
        elif not self.state.terminal:
            after_ms = found.poll_after_ms if isinstance(found, OperationState) else POLL_AGAIN_MS
            at_ms = self.now_ms + max(1, after_ms)
            self._start(StartTimer(Timer.POLL, at_ms, command.call_id, command.attempt))

    def _end_operation(
        self, send: Send, failure: AcpError | None, effect: SideEffect, output: bytes = b""
    ) -> None:
        call = self.state.calls[send.call_id]
        if call.phase is Phase.OPERATION and call.number == send.attempt:
            self.feed(
                operation_ended(call, self.now_ms, output=output, failure=failure, effect=effect)
            )

    def _push(self, at_ms: int, do: Callable[[], None]) -> None:
        self._order += 1
        heapq.heappush(self._due, (at_ms, self._order, do))
