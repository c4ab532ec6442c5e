"""Retention: what had its time is erased as by a deletion, what is newer stays."""

import asyncio
from collections.abc import Sequence

import pytest

from acp_spec.model.enums import FeedbackKind
from acp_spec.model.errors import AcpFailure
from acp_spec.model.session import Feedback
from acp_spec.model.times import rfc3339
from gateway.engine.tests.stage import ONE_ACTION
from gateway.runtime.principal import LOCAL
from gateway.runtime.retention import Retention
from gateway.runtime.tests.house import House
from gateway.runtime.tests.virtual_time import run
from gateway.stores.archive.order import Expiring
from gateway.stores.ports import Table
from gateway.stores.tables import session_row

DAY_S = 86_400


class Over:
    """A house whose sessions have their time."""

    def __init__(self) -> None:
        self.house = House()
        self.told: list[str] = []
        self.retention = Retention(self.house.driver, self.house.erasing, tell=self._tell)

    async def _tell(self, session_ids: Sequence[str]) -> None:
        self.told += session_ids

    async def session(self) -> str:
        session = await self.house.open(ONE_ACTION % "read")
        await self.house.ended(session)
        return session

    async def expire(self, *sessions: str) -> None:
        """A file with these sessions, written before today."""
        today = rfc3339(self.house.clock.now_ms())[:10]
        await self.retention.expire(
            Expiring(file="2023-11-14/0001.jsonl", before=today, session_ids=sessions)
        )

    def has_key(self, session: str) -> bool:
        return self.house.store.get(Table.KEY, session_row(session)) is not None


def test_a_session_whose_time_is_over_is_erased_and_says_that_retention_took_it() -> None:
    async def story() -> None:
        over = Over()
        old = await over.session()
        await asyncio.sleep(3 * DAY_S)
        today = await over.session()
        await over.expire(old, today, "no session of ours")
        assert over.told == [old]
        assert not over.has_key(old)
        assert over.has_key(today)
        with pytest.raises(AcpFailure, match="retention took the session"):
            await over.house.service.trajectory(old, LOCAL)
        assert await over.house.service.trajectory(today, LOCAL)
        assert (await over.house.service.view(old, LOCAL)).erased_at

    run(story())


def test_late_feedback_keeps_a_session() -> None:
    async def story() -> None:
        over = Over()
        session = await over.session()
        await asyncio.sleep(3 * DAY_S)
        await over.house.service.feedback(
            session, Feedback(kind=FeedbackKind.RATING, score=1.0), principal=LOCAL
        )
        await over.expire(session)
        assert over.told == []
        assert over.has_key(session)

    run(story())


def test_what_a_kill_left_half_done_comes_again() -> None:
    """The keys are gone, and nobody told the readers of the log."""

    async def story() -> None:
        over = Over()
        sessions = [await over.session() for _ in range(2)]
        await asyncio.sleep(3 * DAY_S)
        first, second = (over.house.driver.find(one) for one in sessions)
        assert first is not None
        assert second is not None
        over.house.erasing.begin(first, by="archive.keep_days")
        over.house.erasing.begin(second, by="archive.keep_days")
        await over.house.erasing.destroy_keys(sessions[:1])
        await over.expire(*sessions)
        assert over.told == sessions
        assert not any(map(over.has_key, sessions))

    run(story())
