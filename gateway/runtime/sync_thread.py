"""Where slow work of the store is done: one thread, one job after the other, in order.

A port, so that a simulation decides when a sync is over, and whether. What a job has to tell, it
tells the loop (`call_soon_threadsafe`); nothing else of the gateway may be touched from in there.
"""

import asyncio
import queue
import threading
from collections.abc import Callable
from typing import Protocol

Job = Callable[[], None]


class Worker(Protocol):
    """Does jobs one at a time, in the order in which they were put."""

    def put(self, job: Job) -> None:
        """Do it after those before it; returns at once."""

    async def close(self) -> None:
        """Return once every job is done. Nothing may be put any more."""


class SyncThread:
    """The worker of a gateway: a thread, begun with the first job."""

    def __init__(self) -> None:
        self._thread: threading.Thread | None = None
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()

    def put(self, job: Job) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="store-sync", daemon=True)
            self._thread.start()
        self._jobs.put(job)

    async def close(self) -> None:
        thread = self._thread
        if thread is not None:
            self._jobs.put(None)
            await asyncio.to_thread(thread.join)

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()
