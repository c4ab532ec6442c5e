"""The transport-neutral core of a component server: typed requests in, typed responses or errors
out.

Both fronts (HTTP, gRPC) and the in-process pair call these methods and add nothing to the rules,
so the bindings cannot differ. It sees no bytes, no sockets and no status codes. Order of the
checks: token, version, draining, context, role and action, schema, then idempotency, limits, and
the handler.
"""

import asyncio
import contextlib
import logging
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import msgspec

from acp_spec.bindings.errors import error
from acp_spec.model.calls import (
    CancelRequest,
    CancelResponse,
    ErrorBody,
    ExecuteRequest,
    ObserveRequest,
    OperationState,
    PlanRequest,
    ReflectRequest,
    Request,
)
from acp_spec.model.card import Card, ComponentRef, Health
from acp_spec.model.context import Context, Signals
from acp_spec.model.enums import CancelState, HealthStatus, SideEffect, StepRole
from acp_spec.model.errors import AcpError, AcpFailure, Reason
from acp_spec.sdk.arrival import (
    Arrival,
    check_context,
    check_token,
    check_version,
    valid_traceparent,
)
from acp_spec.sdk.call import ProgressSink
from acp_spec.sdk.callback import post_call_back
from acp_spec.sdk.callbook import CallBook, First, Lost, Remembered, Waiter
from acp_spec.sdk.clock import Clock, SystemClock
from acp_spec.sdk.component import Component, Target
from acp_spec.sdk.executions import Books, Executions, Order, unpacked
from acp_spec.sdk.faults import refusal
from acp_spec.sdk.handling import Outcome
from acp_spec.sdk.operations import CallBack, Operations
from acp_spec.sdk.outcomes import OutcomesUnavailable, Stage
from acp_spec.sdk.running import Admission, Running, RunningCalls
from acp_spec.sdk.values import read

log = logging.getLogger(__name__)

CANCEL_WAIT_MS = 1000.0
"""How long Cancel waits for a handler to stop before it answers RUNNING."""
POOL_THREADS_MIN = 8

_ROLE_OF_REQUEST: dict[type[Request], StepRole] = {
    PlanRequest: StepRole.PLAN,
    ExecuteRequest: StepRole.EXECUTE,
    ObserveRequest: StepRole.OBSERVE,
    ReflectRequest: StepRole.REFLECT,
}


