"""Who is asked, when, how many at once, and what becomes of the answer."""

import asyncio
from collections.abc import Coroutine
from typing import Any

from acp_spec.model.card import Health
from acp_spec.model.context import Signals
from acp_spec.model.enums import HealthStatus
from acp_spec.model.errors import Reason
from acp_spec.model.session import Heartbeat
from gateway.runtime.prober import Prober, ProberLimits
from gateway.runtime.tests.stub_components import card
from gateway.runtime.tests.test_registry import House

LIMITS = ProberLimits(interval_ms=1_000, concurrency=4)


def run(story: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(story, 10))


async def pass_time(house: House, prober: Prober, ms: int) -> None:
    """Let `ms` pass in ticks; every question that begins is answered."""
    for _ in range(ms // 250):
        house.clock.advance(250)
        prober.tick()
        for _ in range(5):
            await asyncio.sleep(0)


def test_everyone_silent_is_asked_once_per_interval_and_not_all_at_once() -> None:
    async def story() -> None:
        house = House()
        for number in range(8):
            await house.register(f"http://h{number}:1", card())
        prober = Prober(house.registry, house.clock, limits=LIMITS)
        prober.tick()
        assert len(house.components.asked) < 8
        await pass_time(house, prober, 4_000)
        counts = [house.components.asked.count(f"http://h{number}:1") for number in range(8)]
        assert set(counts) <= {3, 4}
        assert {shown.state for shown in house.registry.list()} == {"ACTIVE"}

    run(story())


def test_an_answer_keeps_the_lease_and_brings_signals() -> None:
    async def story() -> None:
        house = House()
        shown = await house.register("http://a:1", card(), lease_seconds=2)
        house.components.healths["http://a:1"] = Health(
            status=HealthStatus.SERVING, signals=Signals(queue_length=9)
        )
        await pass_time(house, Prober(house.registry, house.clock, limits=LIMITS), 20_000)
        after = house.registry.get(shown.component_id)
        assert after.state == "ACTIVE"
        assert after.signals is not None
        assert after.signals.queue_length == 9

    run(story())


def test_an_instance_with_heartbeats_is_left_alone() -> None:
    async def story() -> None:
        house = House()
        shown = await house.register("http://a:1", card())
        prober = Prober(house.registry, house.clock, limits=LIMITS)
        for _ in range(5):
            await house.registry.heartbeat(shown.component_id, Heartbeat())
            await pass_time(house, prober, 1_000)
        assert house.components.asked == []
        await pass_time(house, prober, 3_500)
        assert house.components.asked

    run(story())


def test_one_that_does_not_answer_is_unreachable_then_expired_and_still_asked() -> None:
    async def story() -> None:
        house = House()
        shown = await house.register("http://a:1", card(), lease_seconds=6)
        house.components.healths["http://a:1"] = Reason.UNAVAILABLE
        prober = Prober(house.registry, house.clock, limits=LIMITS)
        await pass_time(house, prober, 4_500)
        assert house.registry.get(shown.component_id).state == "UNREACHABLE"
        await pass_time(house, prober, 2_000)
        assert house.registry.get(shown.component_id).state == "EXPIRED"
        house.components.healths["http://a:1"] = Health(status=HealthStatus.SERVING)
        await pass_time(house, prober, 1_500)
        assert house.registry.get(shown.component_id).state == "ACTIVE"

    run(story())


def test_a_component_without_a_health_route_is_alive() -> None:
    async def story() -> None:
        house = House()
        shown = await house.register("http://a:1", card(), lease_seconds=2)
        house.components.healths["http://a:1"] = Reason.NOT_FOUND
        await pass_time(house, Prober(house.registry, house.clock, limits=LIMITS), 10_000)
        assert house.registry.get(shown.component_id).state == "ACTIVE"

    run(story())


def test_started_it_runs_by_itself_and_closes() -> None:
    async def story() -> None:
        house = House()
        await house.register("http://a:1", card())
        limits = ProberLimits(interval_ms=1, tick_ms=1)
        prober = Prober(house.registry, house.clock, limits=limits)
        prober.start()
        while not house.components.asked:
            house.clock.advance(1)
            await asyncio.sleep(0.001)
        await prober.close()

    run(story())


def test_a_look_that_raises_is_counted_and_the_next_one_comes() -> None:
    """The task died without a word: nobody was asked any more, no lease ever ended."""

    async def story() -> None:
        house = House()
        await house.register("http://a:1", card())
        sweep, faults, told = house.registry.sweep, iter([RuntimeError("ours")]), list[str]()

        def faulty() -> None:
            for fault in faults:
                raise fault
            sweep()

        house.registry.sweep = faulty  # type: ignore[method-assign]
        limits = ProberLimits(interval_ms=1, tick_ms=1)
        prober = Prober(house.registry, house.clock, limits=limits, failed=told.append)
        prober.start()
        while not house.components.asked:
            house.clock.advance(1)
            await asyncio.sleep(0.001)
        await prober.close()
        assert told == ["prober"]

    run(story())


def test_a_version_that_replaced_another_in_place_gets_none_of_its_calls() -> None:
    """Version 3 was called as version 1, past whoever has to let it in, and recorded as 1."""

    async def story() -> None:
        house = House()
        shown = await house.register("http://a:1", card(), lease_seconds=30)
        prober = Prober(house.registry, house.clock, limits=LIMITS)
        await pass_time(house, prober, 5_000)
        assert house.registry.pick("ledger@1.0.0", "s") is not None
        house.components.cards["http://a:1"] = card(version="3.0.0")
        await pass_time(house, prober, 12_000)
        assert house.registry.get(shown.component_id).state == "UNREACHABLE"
        assert house.registry.pick("ledger@1.0.0", "s") is None
        house.components.cards["http://a:1"] = card()
        await pass_time(house, prober, 12_000)
        assert house.registry.get(shown.component_id).state == "ACTIVE"
        house.components.cards["http://a:1"] = card(version="3.0.0")
        await pass_time(house, prober, 50_000)
        assert house.registry.get(shown.component_id).state == "EXPIRED"

    run(story())


def test_who_is_in_doubt_is_looked_at_by_the_next_tick_even_with_heartbeats() -> None:
    async def story() -> None:
        house = House()
        shown = await house.register("http://a:1", card(), lease_seconds=30)
        await house.registry.heartbeat(shown.component_id, Heartbeat())
        prober = Prober(house.registry, house.clock, limits=LIMITS)
        house.components.cards["http://a:1"] = card(version="3.0.0")
        await pass_time(house, prober, 1_000)
        assert house.registry.get(shown.component_id).state == "ACTIVE", "nobody looked"
        prober.doubt(shown.component_id)
        await pass_time(house, prober, 250)
        assert house.registry.get(shown.component_id).state == "UNREACHABLE"
        assert house.registry.pick("ledger@1.0.0", "s") is None

    run(story())


def test_one_that_states_another_version_than_its_card_is_looked_at_once_a_second_at_most() -> None:
    async def story() -> None:
        house = House()
        shown = await house.register("http://a:1", card(), lease_seconds=30)
        await house.registry.heartbeat(shown.component_id, Heartbeat())
        prober = Prober(house.registry, house.clock, limits=LIMITS)
        for _ in range(8):
            prober.doubt(shown.component_id)
            prober.doubt("cmp_gone")
            await pass_time(house, prober, 250)
        assert house.components.asked.count("http://a:1") == 2
        assert house.registry.get(shown.component_id).state == "ACTIVE", "its card says who it is"

    run(story())


def test_one_that_was_away_is_looked_at_as_soon_as_it_answers() -> None:
    async def story() -> None:
        house = House()
        shown = await house.register("http://a:1", card(), lease_seconds=30)
        prober = Prober(house.registry, house.clock, limits=LIMITS)
        await pass_time(house, prober, 2_000)
        house.components.healths["http://a:1"] = Reason.UNAVAILABLE
        await pass_time(house, prober, 2_000)
        del house.components.healths["http://a:1"]
        house.components.cards["http://a:1"] = card(version="3.0.0")
        await pass_time(house, prober, 2_000)
        assert house.registry.get(shown.component_id).state == "UNREACHABLE"

    run(story())


def test_the_same_version_with_another_card_is_called_as_before() -> None:
    """A developer who restarts a program is not shut out; its next registration says what to do."""

    async def story() -> None:
        house = House()
        shown = await house.register("http://a:1", card())
        house.components.cards["http://a:1"] = card(description="better")
        await pass_time(house, Prober(house.registry, house.clock, limits=LIMITS), 25_000)
        assert house.registry.get(shown.component_id).state == "ACTIVE"

    run(story())
