"""An event loop whose time jumps to the next timer: no sockets, no threads, the same every run.

Every callback belongs to a `Process` (a life of the gateway, or the world around it): whoever is
dead runs nothing any more, whoever is stopped runs it later. Callbacks of one moment run in the
order in which they were asked for. Nothing here decides what happens; it only keeps the order.
"""

import asyncio
import contextlib
import heapq
from collections import deque
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor
from contextvars import Context
from typing import Any, TypeVar, TypeVarTuple, Unpack

T = TypeVar("T")
Ts = TypeVarTuple("Ts")
Callback = Callable[..., object]
Post = Callable[[Callback, tuple[Any, ...]], None]

TASKS_TIDIED = 256
"""A process forgets its finished tasks whenever it has so many."""

STEPS_MAX = 1_000_000
"""Callbacks of one moment; a world has some ten thousand in all."""


class Death(BaseException):
    """The process whose code runs was killed just now: unwinds it, caught by the loop alone."""


class Process:
    """Whose callbacks these are. `stopped_until_s`: as SIGSTOP and SIGCONT do it."""

    __slots__ = ("_tidy_at", "is_alive", "name", "stopped_until_s", "tasks")

    def __init__(self, name: str) -> None:
        self.name = name
        self.is_alive = True
        self.stopped_until_s = 0.0
        self.tasks: list[asyncio.Task[Any]] = []
        self._tidy_at = TASKS_TIDIED

    def keep(self, task: "asyncio.Task[Any]") -> None:
        self.tasks.append(task)
        if len(self.tasks) >= self._tidy_at:
            self.tasks = [one for one in self.tasks if not one.done()]
            self._tidy_at = len(self.tasks) + TASKS_TIDIED


class Handle(asyncio.TimerHandle):
    """A callback and whose it is. It runs in no context of its own: nobody here sets one."""

    __slots__ = ("args", "callback", "is_off", "process")

    def __init__(self, callback: Callback, args: tuple[Any, ...], *, process: Process) -> None:
        self.callback = callback
        self.args = args
        self.process = process
        self.is_off = False

    def cancel(self) -> None:
        self.is_off = True

    def cancelled(self) -> bool:
        return self.is_off


class VirtualLoop(asyncio.AbstractEventLoop):
    """asyncio over virtual time. `process` is who runs now."""

    def __init__(self, world: Process) -> None:
        self.now_s = 0.0
        self.process = world
        self.world = world
        self.steps = 0
        self.post: Post | None = None
        """Set while a worker's job runs: what it tells the loop arrives when the work is over."""
        self.thread_s: Callable[[], float] = lambda: 0.001
        """How long the next piece of work in a thread takes."""
        self.on_failure: Callable[[str, BaseException | None], None] = lambda what, why: None
        self._ready: deque[Handle] = deque()
        self._timers: list[tuple[float, int, Handle]] = []
        self._order = 0

    # ---- what asyncio and the gateway ask of a loop ------------------------------------------

    def time(self) -> float:
        return self.now_s

    def call_soon(
        self,
        callback: Callable[[Unpack[Ts]], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> Handle:
        handle = Handle(callback, args, process=self.process)
        self._ready.append(handle)
        return handle

    def call_later(
        self,
        delay: float,
        callback: Callable[[Unpack[Ts]], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> Handle:
        return self.call_at(self.now_s + delay, callback, *args)

    def call_at(
        self,
        when: float,
        callback: Callable[[Unpack[Ts]], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> Handle:
        handle = Handle(callback, args, process=self.process)
        self._order += 1
        heapq.heappush(self._timers, (when, self._order, handle))
        return handle

    def call_soon_threadsafe(
        self,
        callback: Callable[[Unpack[Ts]], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> Handle:
        if self.post is None:
            return self.call_soon(callback, *args)
        self.post(callback, args)
        return Handle(callback, args, process=self.process)

    def create_future(self) -> "asyncio.Future[Any]":
        return asyncio.Future(loop=self)

    def create_task(
        self, coro: Any, *, name: str | None = None, context: object = None
    ) -> "asyncio.Task[Any]":
        task: asyncio.Task[Any] = asyncio.Task(coro, loop=self, name="")
        self.process.keep(task)
        return task

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[Unpack[Ts]], T], *args: *Ts
    ) -> "asyncio.Future[T]":
        """A thread's work is one step, done a little later; its answer comes with it."""
        process, future = self.process, self.create_future()

        def work() -> None:
            try:
                found = func(*args)
            except Exception as problem:
                future.set_exception(problem)
            else:
                future.set_result(found)

        self.later(self.thread_s(), work, of=process)
        return future

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return True

    def is_closed(self) -> bool:
        return False

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """What no code catches is a fault; what the dead leave behind is none."""
        cause = context.get("exception")
        if isinstance(cause, Death) or str(context["message"]).startswith("Task was destroyed"):
            return
        self.on_failure(str(context["message"]), cause)

    # ---- what a simulation asks --------------------------------------------------------------

    def later(self, delay_s: float, callback: Callback, *, of: Process) -> Handle:
        """`callback()` in the process `of`, `delay_s` from now."""
        handle = Handle(callback, (), process=of)
        self._order += 1
        heapq.heappush(self._timers, (self.now_s + delay_s, self._order, handle))
        return handle

    def soon_in(self, process: Process, callback: Callback, *args: Any) -> None:
        """Run it in `process`, behind what is due now."""
        self._ready.append(Handle(callback, args, process=process))

    def begin(self, process: Process, work: Coroutine[Any, Any, T]) -> "asyncio.Task[T]":
        """A task that belongs to `process`."""
        before, self.process = self.process, process
        try:
            return self.create_task(work)
        finally:
            self.process = before

    def bury(self, process: Process) -> None:
        """End what a dead process left in the middle: its coroutines unwind, heard by nobody."""
        before, self.process = self.process, process
        try:
            for task in process.tasks:
                if not task.done():
                    coroutine = task.get_coro()
                    assert coroutine is not None, "a task that is not done has one"
                    _close(coroutine)
            process.tasks = []
        finally:
            self.process = before

    def run(self, until_s: float, is_over: Callable[[], bool]) -> None:
        """Let everything happen that is due until then, or until it is over."""
        asyncio._set_running_loop(self)
        try:
            while not is_over():
                self._drain()
                if not self._timers or self._timers[0][0] > until_s:
                    return
                when, _, handle = heapq.heappop(self._timers)
                if handle.is_off or not handle.process.is_alive:
                    continue
                if when > self.now_s:
                    self.now_s = when
                self._ready.append(handle)
        finally:
            asyncio._set_running_loop(None)

    def _drain(self) -> None:
        ready = self._ready
        for _ in range(STEPS_MAX):
            if not ready:
                break
            handle = ready.popleft()
            process = handle.process
            if handle.is_off or not process.is_alive:
                continue
            if process.stopped_until_s > self.now_s:
                self._order += 1
                heapq.heappush(self._timers, (process.stopped_until_s, self._order, handle))
                continue
            self.process = process
            self.steps += 1
            try:
                handle.callback(*handle.args)
            except Death:
                pass
            except Exception as fault:
                self.on_failure("a callback raised", fault)
        else:
            self.on_failure("the loop spins: time never goes on", None)
            ready.clear()
        self.process = self.world


def _close(coroutine: Any) -> None:
    with contextlib.suppress(Death, RuntimeError):  # it may do things while it cleans up
        coroutine.close()