class Dispatcher:
    """Serves one component. Make it inside a running event loop; `close` when done."""

    def __init__(
        self,
        component: Component,
        *,
        clock: Clock | None = None,
        token: str | None = None,
        call_back: CallBack = post_call_back,
    ) -> None:
        self.component = component
        self.clock = clock or SystemClock()
        self.draining = False
        self._token = token
        self._card = component.card()
        self._ref = ComponentRef(version=component.version)
        threads = max(POOL_THREADS_MIN, min(component.limits.max_concurrency, 64))
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix=component.name)
        self._admission = Admission(component.limits, self.clock)
        self._calls = RunningCalls()
        self._book = CallBook(component.outcomes, self.clock)
        self._operations = Operations(component.outcomes, clock=self.clock, call_back=call_back)
        books = Books(calls=self._calls, book=self._book, operations=self._operations)
        self._executions = Executions(books, clock=self.clock, pool=self._pool)

    def check_peer(self, arrival: Arrival) -> None:
        """Token and version: what a front asks before it reads a body. Raises AcpFailure."""
        check_token(arrival, self._token)
        check_version(arrival.acp_version)

    # ---- questions -------------------------------------------------------------------------

    def describe(self, arrival: Arrival) -> Card:
        """The card. Raises AcpFailure for a missing token or an unknown major version."""
        self.check_peer(arrival)
        return self._card

    def health(self, arrival: Arrival) -> Health:
        self.check_peer(arrival)
        signals = Signals(
            component=self.component.name,
            inflight=self._calls.count,
            service_ms=self._executions.service_ms,
        )
        status = HealthStatus.NOT_SERVING if self.draining else HealthStatus.SERVING
        return Health(status=status, signals=signals)

    async def get_operation(self, call_id: str, arrival: Arrival) -> OperationState:
        self.check_peer(arrival)
        with _store_trouble():
            return await self._operations.get(call_id)

    # ---- the four calls ---------------------------------------------------------------------

    async def call(
        self, request: Request, arrival: Arrival, *, on_progress: ProgressSink | None = None
    ) -> Outcome:
        """Plan, Execute, Observe or Reflect. Never raises for what a peer or a handler did."""
        try:
            order = self._order(request, arrival, on_progress=on_progress)
            with _store_trouble():
                outcome = await self._run(order)
        except AcpFailure as failure:
            outcome = ErrorBody(error=failure.error)
        return msgspec.structs.replace(outcome, component=self._ref)

    def _order(
        self, request: Request, arrival: Arrival, *, on_progress: ProgressSink | None
    ) -> Order:
        self.check_peer(arrival)
        if self.draining:
            raise refusal(Reason.UNAVAILABLE, "The component is stopping and takes no new calls.")
        check_context(request.context, arrival)
        target = self._target(request)
        subject, text = _subject(request, target)
        timeout_ms = float(request.context.timeout_ms)
        if arrival.timeout_ms is not None:
            timeout_ms = min(timeout_ms, arrival.timeout_ms)
        return Order(
            context=_traced(request.context, arrival),
            target=target,
            subject=subject,
            deadline_ms=arrival.at_ms + timeout_ms,
            arguments_text=text,
            on_progress=on_progress,
        )

    def _target(self, request: Request) -> Target:
        role = _ROLE_OF_REQUEST[type(request)]
        action = request.action if isinstance(request, ExecuteRequest) else ""
        target = self.component.target(role, action)
        if target is not None:
            return target
        name = self.component.name
        if self.component.offers(role):
            known = ", ".join(self.component.actions)
            raise refusal(Reason.NOT_FOUND, f"{name} has no action {action!r}; it has: {known}.")
        roles = ", ".join(offered.value for offered in self._card.roles)
        raise refusal(
            Reason.NOT_FOUND, f"{name} does not do {role.value}; its roles are: {roles or 'none'}."
        )

    async def _run(self, order: Order) -> Outcome:
        self._check_time(order)
        if not order.target.remembers:
            self._admission.check(self._calls.count)
            return await self._executions.run(order)
        return await self._run_by_key(order)

    async def _run_by_key(self, order: Order) -> Outcome:
        context, target = order.context, order.target
        while True:
            begun = await self._book.begin(
                context.call_id,
                attempt=context.attempt,
                digest=context.body_digest,
                ttl_ms=target.ttl_ms,
            )
            match begun:
                case Remembered(outcome=outcome):
                    return unpacked(outcome, target)
                case Lost():
                    return ErrorBody(error=_lost(context))
                case Waiter(flight=flight):
                    await self._wait_for_first(flight.settled, order)
                case First(flight=flight):
                    return await self._run_first(order, begun)

    async def _run_first(self, order: Order, first: First) -> Outcome:
        try:
            self._admission.check(self._calls.count)
        except AcpFailure:
            await self._book.settle(first.flight, outcome=None, ttl_ms=order.target.ttl_ms)
            raise
        return await self._executions.run(order, first.flight)

    async def _wait_for_first(self, settled: asyncio.Event, order: Order) -> None:
        left_ms = order.deadline_ms - self.clock.monotonic_ms()
        if not await self._within(settled, left_ms):
            raise refusal(
                Reason.CALL_IN_PROGRESS,
                f"Call {order.context.call_id} is still running; ask again for its outcome.",
            )

    # ---- cancel -----------------------------------------------------------------------------

    async def cancel(self, request: CancelRequest, arrival: Arrival) -> CancelResponse:
        """Stop the named attempts and say what is known of them."""
        self.check_peer(arrival)
        stopping = self._calls.of(request.call_id, request.attempt)
        operation = self._operations.running(request.call_id)
        if operation is not None:
            stopping.append(operation)
        if not stopping:
            return await self._ended(request.call_id)
        for running in stopping:
            running.stop(Reason.CANCELLED)
        return await self._stopped(stopping)

    async def cancel_operation(self, call_id: str, arrival: Arrival) -> CancelResponse:
        """Stop a long operation. Raises NOT_FOUND (AcpFailure) when none is known by that id."""
        self.check_peer(arrival)
        running = self._operations.running(call_id)
        if running is None:
            with _store_trouble():
                return await self._operations.ended(call_id)
        running.stop(Reason.CANCELLED)
        return await self._stopped([running])

    async def _stopped(self, stopping: list[Running]) -> CancelResponse:
        by_ms = self.clock.monotonic_ms() + CANCEL_WAIT_MS
        for running in stopping:
            if not await self._within(running.ended, by_ms - self.clock.monotonic_ms()):
                return CancelResponse(state=CancelState.RUNNING, side_effect=SideEffect.UNKNOWN)
        finished = all(not running.failed for running in stopping)
        return CancelResponse(
            state=CancelState.FINISHED if finished else CancelState.STOPPED,
            side_effect=_worst([running.side_effect for running in stopping]),
        )

    async def _ended(self, call_id: str) -> CancelResponse:
        finished = self._calls.finished(call_id)
        if finished is not None:
            return CancelResponse(state=CancelState.FINISHED, side_effect=finished.side_effect)
        with _store_trouble():
            record = await self.component.outcomes.get(call_id)
        if record is not None and record.stage is Stage.SETTLED:
            return CancelResponse(state=CancelState.FINISHED, side_effect=SideEffect.UNKNOWN)
        return CancelResponse(state=CancelState.UNKNOWN_CALL, side_effect=SideEffect.UNKNOWN)

    # ---- the end ----------------------------------------------------------------------------

    async def drain(self) -> None:
        """Refuse new calls and wait for those that run, their operations and call-backs."""
        self.draining = True
        await self._executions.all_ended()
        await self._operations.reported()

    def stop_all(self) -> None:
        """Ask everything that runs to stop now."""
        self.draining = True
        for running in self._calls.all():
            running.stop(Reason.CANCELLED)

    def close(self) -> None:
        """Give threads and the outcome store back. Threads still at work are not waited for."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        self.component.outcomes.close()

    # ---- small parts ------------------------------------------------------------------------

    def _check_time(self, order: Order) -> None:
        if self.clock.monotonic_ms() >= order.deadline_ms:
            raise refusal(Reason.TIMEOUT, "The time for this call was over before it could start.")

    async def _within(self, event: asyncio.Event, timeout_ms: float) -> bool:
        """Whether `event` is set within `timeout_ms` of this dispatcher's clock."""
        if event.is_set():
            return True
        waiting = asyncio.ensure_future(event.wait())
        timer = self.clock.call_later(timeout_ms, waiting.cancel)
        try:
            await asyncio.wait({waiting})
        finally:
            timer.cancel()
            waiting.cancel()
        return event.is_set()


