"""Waiting for a change, for a limited time: one future and one timer.

`asyncio.Event` inside `asyncio.timeout` says the same for three times the price (17 us), and every
client that waits for a session's end pays it. Used on the event loop's thread.
"""

import asyncio


class Wakeup:
    """Something may have changed: look again. `is_over` once `wait_s` seconds have passed."""

    def __init__(self, wait_s: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._woken = self._loop.create_future()
        self._timer = self._loop.call_later(wait_s, self._end)
        self.is_over = False

    def wake(self) -> None:
        """Let `wait` return; what is told before it is called is not lost."""
        if not self._woken.done():
            self._woken.set_result(None)

    async def wait(self) -> None:
        """Return after the next `wake`, or when the time is over."""
        await self._woken
        if not self.is_over:
            self._woken = self._loop.create_future()

    def close(self) -> None:
        """Nobody waits any more."""
        self._timer.cancel()

    def _end(self) -> None:
        self.is_over = True
        self.wake()
