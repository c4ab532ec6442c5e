"""A session's events as a stream: gapless numbers, resumed by the last one, ended with the end."""

import asyncio

import msgspec
import pytest

from gateway.engine.events import AnyEvent
from gateway.engine.tests.casting import Said
from gateway.engine.tests.stage import FOUR_CALLS, ONE_ACTION
from gateway.runtime.principal import LOCAL
from gateway.runtime.tests.house import House
from gateway.runtime.tests.test_service import rating
from gateway.runtime.tests.virtual_time import run

Numbered = tuple[int, str, bytes]


async def all_of(house: House, session: str, after: int = 0) -> list[Numbered]:
    return [item async for item in house.service.events(session, LOCAL, after=after)]


def test_a_stream_brings_every_event_with_its_number_and_ends_with_the_end() -> None:
    async def story() -> None:
        house = House()
        session = await house.open(FOUR_CALLS)
        found = await all_of(house, session)
        assert [number for number, _, _ in found] == list(range(1, 19))
        assert (found[0][1], found[-1][1]) == ("Opened", "SessionEnded")
        events = [msgspec.json.decode(text, type=AnyEvent) for _, _, text in found]
        assert msgspec.json.encode(events) == msgspec.json.encode(house.journal(session))

    run(story())


def test_a_stream_waits_for_what_comes_and_several_see_the_same() -> None:
    async def story() -> None:
        house = House()
        house.targets.connection.lines["read"] = Said(response=b'{"output":1}', after_ms=3_000)
        session = await house.open(ONE_ACTION % "read")
        streams = await asyncio.gather(*(all_of(house, session) for _ in range(3)))
        assert streams[0] == streams[1] == streams[2]
        assert streams[0][-1][1] == "SessionEnded"
        live = house.sessions.find(session)
        assert live is not None
        assert live.on_change == [], "nobody is left waiting"

    run(story())


def test_a_stream_resumed_at_any_number_goes_on_behind_it() -> None:
    async def story() -> None:
        house = House()
        session = await house.open(ONE_ACTION % "read")
        whole = await all_of(house, session)
        for after in range(len(whole)):
            assert await all_of(house, session, after) == whole[after:]
        assert await all_of(house, session, len(whole)) == []
        assert await all_of(house, session, 999) == []
        assert await all_of(house, session, -5) == whole

    run(story())


def test_a_resume_at_an_end_that_was_told_is_over_at_once() -> None:
    async def story() -> None:
        house = House()
        session = await house.open(ONE_ACTION % "read")
        end = (await all_of(house, session))[-1][0]
        await house.ended(session)
        stream = house.service.events(session, LOCAL, after=end)
        with pytest.raises(StopAsyncIteration):
            anext(stream).__await__().__next__()  # not one turn of the loop

    run(story())


def test_a_reader_that_goes_away_leaves_nothing_behind() -> None:
    async def story() -> None:
        house = House()
        house.targets.connection.lines["read"] = None
        session = await house.open(ONE_ACTION % "read")
        stream = house.service.events(session, LOCAL, after=0)
        await anext(stream)
        live = house.sessions.find(session)
        assert live is not None
        assert len(live.on_change) == 1
        await stream.aclose()  # type: ignore[attr-defined]
        assert live.on_change == []

    run(story())


def test_what_came_after_the_end_is_read_by_who_resumes_there() -> None:
    async def story() -> None:
        house = House()
        session = await house.open(ONE_ACTION % "read")
        whole = await all_of(house, session)
        await house.service.feedback(session, rating(), principal=LOCAL)
        more = await all_of(house, session, len(whole))
        assert [name for _, name, _ in more] == ["FeedbackGiven"]

    run(story())


def test_a_session_that_was_evicted_is_streamed_from_its_journal() -> None:
    async def story() -> None:
        house = House(live_limit=1)
        session = await house.open(ONE_ACTION % "read")
        whole = await all_of(house, session)
        await house.ended(await house.open(ONE_ACTION % "put"))
        assert session not in house.sessions._live
        assert await all_of(house, session) == whole

    run(story())
