"""Pages: the newest first, every session once, also while sessions come, go and change."""

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acp_spec.model.enums import SessionStatus
from acp_spec.model.errors import Reason
from gateway.engine.tests.stage import ONE_ACTION, accepted, failed
from gateway.runtime import pages
from gateway.runtime.principal import LOCAL, Principal
from gateway.runtime.tests.house import House, told
from gateway.runtime.tests.virtual_time import run

OTHER = Principal(tenant="other", scopes=frozenset(("admin",)))


async def crowd(house: House, counts: dict[str, int]) -> set[str]:
    """Sessions of every status."""
    lines = house.targets.connection.lines
    lines["pay"] = failed(Reason.INVALID_REQUEST)
    lines["grow"] = accepted(10**6)
    lines["put"] = None
    actions = {"SUCCEEDED": "read", "FAILED": "pay", "WAITING": "grow", "CANCELLED": "grow"}
    opened = set()
    for status, count in counts.items():
        for _ in range(count):
            await asyncio.sleep(0.002)
            session = await house.open(ONE_ACTION % actions.get(status, "put"))
            opened.add(session)
            if status in ("SUCCEEDED", "FAILED"):
                await house.ended(session)
            if status == "CANCELLED":
                await house.service.cancel(session, LOCAL)
    return opened


async def walked(house: House, limit: int, **fields: object) -> list[str]:
    found: list[str] = []
    after = ""
    while True:
        page = await house.service.page(LOCAL, after=after, limit=limit, **fields)  # type: ignore[arg-type]
        found += [view.session_id for view in page.sessions]
        assert len(page.sessions) <= limit
        if not page.next:
            return found
        after = page.next


@settings(max_examples=15)
@given(
    st.integers(1, 4),
    st.fixed_dictionaries({s.value: st.integers(0, 2) for s in SessionStatus}),
)
def test_pages_show_every_session_once(limit: int, counts: dict[str, int]) -> None:
    """Statuses were walked one after the other: the newest sessions stood somewhere in between."""

    async def story() -> None:
        house = House()
        opened = await crowd(house, counts)
        await house.open(ONE_ACTION % "read", principal=OTHER)
        found = await walked(house, limit)
        assert found == sorted(opened, reverse=True)

    run(story())


def test_pages_by_status_and_by_workflow() -> None:
    async def story() -> None:
        house = House()
        await crowd(house, {"SUCCEEDED": 3, "FAILED": 2})
        one = await walked(house, 2, status=SessionStatus.FAILED)
        assert len(one) == 2
        reference = (await house.request(ONE_ACTION % "read")).workflow
        name = reference.partition("@")[0]
        assert len(await walked(house, 2, workflow=reference)) == 3
        assert len(await walked(house, 2, workflow=name)) == 3
        assert await walked(house, 2, workflow=name[:-1]) == []

    run(story())


def test_the_newest_comes_first_and_a_page_goes_on_where_the_last_ended() -> None:
    async def story() -> None:
        house = House()
        opened = []
        for action in ("read", "read", "grow", "read"):
            house.targets.connection.lines["grow"] = accepted(60_000)
            await asyncio.sleep(0.002)
            opened.append(await house.open(ONE_ACTION % action))
        page = await house.service.page(LOCAL, limit=2)
        await asyncio.sleep(0.002)
        await house.open(ONE_ACTION % "read")
        await house.service.cancel(opened[2], LOCAL)
        await house.ended(opened[2])
        rest = await house.service.page(LOCAL, limit=9, after=page.next)
        shown = [v.session_id for v in (*page.sessions, *rest.sessions)]
        assert shown == opened[::-1]

    run(story())


def test_a_rare_workflow_among_many_sessions_is_found_by_short_pages(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pages, "LOOKED_AT_MAX", 2)

    async def story() -> None:
        house = House()
        rare = await house.open(ONE_ACTION % "put")
        await crowd(house, {"SUCCEEDED": 5})
        workflow = (await house.request(ONE_ACTION % "put")).workflow
        page = await house.service.page(LOCAL, limit=3, workflow=workflow)
        assert page.sessions == ()
        assert page.next
        assert await walked(house, 3, workflow=workflow) == [rare]

    run(story())


@pytest.mark.parametrize("after", ["x", "%%%%%", "\u00e9"])
def test_a_place_that_no_page_named_is_refused(after: str) -> None:
    async def story() -> None:
        assert await told(House().service.page(LOCAL, after=after)) == "INVALID_REQUEST"

    run(story())


def test_a_place_of_another_tenant_is_a_moment_and_shows_nothing_of_it() -> None:
    async def story() -> None:
        house = House()
        mine = await house.open(ONE_ACTION % "read")
        for _ in range(2):
            await asyncio.sleep(0.002)
            await house.ended(await house.open(ONE_ACTION % "read", principal=OTHER), OTHER)
        theirs = await house.service.page(OTHER, limit=1)
        assert len(theirs.sessions) == 1
        page = await house.service.page(LOCAL, after=theirs.next)
        assert [view.session_id for view in page.sessions] == [mine]

    run(story())


def test_a_limit_of_nothing_shows_one() -> None:
    async def story() -> None:
        house = House()
        await crowd(house, {"SUCCEEDED": 2})
        assert len((await house.service.page(LOCAL, limit=0)).sessions) == 1

    run(story())
