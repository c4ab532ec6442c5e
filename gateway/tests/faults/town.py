"""Where misbehaving peers live while a real gateway is used: an event loop in a thread.

`stay` enters an asynchronous context and keeps it until `leave` or the end of the town, so that a
test written as a plain story can start a peer, and put another one in its place.
"""

import asyncio
import threading
from collections.abc import Coroutine
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from types import TracebackType
from typing import Any, Self, TypeVar

T = TypeVar("T")
ANSWER_S_MAX = 30.0


class Town:
    """`with Town() as town: place = town.stay(peer(...))`."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._staying: list[AsyncExitStack] = []

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        while self._staying:
            self.leave()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(ANSWER_S_MAX)
        self._loop.close()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run it there and wait for what it gives."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(ANSWER_S_MAX)

    def stay(self, place: AbstractAsyncContextManager[T]) -> T:
        """Enter; it ends with `leave`, last in first out."""
        stack = AsyncExitStack()
        entered = self.run(stack.enter_async_context(place))
        self._staying.append(stack)
        return entered

    def leave(self) -> None:
        """End the one that came last."""
        self.run(self._staying.pop().aclose())
