"""Doing what the engine's commands say: starting, sending, cancelling and polling calls.

Admission stands before the journal (`admitting`), sending stands behind it: a READ leaves
once its record is written, anything that may do something twice once it is synced. Every answer
becomes exactly one event; a permit is closed exactly once, with the attempt's end, and before the
recovery policy is asked about it.
"""

import asyncio
from collections.abc import Callable, Coroutine

import msgspec

from acp_spec.bindings.errors import error
from acp_spec.model.calls import OperationState
from acp_spec.model.enums import (
    Boundary,
    CancelState,
    Idempotency,
    OperationStatus,
    SideEffect,
)
from acp_spec.model.errors import AcpError, AcpFailure, Reason
from acp_spec.model.payload import ABSENT
from gateway.engine import hedges, recovery
from gateway.engine.around import Around
from gateway.engine.commands import CancelCall, Command, Poll, Reset, Send, StartTimer
from gateway.engine.events import (
    AnyEvent,
    AttemptEnded,
    AttemptStarted,
    Late,
    OperationEnded,
    Timer,
)
from gateway.engine.states import CallState, Phase
from gateway.governance import deadline
from gateway.governance.outcome import Outcome
from gateway.runtime.admitting import Admitting
from gateway.runtime.connection import Answer, Connection, Outgoing, Sink
from gateway.runtime.context import ContextMaker
from gateway.runtime.driver import Driver
from gateway.runtime.live import Live
from gateway.runtime.operations import ended_from_state
from gateway.runtime.output_check import checked_attempt, checked_operation
from gateway.runtime.targets import Target, Targets

CONTROL_TIMEOUT_MS = 2_000
"""Cancel and poll are small questions; whoever does not answer by then is asked again or reset."""

NO_TIME_LEFT = "no time was left when the attempt was to be written"