@contextlib.contextmanager
def _store_trouble() -> Iterator[None]:
    """Outcomes that cannot be read or written now: nothing was begun, the call may come again."""
    try:
        yield
    except OutcomesUnavailable as problem:
        log.error("the outcome store: %s", problem)
        raise refusal(
            Reason.UNAVAILABLE, "The component cannot read what it remembers of calls just now."
        ) from None


def _subject(request: Request, target: Target) -> tuple[object, bytes]:
    """What the handler gets first, checked against the action's input_schema."""
    if not isinstance(request, ExecuteRequest):
        return request, b""
    text = bytes(request.arguments)
    try:
        arguments = read(text)
    except ValueError as unreadable:
        raise refusal(
            Reason.INVALID_REQUEST, f"The arguments cannot be read: {unreadable}."
        ) from None
    problem = target.arguments_valid(arguments) if target.arguments_valid else None
    if problem is not None:
        raise refusal(
            Reason.INVALID_REQUEST,
            f"The arguments of {target.name} do not fit its input_schema: {problem}.",
        )
    return arguments, text


def _traced(context: Context, arrival: Arrival) -> Context:
    """A valid traceparent header is the parent span: meshes rewrite headers, not bodies."""
    if not valid_traceparent(arrival.traceparent):
        return context
    return msgspec.structs.replace(
        context,
        traceparent=arrival.traceparent,
        tracestate=arrival.tracestate or context.tracestate,
    )


def _lost(context: Context) -> AcpError:
    message = (
        f"The component restarted while call {context.call_id} ran; whether it was done is "
        "unknown. Look at the system behind it before you repeat it under a new call_id."
    )
    return error(Reason.INTERNAL, message, side_effect=SideEffect.UNKNOWN)


_WORSE = (SideEffect.NONE, SideEffect.PERFORMED, SideEffect.UNKNOWN)


def _worst(side_effects: list[SideEffect]) -> SideEffect:
    return max(side_effects, key=_WORSE.index)
