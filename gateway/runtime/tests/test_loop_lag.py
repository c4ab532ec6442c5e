"""A loop that was held up knows by how much, for some seconds."""

import asyncio
import time

from gateway.runtime.loop_lag import KEPT, TICK_S, LoopLag


def test_a_loop_that_is_held_up_is_late_by_as_much() -> None:
    async def story() -> float:
        lag = LoopLag()
        lag.start()
        held_until = time.monotonic() + TICK_S + 0.2
        while time.monotonic() < held_until:  # what a slow callback does
            pass
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        worst = lag.worst_s()
        lag.close()
        return worst

    assert asyncio.run(story()) >= 0.19


def test_one_that_was_never_started_is_not_late() -> None:
    assert LoopLag().worst_s() == 0.0


def test_it_keeps_some_seconds_only() -> None:
    assert 2 <= KEPT * TICK_S <= 30