class Executors:
    """The driver's hands; `admitting` says which attempts may start."""

    def __init__(
        self,
        driver: Driver,
        targets: Targets,
        *,
        admitting: Admitting,
        contexts: ContextMaker,
    ) -> None:
        self._driver = driver
        self._targets = targets
        self._contexts = contexts
        self.admitting = admitting
        self._permits = admitting.permits
        self._tasks: set[asyncio.Task[None]] = set()
        self._ended_one = asyncio.Event()
        self.inflight = 0

    def admit(self, live: Live, call_id: str) -> AnyEvent | None:
        return self.admitting.admit(live, call_id)

    def around(self, live: Live, call: CallState) -> Around:
        return self.admitting.around(live, call)

    def hedge(self, live: Live, call_id: str) -> AnyEvent | None:
        return self.admitting.hedge(live, call_id)

    def settled(self, live: Live) -> None:
        self._permits.settle(live.state)

    # ---- behind the journal: reaching out -------------------------------------------------------

    def act(self, live: Live, command: Command) -> None:
        match command:
            case Send():
                self._send_when_safe(live, command)
            case CancelCall():
                self._start(self._cancel(live, command))
            case Reset():
                self._reset(live, command)
            case Poll():
                self._start(self._poll(live, command))
            case _:
                raise AssertionError(f"nobody acts on {command}")

    def _send_when_safe(self, live: Live, command: Send) -> None:
        call = live.state.calls[command.call_id]
        if call.created.idempotency is Idempotency.NATURAL:
            self._send(live, command)
        else:
            live.unwritten += 1
            self._driver.committer.after_sync(lambda: self._send_synced(live, command))

    def _send_synced(self, live: Live, command: Send) -> None:
        live.unwritten -= 1
        self._send(live, command)

    def _send(self, live: Live, command: Send) -> None:
        state = live.state
        call = state.calls[command.call_id]
        started = call.started(command.attempt)
        if not call.is_out(command.attempt) or started is None:
            # A call-back of an earlier attempt ended the call while this one waited for its sync.
            self._permits.lose((command.call_id, command.attempt), Outcome.NOT_SENT)
            return
        now_ms = self._driver.now_ms(live)
        left_ms = deadline.timeout_ms(
            call.created.timeout_ms, state.deadline_at(now_ms), now_ms=now_ms
        )
        target = self._targets.instance(started.instance)
        self.inflight += 1
        if command.attempt > 1 and recovery.outlived(call, now_ms):  # a slow disk held it up
            self._not_sent(live, command, why=recovery.forgotten(call))
            return
        if target is None or left_ms <= 0 or call.cancelling:
            self._not_sent(live, command, why=_why_not(call, target))
            return
        outgoing = self._outgoing(live, call, started=started, timeout_ms=left_ms)
        target.connection.send(outgoing, self._sink(state.session_id, command))

    def adopt(
        self,
        live: Live,
        address: tuple[str, int],
        *,
        adopt: Callable[[Outgoing, Sink], None],
        at_least_ms: int,
    ) -> None:
        """Wait for the answer of an attempt that an earlier run of this gateway sent.

        The time that run was away is not the component's: `at_least_ms` are left in any case.
        """
        call = live.state.calls[address[0]]
        started = call.started(address[1])
        assert started is not None, "only a started attempt can be in flight"
        gone_ms = self._driver.now_ms(live) - started.at_ms
        left_ms = max(at_least_ms, started.timeout_ms - gone_ms)
        self.inflight += 1
        sink = self._sink(live.state.session_id, Send(*address))
        adopt(self._outgoing(live, call, started=started, timeout_ms=left_ms), sink)

    def _outgoing(
        self, live: Live, call: CallState, *, started: AttemptStarted, timeout_ms: int
    ) -> Outgoing:
        state = live.state
        return Outgoing(
            context=self._contexts.make(state, call, started=started, timeout_ms=timeout_ms),
            role=call.created.role,
            effect=call.created.effect,
            body=call.created.body,
            fresh_connection=call.created.idempotency is Idempotency.NONE,
            late_grace_ms=state.opened.cancel_grace_ms,
        )

    def _sink(self, session_id: str, command: Send) -> Sink:
        def sink(answer: Answer, late: bool) -> None:
            self._answered(session_id, command, answer=answer, late=late)

        return sink

    def _not_sent(self, live: Live, command: Send, *, why: AcpError) -> None:
        failure = msgspec.structs.replace(why, side_effect=SideEffect.NONE)
        answer = Answer(error=failure, side_effect=SideEffect.NONE, answered=False, not_sent=True)
        loop = asyncio.get_running_loop()
        session_id = live.state.session_id
        loop.call_soon(lambda: self._answered(session_id, command, answer=answer, late=False))

    def _answered(self, session_id: str, command: Send, *, answer: Answer, late: bool) -> None:
        if not late:
            self.inflight -= 1
            self._ended_one.set()
        live = self._driver.find(session_id)
        call = live.state.calls[command.call_id] if live is not None else None
        if live is None or call is None:
            self._permits.lose((command.call_id, command.attempt))
            return
        started = call.started(command.attempt)
        if started is not None:
            self._note_signs(started.instance, answer)
        ended = None if late else self._ended(live, command, answer=answer)
        if ended is not None:
            self._permits.close(live.state, ended, answer=answer)
        if call.is_out(command.attempt) and ended is not None:
            good = ended.error is None
            is_hedged = good and len(call.attempts) > 1
            beaten = (
                hedges.superseded(call, command.attempt, at_ms=ended.at_ms) if is_hedged else ()
            )
            if good:
                self.admitting.answered_well(live, call, ended=ended)
            self._driver.feed(live, *beaten, ended)
            self._cancel_overdue(live, command, answer=answer)
        elif hedges.tells(call, command.attempt, answered=answer.answered, failure=answer.error):
            self._driver.feed(live, self._late(live, command, answer=answer))

    def _note_signs(self, instance: str, answer: Answer) -> None:
        """What an answer says about the instance: it lives, or nobody was there."""
        if answer.answered:
            self._targets.heard(instance)
        elif answer.not_sent and answer.error and answer.error.boundary is Boundary.COMPONENT:
            self._targets.unreached(instance)

    def _ended(self, live: Live, command: Send, *, answer: Answer) -> AttemptEnded:
        ended = AttemptEnded(
            at_ms=self._driver.now_ms(live),
            call_id=command.call_id,
            attempt=command.attempt,
            response=answer.response,
            error=answer.error,
            side_effect=answer.side_effect,
            answered=answer.answered,
            not_sent=answer.not_sent,
            retries_spent=answer.retries_spent,
            usage=answer.usage,
            llm_calls=answer.llm_calls,
            served_version=answer.served_version,
            operation_poll_after_ms=answer.operation_poll_after_ms,
            service_ms=answer.service_ms,
        )
        ended = self._driver.meaning.of_answer(live.state, ended)
        call = live.state.calls[command.call_id]
        action = call.created.action
        return (
            checked_attempt(ended, self._driver.card_of(call), action=action) if action else ended
        )

    def _late(self, live: Live, command: Send, *, answer: Answer) -> Late:
        return Late(
            at_ms=self._driver.now_ms(live),
            call_id=command.call_id,
            attempt=command.attempt,
            response=answer.response,
            error=answer.error,
            side_effect=answer.side_effect,
        )

    def _cancel_overdue(self, live: Live, command: Send, *, answer: Answer) -> None:
        """A peer that did not answer in time is told to stop (SPEC 9.4)."""
        overdue = answer.error is not None and answer.error.reason == Reason.TIMEOUT.value
        if overdue and not answer.answered and not answer.not_sent:
            self._start(self._cancel(live, CancelCall(command.call_id, command.attempt)))

    # ---- cancel, reset, operations ---------------------------------------------------------------

    def _target_of(self, live: Live, call_id: str, *, attempt: int = 0) -> Target | None:
        call = live.state.calls[call_id]
        stands = call.numbered(attempt) if attempt else call.attempt
        started = stands.started if stands else None
        if started is None:
            return None
        pin = f"{started.component}@{started.version}"
        found = self._targets.instance(started.instance)
        return found or self._targets.pick(pin, live.state.session_id)

    async def _cancel(self, live: Live, command: CancelCall) -> None:
        call = live.state.calls[command.call_id]
        operation = call.phase is Phase.OPERATION and not call.superseded(command.attempt)
        target = self._target_of(live, command.call_id, attempt=0 if operation else command.attempt)
        if target is None:
            return
        connection = target.connection
        if call.superseded(command.attempt):
            grace_s = live.state.opened.cancel_grace_ms / 1000
            asyncio.get_running_loop().call_later(grace_s, self._break_off, connection, command)
        try:
            if operation:
                answer = await connection.cancel_operation(command.call_id, CONTROL_TIMEOUT_MS)
            else:
                answer = await connection.cancel(
                    command.call_id, command.attempt, timeout_ms=CONTROL_TIMEOUT_MS
                )
        except AcpFailure:
            return  # the grace timer ends what nobody answers for
        if operation and answer.state is CancelState.STOPPED:
            failure = error(Reason.CANCELLED, "the operation was stopped on request")
            effect = answer.side_effect or SideEffect.UNKNOWN
            self._end_operation(live, command.call_id, failure=failure, side_effect=effect)

    def _break_off(self, connection: Connection, command: CancelCall) -> None:
        """The grace of an attempt that nobody waits for is over: its slot comes back."""
        if (command.call_id, command.attempt) in self._permits:
            connection.reset(command.call_id, command.attempt)

    def _reset(self, live: Live, command: Reset) -> None:
        call = live.state.calls[command.call_id]
        started = call.started(command.attempt)
        target = self._targets.instance(started.instance) if started else None
        if target is not None and (command.call_id, command.attempt) in self._permits:
            target.connection.reset(command.call_id, command.attempt)
            return
        failure = error(Reason.CANCELLED, "reset after the grace", side_effect=SideEffect.UNKNOWN)
        answer = Answer(error=failure, answered=False)
        send = Send(command.call_id, command.attempt)
        session_id = live.state.session_id
        self.inflight += 1
        asyncio.get_running_loop().call_soon(
            lambda: self._answered(session_id, send, answer=answer, late=False)
        )

    async def _poll(self, live: Live, command: Poll) -> None:
        target = self._target_of(live, command.call_id)
        again_ms = CONTROL_TIMEOUT_MS
        if target is not None:
            try:
                found = await target.connection.operation(command.call_id, CONTROL_TIMEOUT_MS)
            except AcpFailure as failure:
                if failure.error.reason == Reason.NOT_FOUND.value:
                    lost = error(
                        Reason.NOT_FOUND,
                        "the component does not know the operation any more",
                        side_effect=SideEffect.UNKNOWN,
                        boundary=Boundary.COMPONENT,
                    )
                    self._end_operation(
                        live, command.call_id, failure=lost, side_effect=SideEffect.UNKNOWN
                    )
                    return
            else:
                if found.status is not OperationStatus.RUNNING:
                    self._operation_over(live, command.call_id, found=found)
                    return
                again_ms = max(1, found.poll_after_ms)
        self._poll_again(live, command, after_ms=again_ms)

    def _poll_again(self, live: Live, command: Poll, *, after_ms: int) -> None:
        if self._current_operation(live, command.call_id) is None:
            return
        at_ms = self._driver.clock.now_ms() + after_ms
        timer = StartTimer(Timer.POLL, at_ms, command.call_id, command.attempt)
        self._driver.timers.start(live.state.session_id, timer)

    def _operation_over(self, live: Live, call_id: str, *, found: OperationState) -> None:
        current = self._current_operation(live, call_id)
        if current is not None:
            fresh, call = current
            at_ms = self._driver.now_ms(fresh)
            ended = ended_from_state(call, found, at_ms=at_ms)
            ended = self._driver.meaning.of_answer(fresh.state, ended)
            card = self._driver.card_of(call)
            self._driver.feed(fresh, checked_operation(ended, card, action=call.created.action))

    def _end_operation(
        self, live: Live, call_id: str, *, failure: AcpError, side_effect: SideEffect
    ) -> None:
        current = self._current_operation(live, call_id)
        if current is not None:
            fresh, call = current
            event = OperationEnded(
                at_ms=self._driver.now_ms(fresh),
                call_id=call_id,
                attempt=call.number,
                response=ABSENT,
                error=failure,
                side_effect=side_effect,
            )
            self._driver.feed(fresh, event)

    def _current_operation(self, live: Live, call_id: str) -> tuple[Live, CallState] | None:
        """The session as it is now: it may have been evicted while the peer was asked."""
        fresh = self._driver.find(live.state.session_id)
        call = fresh.state.calls.get(call_id) if fresh else None
        if fresh is None or call is None or call.phase is not Phase.OPERATION:
            return None
        return fresh, call

    def _start(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def idle(self) -> None:
        """Return once no attempt is in flight."""
        while self.inflight:
            self._ended_one.clear()
            await self._ended_one.wait()

    async def close(self) -> None:
        """Stop asking peers; calls in flight stay as the journal says."""
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


def _why_not(call: CallState, target: Target | None) -> AcpError:
    """Why a started attempt is not written after all: it was admitted a moment ago."""
    if call.cancelling:
        return error(Reason.CANCELLED, "cancelled before it was sent", boundary=Boundary.GATEWAY)
    if target is None:
        return error(Reason.NO_COMPONENT, "the instance left before it could be called")
    return error(Reason.TIMEOUT, NO_TIME_LEFT, boundary=Boundary.GATEWAY)
