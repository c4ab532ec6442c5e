"""Timers by name: the latest setting holds, none fires early, none is left behind."""

import asyncio

from gateway.engine.commands import StartTimer
from gateway.engine.events import Timer
from gateway.runtime.clock import ManualClock
from gateway.runtime.tests.virtual_time import START_MS, LoopClock, run
from gateway.runtime.timers import Timers


class Rings:
    def __init__(self) -> None:
        self.rung: list[tuple[str, StartTimer, int]] = []
        self.clock = LoopClock()
        self.timers = Timers(self.clock, self.fire)

    def fire(self, session_id: str, command: StartTimer) -> None:
        self.rung.append((session_id, command, self.clock.now_ms() - START_MS))

    def start(self, after_ms: int, session: str = "s", call: str = "c") -> StartTimer:
        command = StartTimer(Timer.BACKOFF, START_MS + after_ms, call, 1)
        self.timers.start(session, command)
        return command


def test_a_timer_fires_at_its_time_and_a_past_one_at_once() -> None:
    async def story() -> None:
        rings = Rings()
        late, soon = rings.start(500, call="late"), rings.start(-500, call="past")
        await asyncio.sleep(1)
        assert rings.rung == [("s", soon, 0), ("s", late, 500)]
        assert rings.timers._handles == {}, "what has fired is forgotten"

    run(story())


def test_the_latest_setting_of_a_name_holds_and_other_names_are_others() -> None:
    async def story() -> None:
        rings = Rings()
        rings.start(100)
        moved = rings.start(300)
        other = rings.start(200, session="t")
        await asyncio.sleep(1)
        assert [(s, at) for s, _, at in rings.rung] == [("t", 200), ("s", 300)]
        assert [command for _, command, _ in rings.rung] == [other, moved]

    run(story())


def test_dropping_a_session_forgets_its_timers_only() -> None:
    async def story() -> None:
        rings = Rings()
        rings.start(100)
        rings.start(100, session="t")
        rings.timers.drop("s")
        rings.timers.drop("unknown")
        await asyncio.sleep(1)
        assert [session for session, _, _ in rings.rung] == ["t"]
        rings.start(100)
        rings.timers.close()
        await asyncio.sleep(1)
        assert len(rings.rung) == 1

    run(story())


def test_a_clock_that_was_set_back_makes_a_timer_wait_on() -> None:
    async def story() -> None:
        clock = ManualClock(START_MS)
        rung: list[int] = []
        timers = Timers(clock, lambda session_id, command: rung.append(clock.now_ms()))
        timers.start("s", StartTimer(Timer.DEADLINE, START_MS + 100))
        await asyncio.sleep(0.5)
        assert rung == []
        clock.advance(100)
        await asyncio.sleep(0.5)
        assert rung == [START_MS + 100]

    run(story())


def test_a_timer_that_the_closing_itself_sets_never_fires() -> None:
    """Calls that a stop breaks off are retried by the next life: this one takes no more."""

    async def story() -> None:
        rings = Rings()
        rings.start(5)
        rings.timers.close()
        rings.start(5, call="broken off")
        await asyncio.sleep(1)
        assert rings.rung == []

    run(story())
