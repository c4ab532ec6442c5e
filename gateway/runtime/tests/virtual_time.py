"""An event loop whose time jumps to the next timer, so that no test ever waits.

Only for code that stays on the loop: what a thread does takes no time here.
"""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")
START_MS = 1_700_000_000_000
THREAD_S = 30.0
"""With no timer left only a thread can bring news; a store's work takes milliseconds."""


class _Jumping(selectors.DefaultSelector):
    """Waits for nothing: what would be waited for is added to the loop's time."""

    def __init__(self) -> None:
        super().__init__()
        self.now_s = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0 if timeout is not None else THREAD_S)
        assert ready or timeout is not None, "the test waits for something that never comes"
        if not ready and timeout:
            self.now_s += timeout
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """asyncio over virtual time."""

    def __init__(self) -> None:
        self._jumping = _Jumping()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.now_s


class LoopClock:
    """`Clock` that follows the running loop."""

    def now_ms(self) -> int:
        return START_MS + int(self.monotonic_ms())

    def monotonic_ms(self) -> float:
        return round(asyncio.get_event_loop().time() * 1000, 3)


class SkewedClock(LoopClock):
    """Its wall time can be set; what is measured by it goes on."""

    skew_ms = 0

    def now_ms(self) -> int:
        return super().now_ms() + self.skew_ms


def run(story: Coroutine[Any, Any, T]) -> T:
    """Run a test's coroutine to its end in virtual time."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(story)
