"""How late the event loop is: the delay of a timer, worst of the last seconds.

A loop that is late is late for everything: each answer, timer and sync waits behind what holds it.
"""

import asyncio
from collections import deque
from typing import Final

TICK_S: Final = 0.25
"""Four looks a second cost nothing and miss no lag that lasts."""
KEPT: Final = 20
"""Five seconds: a scrape every few seconds sees each lag once."""


class LoopLag:
    """Begin with `start` on the loop that is to be watched; `worst_s` may be asked at any time."""

    def __init__(self) -> None:
        self._lags_s: deque[float] = deque(maxlen=KEPT)
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        loop = asyncio.get_running_loop()
        self._next(loop)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def worst_s(self) -> float:
        return max(self._lags_s, default=0.0)

    def _next(self, loop: asyncio.AbstractEventLoop) -> None:
        due_s = loop.time() + TICK_S
        self._timer = loop.call_at(due_s, self._tick, loop, due_s)

    def _tick(self, loop: asyncio.AbstractEventLoop, due_s: float) -> None:
        self._lags_s.append(max(0.0, loop.time() - due_s))
        self._next(loop)
