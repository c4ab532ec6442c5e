"""Running one admitted call: its task, its deadline, its end in the books.

The handler's task outlives its caller: a deadline or a lost connection ends the waiting, while the
outcome is still settled and remembered, so that a repeat learns what really happened.
"""

import asyncio
import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import msgspec

from acp_spec.bindings.errors import error
from acp_spec.model.calls import ErrorBody, ExecuteResponse, Operation, OperationState, Progress
from acp_spec.model.context import Context
from acp_spec.model.enums import Effect, OperationStatus, SideEffect
from acp_spec.model.errors import Reason
from acp_spec.sdk import handling
from acp_spec.sdk.call import Call, Cancellation, LongWork, ProgressSink
from acp_spec.sdk.callbook import CallBook, Flight
from acp_spec.sdk.clock import Clock
from acp_spec.sdk.component import Target
from acp_spec.sdk.faults import settled_error
from acp_spec.sdk.handling import Outcome
from acp_spec.sdk.operations import Operations
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


class Executions:
    def __init__(self, books: Books, clock: Clock, pool: ThreadPoolExecutor) -> None:
        self._books = books
        self._clock = clock
        self._pool = pool
        self._tasks: set[asyncio.Task[Outcome] | asyncio.Task[None]] = set()
        self.service_ms: float | None = None

    async def run(self, order: Order, flight: Flight | None = None) -> Outcome:
        """Run the handler and answer by the deadline. With `flight`, settle it at the real end."""
        call = self._call(order)
        running = Running(
            call_id=order.context.call_id,
            attempt=order.context.attempt,
            cancelled=call.cancelled,
        )
        self._books.calls.enter(running)
        work = asyncio.create_task(self._work(order, call, running, flight))
        self._keep(work)
        return await self._answer(order, work, running)

    async def _answer(self, order: Order, work: asyncio.Task[Outcome], running: Running) -> Outcome:
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

    async def _work(
        self, order: Order, call: Call, running: Running, flight: Flight | None
    ) -> Outcome:
        """The whole life of one attempt; never raises for what a handler does."""
        began_ms = self._clock.monotonic_ms()
        outcome: Outcome = ErrorBody(error=error(Reason.INTERNAL, "The component was stopped."))
        try:
            outcome = await self._produce(order, call, running)
        finally:
            self._measure(self._clock.monotonic_ms() - began_ms)
            await self._settle(outcome, order, flight)
            side_effect = side_effect_of(outcome)
            failed = isinstance(outcome, ErrorBody)
            self._books.calls.leave(running, failed=failed, side_effect=side_effect)
        return outcome

    async def _produce(self, order: Order, call: Call, running: Running) -> Outcome:
        target = order.target
        try:
            result = await handling.run_function(
                target.handler, (order.subject, call), running, self._pool
            )
            if isinstance(result, LongWork):
                return handling.signed(self._accept(order, call, result), call)
        except (Exception, asyncio.CancelledError) as raised:
            failure = handling.failed(raised, target, call, running)
            return handling.signed(ErrorBody(error=failure), call)
        return handling.signed(handling.response_of(result, target, call), call)

    async def _settle(self, outcome: Outcome, order: Order, flight: Flight | None) -> None:
        if flight is None:
            return
        free = isinstance(outcome, ErrorBody) and outcome.error.side_effect is SideEffect.NONE
        remembered = None if free else packed(outcome)
        try:
            await self._books.book.settle(flight, outcome=remembered, ttl_ms=order.target.ttl_ms)
        except Exception:
            # The work is done and the answer may leave; a repeat will be told that it is unknown.
            log.exception("the outcome of call %s could not be remembered", flight.call_id)

    def _accept(self, order: Order, call: Call, long_work: LongWork) -> ExecuteResponse:
        self._books.operations.check_room()
        running = Running(
            call_id=order.context.call_id,
            attempt=order.context.attempt,
            cancelled=Cancellation(asyncio.get_running_loop()),
        )
        call.cancelled = running.cancelled
        allowed_ms = order.target.operation_timeout_ms or OPERATION_TIME_MAX_MS
        call.deadline_ms = self._clock.monotonic_ms() + allowed_ms
        self._books.operations.accept(running, long_work.poll_after_ms)
        self._keep(asyncio.create_task(self._operate(order, call, running, long_work)))
        return ExecuteResponse(operation=Operation(poll_after_ms=long_work.poll_after_ms))

    async def _operate(
        self, order: Order, call: Call, running: Running, long_work: LongWork
    ) -> None:
        target = order.target
        timer = self._clock.call_later(
            call.deadline_ms - self._clock.monotonic_ms(), lambda: running.stop(Reason.TIMEOUT)
        )
        try:
            result = await handling.run_function(long_work.work, (), running, self._pool)
            outcome = handling.response_of(result, target, call)
        except (Exception, asyncio.CancelledError) as raised:
            outcome = ErrorBody(error=handling.failed(raised, target, call, running))
        finally:
            timer.cancel()
        state = _operation_state(handling.signed(outcome, call))
        await self._books.operations.finish(
            order.context.call_id, state, ttl_ms=target.ttl_ms, callback=order.context.callback
        )
        running.failed = state.status is not OperationStatus.SUCCEEDED
        running.side_effect = side_effect_of(outcome)
        running.ended.set()

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

    def _keep(self, task: "asyncio.Task[Outcome] | asyncio.Task[None]") -> None:
        """asyncio holds tasks weakly; one that nobody awaits any more must still end."""
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def all_ended(self) -> None:
        """Wait for every attempt and operation under way (the drain does)."""
        while self._tasks:
            await asyncio.wait(set(self._tasks))


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
