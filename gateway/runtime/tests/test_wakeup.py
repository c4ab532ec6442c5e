"""A wakeup wakes once per change, forgets none, and ends by itself."""

import asyncio

from gateway.runtime.wakeup import Wakeup

LONG_S, SHORT_S = 60.0, 0.01


def test_a_change_told_before_anybody_waits_is_not_lost() -> None:
    async def story() -> None:
        wakeup = Wakeup(LONG_S)
        wakeup.wake()
        wakeup.wake()
        await wakeup.wait()
        assert not wakeup.is_over
        waiting = asyncio.ensure_future(wakeup.wait())
        await asyncio.sleep(0)
        assert not waiting.done()
        wakeup.wake()
        await waiting
        wakeup.close()

    asyncio.run(story())


def test_when_the_time_is_over_every_wait_returns_at_once() -> None:
    async def story() -> None:
        wakeup = Wakeup(SHORT_S)
        await wakeup.wait()
        assert wakeup.is_over
        await wakeup.wait()

    asyncio.run(story())


def test_once_closed_it_does_not_end_any_more() -> None:
    async def story() -> None:
        wakeup = Wakeup(SHORT_S)
        wakeup.close()
        waiting = asyncio.ensure_future(wakeup.wait())
        await asyncio.wait([waiting], timeout=5 * SHORT_S)
        assert not waiting.done()
        waiting.cancel()

    asyncio.run(story())
