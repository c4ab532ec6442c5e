"""Running one admitted call: its task, its deadline, its end in the books.

The handler's task outlives its caller: a deadline or a lost connection ends the waiting, while the
outcome is still settled and remembered, so that a repeat learns what really happened.
"""

import asyncio
import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import msgspec

from acp_spec.bindings.errors import error
from acp_spec.model.calls import ErrorBody, ExecuteResponse, Operation, OperationState, Progress
from acp_spec.model.context import Context
from acp_spec.model.enums import Effect, OperationStatus, SideEffect
from acp_spec.model.errors import AcpFailure, Reason
from acp_spec.sdk import handling
from acp_spec.sdk.call import Call, Cancellation, LongWork, ProgressSink
from acp_spec.sdk.callbook import CallBook, Flight
from acp_spec.sdk.clock import Clock
from acp_spec.sdk.component import Target
from acp_spec.sdk.faults import settled_error
from acp_spec.sdk.handling import Outcome
from acp_spec.sdk.operations import Operations
from acp_spec.sdk.outcomes import OutcomesUnavailable
from acp_spec.sdk.running import Running, RunningCalls

OPERATION_TIME_MAX_MS = 7 * 24 * 3600 * 1000.0
"""For an action that states no operation_timeout_ms: a week, so that nothing runs for ever."""
SERVICE_TIME_WEIGHT = 0.2
"""Of the newest call in the moving average that Health reports."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """One checked call. `subject`: what the handler gets first (arguments, or the whole
    request).
    """

    context: Context
    target: Target
    subject: object
    deadline_ms: float
    arguments_text: bytes = b""
    on_progress: ProgressSink | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Books:
    """Where an execution is entered, left and remembered."""

    calls: RunningCalls
    book: CallBook
    operations: Operations


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One order at work. `flight` is there when its outcome must be remembered by key."""

    order: Order
    call: Call
    running: Running
    flight: Flight | None = None


class Executions:
    def __init__(self, books: Books, *, clock: Clock, pool: ThreadPoolExecutor) -> None:
        self._books = books
        self._clock = clock
        self._pool = pool
        self._tasks: set[asyncio.Task[Outcome] | asyncio.Task[None]] = set()
        self.service_ms: float | None = None

    async def run(self, order: Order, flight: Flight | None = None) -> Outcome:
        """Run the handler and answer by the deadline. With `flight`, settle it at the real end."""
        call = self._call(order)
        running = _running(order, call.cancelled)
        attempt = Attempt(order=order, call=call, running=running, flight=flight)
        self._books.calls.enter(running)
        work = asyncio.create_task(self._work(attempt))
        self._keep(work)
        return await self._answer(attempt, work)

    async def _answer(self, attempt: Attempt, work: asyncio.Task[Outcome]) -> Outcome:
        order, running = attempt.order, attempt.running
        over: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def end_waiting() -> None:
            if not over.done():
                over.set_result(None)

        def at_deadline() -> None:
            running.stop(Reason.TIMEOUT)
            end_waiting()

        left_ms = order.deadline_ms - self._clock.monotonic_ms()
        timer = self._clock.call_later(left_ms, at_deadline)

        def at_end(_: object) -> None:
            timer.cancel()
            end_waiting()

        work.add_done_callback(at_end)
        try:
            await over
        except asyncio.CancelledError:
            # The caller is gone. Reading for nobody is waste; a write goes on to its deadline and
            # is remembered.
            if order.target.effect is Effect.READ:
                running.stop(Reason.CANCELLED)
            raise
        if work.done():
            return work.result()
        late = error(Reason.TIMEOUT, "The time for this call was over before it was done.")
        return ErrorBody(error=settled_error(late, order.target.effect))

    async def _work(self, attempt: Attempt) -> Outcome:
        """The whole life of one attempt; never raises for what a handler does."""
        began_ms = self._clock.monotonic_ms()
        outcome: Outcome = ErrorBody(error=error(Reason.INTERNAL, "The component was stopped."))
        try:
            outcome = await self._produce(attempt)
        finally:
            self._measure(self._clock.monotonic_ms() - began_ms)
            await self._settle(attempt, outcome)
            side_effect = side_effect_of(outcome)
            failed = isinstance(outcome, ErrorBody)
            self._books.calls.leave(attempt.running, failed=failed, side_effect=side_effect)
        return outcome

    async def _produce(self, attempt: Attempt) -> Outcome:
        order, call = attempt.order, attempt.call
        arguments = (order.subject, call)
        work = partial(order.target.handler, *arguments)
        try:
            result = await handling.run_function(work, attempt.running, pool=self._pool)
            if isinstance(result, LongWork):
                return handling.signed(self._accept(attempt, result), order.target, call=call)
        except AcpFailure as failure:
            failed = settled_error(failure.error, order.target.effect)
        except (Exception, asyncio.CancelledError) as raised:
            failed = handling.failed(raised, order.target, running=attempt.running)
        else:
            made = handling.response_of(result, order.target, call=call)
            return handling.signed(made, order.target, call=call)
        return handling.signed(ErrorBody(error=failed), order.target, call=call)

    async def _settle(self, attempt: Attempt, outcome: Outcome) -> None:
        if attempt.flight is None:
            return
        free = isinstance(outcome, ErrorBody) and outcome.error.side_effect is SideEffect.NONE
        remembered = None if free else packed(outcome)
        try:
            await self._books.book.settle(
                attempt.flight, outcome=remembered, ttl_ms=attempt.order.target.ttl_ms
            )
        except OutcomesUnavailable:
            # The work is done and the answer may leave; a repeat will be told that it is unknown.
            log.exception("the outcome of call %s is not remembered", attempt.flight.call_id)

    def _accept(self, attempt: Attempt, long_work: LongWork) -> ExecuteResponse:
        self._books.operations.check_room()
        order, call = attempt.order, attempt.call
        call.cancelled = Cancellation(asyncio.get_running_loop())
        allowed_ms = order.target.operation_timeout_ms or OPERATION_TIME_MAX_MS
        call.deadline_ms = self._clock.monotonic_ms() + allowed_ms
        accepted = Attempt(order=order, call=call, running=_running(order, call.cancelled))
        self._books.operations.accept(accepted.running, long_work.poll_after_ms)
        self._keep(asyncio.create_task(self._operate(accepted, long_work)))
        return ExecuteResponse(operation=Operation(poll_after_ms=long_work.poll_after_ms))

    async def _operate(self, attempt: Attempt, long_work: LongWork) -> None:
        order, call, running = attempt.order, attempt.call, attempt.running
        timer = self._clock.call_later(
            call.deadline_ms - self._clock.monotonic_ms(), lambda: running.stop(Reason.TIMEOUT)
        )
        made = await self._outcome_of(attempt, long_work)
        timer.cancel()
        outcome = handling.signed(made, order.target, call=call)
        state = _operation_state(outcome)
        await self._books.operations.finish(
            order.context.call_id,
            state,
            ttl_ms=order.target.ttl_ms,
            callback=order.context.callback,
        )
        running.failed = state.status is not OperationStatus.SUCCEEDED
        running.side_effect = side_effect_of(outcome)
        running.ended.set()

    async def _outcome_of(self, attempt: Attempt, long_work: LongWork) -> Outcome:
        target = attempt.order.target
        try:
            result = await handling.run_function(long_work.work, attempt.running, pool=self._pool)
        except AcpFailure as failure:
            return ErrorBody(error=settled_error(failure.error, target.effect))
        except (Exception, asyncio.CancelledError) as raised:
            return ErrorBody(error=handling.failed(raised, target, running=attempt.running))
        return handling.response_of(result, target, call=attempt.call)

    def _call(self, order: Order) -> Call:
        return Call(
            context=order.context,
            clock=self._clock,
            deadline_ms=order.deadline_ms,
            cancelled=Cancellation(asyncio.get_running_loop()),
            action=order.target.name,
            arguments_text=order.arguments_text,
            on_progress=_on_loop(order.on_progress),
        )

    def _measure(self, took_ms: float) -> None:
        before = took_ms if self.service_ms is None else self.service_ms
        self.service_ms = before + SERVICE_TIME_WEIGHT * (took_ms - before)

    def _keep(self, task: asyncio.Task[Outcome] | asyncio.Task[None]) -> None:
        """asyncio holds tasks weakly; one that nobody awaits any more must still end."""
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def all_ended(self) -> None:
        """Wait for every attempt and operation under way (the drain does)."""
        while self._tasks:
            await asyncio.wait(set(self._tasks))


