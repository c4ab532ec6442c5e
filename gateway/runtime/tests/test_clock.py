"""Time and chance that a test decides."""

from gateway.runtime.clock import (
    Chance,
    Clock,
    ManualClock,
    SeededChance,
    SystemChance,
    SystemClock,
)


def test_a_manual_clock_moves_only_when_told() -> None:
    clock: Clock = (manual := ManualClock(1000))
    assert (clock.now_ms(), clock.monotonic_ms()) == (1000, 0.0)
    manual.advance(250)
    assert (clock.now_ms(), clock.monotonic_ms()) == (1250, 250.0)


def test_a_jump_of_the_wall_clock_leaves_measured_time_alone() -> None:
    clock = ManualClock(1000)
    clock.jump_to(10)
    assert (clock.now_ms(), clock.monotonic_ms()) == (10, 0.0)


def test_the_system_clock_tells_milliseconds_since_the_epoch() -> None:
    clock = SystemClock()
    assert clock.now_ms() > 1_700_000_000_000
    assert clock.monotonic_ms() <= clock.monotonic_ms()


def test_system_chance_gives_64_bits_that_do_not_repeat() -> None:
    chance = SystemChance()
    drawn = [chance.random_64() for _ in range(1000)]
    assert len(set(drawn)) == 1000
    assert max(drawn) >= 1 << 62
    assert max(drawn) < 1 << 64
    assert len(chance.random_bytes(32)) == 32


def test_seeded_chance_repeats_itself() -> None:
    one: Chance = SeededChance(7)
    other: Chance = SeededChance(7)
    assert [one.random_64() for _ in range(5)] == [other.random_64() for _ in range(5)]
    assert one.random_bytes(9) == other.random_bytes(9)
