"""What a handler is given beside its arguments: identity, time left, cancellation, progress,
budget.

A `Call` belongs to one attempt. It may be used from the handler's own thread (sync handlers run in
a pool); it decides nothing - the dispatcher reads what the handler left here.
"""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Unpack

from acp_spec.model.calls import LlmCall, Progress, Usage
from acp_spec.model.context import Context
from acp_spec.model.enums import SideEffect
from acp_spec.model.errors import AcpFailure, Reason
from acp_spec.sdk import faults
from acp_spec.sdk.clock import Clock
from acp_spec.sdk.values import check_sayable, write

ProgressSink = Callable[[Progress], None]


class Cancellation:
    """Set once, by a cancel or by the deadline. Threads `wait`, coroutines `await
    call.cancelled`.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._event = threading.Event()
        self._reached: asyncio.Future[None] | None = None

    def is_set(self) -> bool:
        return self._event.is_set()

    def wait(self, timeout_s: float | None = None) -> bool:
        """Block this thread until cancelled or until `timeout_s` is over; True when cancelled."""
        return self._event.wait(timeout_s)

    def __await__(self):  # type: ignore[no-untyped-def]  # a generator of loop internals
        if self._reached is None:
            self._reached = self._loop.create_future()
        if self._event.is_set() and not self._reached.done():
            self._reached.set_result(None)
        return asyncio.shield(self._reached).__await__()

    def set(self) -> None:
        """For the dispatcher, on the loop's thread."""
        self._event.set()
        if self._reached is not None and not self._reached.done():
            self._reached.set_result(None)


@dataclass(frozen=True, slots=True, kw_only=True)
class LongWork:
    """What `call.operation` returns and a handler returns on: accepted, the work goes on."""

    work: Callable[[], object | Awaitable[object]]
    poll_after_ms: int


@dataclass(slots=True, kw_only=True)
class Call:
    context: Context
    clock: Clock
    deadline_ms: float
    cancelled: Cancellation
    action: str = ""
    arguments_text: bytes = b""
    side_effect: SideEffect | None = None
    retries_spent: int = 0
    usage: Usage | None = None
    llm_calls: list[LlmCall] = field(default_factory=list)
    on_progress: ProgressSink | None = None

    def time_left_ms(self) -> int:
        """Milliseconds until the caller gives up; 0 when that has passed."""
        return max(0, int(self.deadline_ms - self.clock.monotonic_ms()))

    def progress(self, value: object = None, message: str = "") -> None:
        """Tell a streaming caller how far the work is; a no-op for one that only waits.

        Raises ValueError or TypeError for what JSON cannot say.
        """
        check_sayable(message)
        told = Progress(progress=write(value), message=message)  # wrong for all, or for nobody
        if self.on_progress is not None:
            self.on_progress(told)

    def spend_retry(self) -> bool:
        """Take one retry from the caller's budget before repeating a call of your own; False =
        none left.
        """
        if self.retries_spent >= self.context.retry_budget:
            return False
        self.retries_spent += 1
        return True

    def spend(self, *, tokens: int = 0, cost_micros: int = 0) -> None:
        """Add to what this call reports as used."""
        used = self.usage or Usage()
        self.usage = Usage(tokens=used.tokens + tokens, cost_micros=used.cost_micros + cost_micros)

    def operation(
        self, work: Callable[[], object | Awaitable[object]], *, poll_after_ms: int = 1000
    ) -> LongWork:
        """`return call.operation(work)`: answer at once that the call is accepted, run `work`
        after.

        `work()` returns the output or raises as a handler does; its end is reported by poll and,
        when the caller gave an address, by call-back.
        """
        return LongWork(work=work, poll_after_ms=poll_after_ms)

    def fail(
        self,
        reason: Reason | str,
        message: str,
        *,
        side_effect: SideEffect | None = None,
        **options: Unpack[faults.ErrorOptions],
    ) -> AcpFailure:
        """`raise call.fail(...)`: a failure the caller can act on.

        State `side_effect=SideEffect.NONE` whenever that is certain: only then may a call that is
        not idempotent be tried again. A reason of your own gets code FAILED_PRECONDITION unless
        `code` is given.
        """
        return faults.handler_failure(reason, message, side_effect=side_effect, **options)