def _running(order: Order, cancelled: Cancellation) -> Running:
    context = order.context
    return Running(call_id=context.call_id, attempt=context.attempt, cancelled=cancelled)


def side_effect_of(outcome: Outcome) -> SideEffect:
    """What an outcome says it did; an accepted operation is not known yet."""
    if isinstance(outcome, ErrorBody):
        return outcome.error.side_effect or SideEffect.UNKNOWN
    if isinstance(outcome, ExecuteResponse):
        return outcome.side_effect or SideEffect.UNKNOWN
    return SideEffect.NONE


def packed(outcome: Outcome) -> bytes:
    """An outcome for the store; `unpacked` with the same role reads it back."""
    kind = b"E" if isinstance(outcome, ErrorBody) else b"R"
    return kind + msgspec.json.encode(outcome)


def unpacked(data: bytes, target: Target) -> Outcome:
    if data[:1] == b"E":
        return msgspec.json.decode(data[1:], type=ErrorBody)
    return msgspec.json.decode(data[1:], type=handling.RESPONSE_OF_ROLE[target.role])


def _operation_state(outcome: Outcome) -> OperationState:
    if isinstance(outcome, ErrorBody):
        cancelled = outcome.error.reason == Reason.CANCELLED.value
        state = OperationState(
            status=OperationStatus.CANCELLED if cancelled else OperationStatus.FAILED,
            error=outcome.error,
            side_effect=outcome.error.side_effect,
        )
    else:
        assert isinstance(outcome, ExecuteResponse)
        state = OperationState(
            status=OperationStatus.SUCCEEDED,
            output=outcome.output,
            side_effect=outcome.side_effect,
        )
    return msgspec.structs.replace(
        state,
        retries_spent=outcome.retries_spent,
        usage=outcome.usage,
        llm_calls=outcome.llm_calls,
    )


def _on_loop(sink: ProgressSink | None) -> ProgressSink | None:
    """Progress from a pool thread is handed to the loop's thread, which owns the streams."""
    if sink is None:
        return None
    loop = asyncio.get_running_loop()
    home = threading.get_ident()

    def tell(progress: Progress) -> None:
        if threading.get_ident() == home:
            sink(progress)
        else:
            loop.call_soon_threadsafe(sink, progress)

    return tell
