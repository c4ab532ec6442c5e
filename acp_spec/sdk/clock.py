"""Time as an argument: the SDK reads clocks only through this port, so that tests can turn the
hands.

`monotonic_ms` measures spans (deadlines); `wall_ms` dates what outlives the process (idempotency
TTL).
"""

import asyncio
import time
from collections.abc import Callable
from typing import Protocol


class Timer(Protocol):
    """What `call_later` returns: a wake-up that can be taken back."""

    def cancel(self) -> None: ...


class Clock(Protocol):
    def monotonic_ms(self) -> float: ...

    def wall_ms(self) -> float: ...

    def call_later(self, delay_ms: float, wake: Callable[[], object]) -> Timer: ...


class SystemClock:
    """The machine's clocks and the running loop's timers."""

    def monotonic_ms(self) -> float:
        return time.monotonic() * 1000

    def wall_ms(self) -> float:
        return time.time() * 1000

    def call_later(self, delay_ms: float, wake: Callable[[], object]) -> Timer:
        return asyncio.get_running_loop().call_later(max(delay_ms, 0) / 1000, wake)


async def sleep_ms(clock: Clock, delay_ms: float) -> None:
    """Wait by `clock` (so a manual clock decides when it is over); cancellable."""
    over: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def end() -> None:
        if not over.done():
            over.set_result(None)

    timer = clock.call_later(delay_ms, end)
    try:
        await over
    finally:
        timer.cancel()
