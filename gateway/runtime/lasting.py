"""A loop that must live as long as the gateway: a look that fails is told, and the next one comes.

A task that nobody awaits dies without a word, and what it did is then never done again. Only the
store's own end passes quietly: readiness tells of that.
"""

import asyncio
import contextlib
from collections.abc import Callable

from gateway.stores.errors import StoreError
from gateway.telemetry.logs import get_log

log = get_log("gateway.loops")

Failed = Callable[[str], None]
"""Counts a look that failed, by its loop's name."""


def uncounted(loop: str) -> None:
    """For loops that no metric watches: tests, mostly."""


def survived(look: Callable[[], object], *, loop: str, failed: Failed) -> None:
    """One look; what it raises is told and counted, and stops nothing."""
    try:
        look()
    except StoreError:
        pass  # the gateway is over; readiness tells of it
    except Exception as fault:
        failed(loop)
        log.error("look_failed", cause=fault, loop=loop)


async def lasting(
    look: Callable[[], object], *, every_s: float, loop: str, failed: Failed = uncounted
) -> None:
    """Look every `every_s` until cancelled, whatever a look raises."""
    while True:
        survived(look, loop=loop, failed=failed)
        await asyncio.sleep(every_s)


async def broken_off(*tasks: asyncio.Task[None]) -> None:
    """Cancel these loops and wait until each is over; a fault that ended one before is raised."""
    for task in tasks:
        task.cancel()
    for task in tasks:
        with contextlib.suppress(asyncio.CancelledError):
            await task
