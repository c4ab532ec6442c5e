"""Which calls run now, which ended lately, and how many may run: what Cancel and admission ask.

Holds no protocol decision beyond the table of cancel answers; a call is entered once and left once.
"""

import asyncio
from collections import OrderedDict
from dataclasses import dataclass, field

from acp_spec.model.card import Limits
from acp_spec.model.enums import SideEffect
from acp_spec.model.errors import Reason
from acp_spec.sdk.call import Cancellation
from acp_spec.sdk.clock import Clock
from acp_spec.sdk.faults import refusal

FINISHED_KEPT_MAX = 10_000
"""Ended calls that Cancel can still tell from unknown ones; a cancel comes within seconds or
never.
"""


@dataclass(slots=True, kw_only=True)
class Running:
    """One attempt at work. `why_stopped` tells a cancelled handler's answer from a late one's;
    `began` is false while not a line of the handler was run.
    """

    call_id: str
    attempt: int
    cancelled: Cancellation
    work: asyncio.Future[object] | None = None
    cancels_work: bool = True
    began: bool = False
    why_stopped: Reason | None = None
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    failed: bool = False
    side_effect: SideEffect = SideEffect.UNKNOWN

    def stop(self, why: Reason) -> None:
        """Ask the handler to end: the event for all, asyncio's cancellation for coroutines."""
        if self.why_stopped is None:
            self.why_stopped = why
        self.cancelled.set()
        if self.cancels_work and self.work is not None and not self.work.done():
            self.work.cancel()


class RunningCalls:
    """Entered at the start of a handler, left at its end."""

    def __init__(self) -> None:
        self._running: dict[str, list[Running]] = {}
        self._finished: OrderedDict[str, Running] = OrderedDict()
        self._idle = asyncio.Event()
        self._idle.set()
        self.count = 0

    def enter(self, running: Running) -> None:
        self._running.setdefault(running.call_id, []).append(running)
        self.count += 1
        self._idle.clear()

    def leave(self, running: Running, *, failed: bool, side_effect: SideEffect) -> None:
        running.failed = failed
        running.side_effect = side_effect
        running.ended.set()
        siblings = self._running[running.call_id]
        siblings.remove(running)
        if not siblings:
            del self._running[running.call_id]
        self._finished[running.call_id] = running
        self._finished.move_to_end(running.call_id)
        if len(self._finished) > FINISHED_KEPT_MAX:
            self._finished.popitem(last=False)
        self.count -= 1
        if self.count == 0:
            self._idle.set()

    def of(self, call_id: str, attempt: int) -> list[Running]:
        """The running attempts that a Cancel names (`attempt` 0 = all of them)."""
        running = self._running.get(call_id, ())
        return [one for one in running if attempt in (0, one.attempt)]

    def finished(self, call_id: str) -> Running | None:
        return self._finished.get(call_id)

    def all(self) -> list[Running]:
        return [one for siblings in self._running.values() for one in siblings]

    async def idle(self) -> None:
        """Wait until nothing runs."""
        await self._idle.wait()


class Admission:
    """The card's limits, enforced: how many at once, how many a second (a token bucket of 1 s)."""

    def __init__(self, limits: Limits, clock: Clock) -> None:
        self._limits = limits
        self._clock = clock
        self._tokens = max(limits.max_rate_per_s, 1.0)
        self._filled_at_ms = clock.monotonic_ms()

    def check(self, running: int) -> None:
        """Raise OVERLOADED or RATE_LIMITED, or take one token."""
        at_most = self._limits.max_concurrency
        if at_most and running >= at_most:
            raise refusal(
                Reason.OVERLOADED,
                f"The component runs {running} calls, its limit is {at_most}; try again later.",
            )
        rate = self._limits.max_rate_per_s
        if rate > 0:
            self._take(rate)

    def _take(self, rate_per_s: float) -> None:
        now_ms = self._clock.monotonic_ms()
        gained = (now_ms - self._filled_at_ms) / 1000 * rate_per_s
        self._tokens = min(max(rate_per_s, 1.0), self._tokens + gained)
        self._filled_at_ms = now_ms
        if self._tokens < 1:
            wait_ms = int((1 - self._tokens) / rate_per_s * 1000) + 1
            raise refusal(
                Reason.RATE_LIMITED,
                f"The component takes {rate_per_s:g} calls a second; try again in {wait_ms} ms.",
                retry_after_ms=wait_ms,
            )
        self._tokens -= 1
