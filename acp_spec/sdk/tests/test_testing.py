"""The manual clock turns only when told, and wakes in order."""

import asyncio
from functools import partial

from acp_spec.sdk.clock import SystemClock, sleep_ms
from acp_spec.sdk.testing import ManualClock, build_context, settle_loop


def test_timers_fire_in_their_order_each_at_its_own_time() -> None:
    clock = ManualClock()
    seen: list[tuple[str, float]] = []

    def note(name: str) -> None:
        seen.append((name, clock.monotonic_ms()))

    for name, delay_ms in (("b", 20), ("a", 10), ("c", 20), ("never", 100)):
        clock.call_later(delay_ms, partial(note, name))
    clock.advance(50)
    assert seen == [("a", 10), ("b", 20), ("c", 20)]
    assert clock.monotonic_ms() == 50


def test_a_cancelled_timer_does_not_fire() -> None:
    clock = ManualClock()
    seen: list[int] = []
    clock.call_later(1, lambda: seen.append(1)).cancel()
    clock.advance(10)
    assert seen == []


def test_a_timer_may_set_another_within_the_same_turn() -> None:
    clock = ManualClock()
    seen: list[float] = []

    def again() -> None:
        seen.append(clock.monotonic_ms())
        if len(seen) < 3:
            clock.call_later(10, again)

    clock.call_later(10, again)
    clock.advance(25)
    assert seen == [10, 20]


def test_sleep_waits_for_the_clock_it_is_given() -> None:
    async def story() -> None:
        clock = ManualClock()
        sleeping = asyncio.ensure_future(sleep_ms(clock, 100))
        await settle_loop()
        clock.advance(99)
        await settle_loop()
        assert not sleeping.done()
        clock.advance(1)
        await sleeping
        await sleep_ms(SystemClock(), 1)

    asyncio.run(story())


def test_contexts_are_valid_and_never_the_same() -> None:
    first, second = build_context("a", {"x": 1}), build_context("a", {"x": 1})
    assert first.call_id != second.call_id
    assert first.body_digest == second.body_digest
    assert len(first.session_id) == 26
