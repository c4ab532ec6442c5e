"""Time jumps, callbacks keep their order, and the dead do nothing any more."""

import asyncio
from functools import partial

import pytest

from gateway.simulation.virtual_loop import Death, Process, VirtualLoop


def new_loop() -> VirtualLoop:
    return VirtualLoop(Process("world"))  # type: ignore[abstract]


def run(loop: VirtualLoop, until_s: float = 1e6) -> None:
    loop.run(until_s, lambda: False)


def test_time_jumps_to_what_is_due_next_and_equal_times_keep_their_order() -> None:
    loop, seen = new_loop(), list[tuple[str, float]]()

    def note(name: str) -> None:
        seen.append((name, loop.time()))

    for name, delay_s in (("b", 5.0), ("a", 1.0), ("c", 5.0)):
        loop.call_later(delay_s, note, name)
    run(loop)
    assert seen == [("a", 1.0), ("b", 5.0), ("c", 5.0)]


def test_asyncio_sleeps_waits_and_times_out_in_no_time() -> None:
    async def story() -> tuple[str, float]:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(3_600):
                await asyncio.Event().wait()
        found = await asyncio.to_thread(lambda: "threaded")
        return found, asyncio.get_running_loop().time()

    loop = new_loop()
    task = loop.begin(loop.world, story())
    run(loop)
    found, at_s = task.result()
    assert found == "threaded"
    assert 3_600 < at_s < 3_601


def test_whoever_died_runs_nothing_any_more_and_its_code_is_unwound_in_silence() -> None:
    loop, life, seen = new_loop(), Process("life"), list[str]()

    async def work() -> None:
        try:
            await asyncio.sleep(10)
            seen.append("woke")
        finally:
            asyncio.get_event_loop().call_soon(seen.append, "cleaned up")

    def die() -> None:
        life.is_alive = False
        seen.append("died")
        loop.soon_in(loop.world, loop.bury, life)
        raise Death

    loop.begin(life, work())
    loop.later(1.0, die, of=life)
    loop.later(2.0, lambda: seen.append("too late"), of=life)
    loop.later(3.0, lambda: seen.append("the world goes on"), of=loop.world)
    run(loop)
    assert seen == ["died", "the world goes on"]


def test_what_a_task_causes_belongs_to_its_process() -> None:
    loop, life, seen = new_loop(), Process("life"), list[str]()

    async def work() -> None:
        await asyncio.sleep(1)
        asyncio.get_running_loop().call_later(1, seen.append, "heard")

    loop.begin(life, work())
    loop.later(1.5, lambda: setattr(life, "is_alive", False), of=loop.world)
    run(loop)
    assert not seen


def test_a_stopped_process_runs_everything_later_in_the_same_order() -> None:
    loop, life, seen = new_loop(), Process("life"), list[tuple[int, float]]()
    life.stopped_until_s = 5.0

    def note(number: int) -> None:
        seen.append((number, loop.time()))

    for number in range(3):
        loop.later(1.0 + number, partial(note, number), of=life)
    run(loop)
    assert seen == [(0, 5.0), (1, 5.0), (2, 5.0)]


def test_a_fault_of_the_code_under_test_is_told() -> None:
    loop, told = new_loop(), list[str]()
    loop.on_failure = lambda what, why: told.append(f"{what}: {why}")
    loop.call_soon(lambda: 1 / 0)
    run(loop)
    assert told == ["a callback raised: division by zero"]


def test_a_cancelled_timer_does_not_fire() -> None:
    loop, seen = new_loop(), list[str]()
    loop.call_later(1, seen.append, "fired").cancel()
    run(loop)
    assert not seen
