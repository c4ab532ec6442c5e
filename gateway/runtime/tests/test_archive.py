"""When a pass runs, what it is told, and what is kept until it has said that it is done."""

import asyncio
from collections.abc import Callable, Coroutine

import pytest

from acp_spec.model.errors import AcpFailure
from gateway.runtime import archive as archive_module
from gateway.runtime.archive import Archive, ArchiveParts, ArchiveState, ArchiveStatus, Wish
from gateway.stores.archive.order import (
    Checked,
    Dropped,
    Erased,
    Expiring,
    Moved,
    Over,
    Said,
    Trouble,
)
from gateway.stores.durable import WriteThrough
from gateway.stores.memory import MemoryStore


class FakePass:
    """A process that says what it is given to say, and then ends."""

    def __init__(self, says: list[Said], code: int) -> None:
        self._says = list(says)
        self._code = code
        self.agreed = 0
        self.was_killed = False
        self.go_on = asyncio.Event()

    async def said(self) -> Said | None:
        await self.go_on.wait()
        return self._says.pop(0) if self._says else None

    def agree(self) -> None:
        self.agreed += 1

    async def wait(self) -> int:
        return self._code

    def kill(self) -> None:
        self.was_killed = True


class Loft:
    """An archive over fake passes."""

    def __init__(self, *, store: MemoryStore | None = None) -> None:
        self.store = store or MemoryStore()
        self.is_due = False
        self.has_left = True
        self.missing = ""
        self.holds_on = False
        self.says: list[Said] = [Over(files=0)]
        self.code = 0
        self.wishes: list[Wish] = []
        self.passes: list[FakePass] = []
        parts = ArchiveParts(
            launch=self._launch,
            due=lambda: self.is_due,
            has_left=lambda: self.has_left,
            missing=lambda: self.missing,
            every_s=3600.0,
        )
        self.archive = Archive(parts, self.store, durable=WriteThrough(self.store))
        self.expired: list[Expiring] = []
        self.archive.expire = self._expire

    async def _launch(self, wish: Wish) -> FakePass:
        self.wishes.append(wish)
        self.passes.append(FakePass([*self.says], self.code))
        if not self.holds_on:
            self.passes[-1].go_on.set()
        return self.passes[-1]

    async def _expire(self, file: Expiring) -> None:
        self.expired.append(file)

    async def until(self, holds: Callable[[ArchiveStatus], bool]) -> ArchiveStatus:
        for _ in range(1_000_000):
            if holds(self.archive.status):
                return self.archive.status
            await asyncio.sleep(0)
        raise AssertionError("it did not come true")


def run(story: Callable[[], Coroutine[None, None, None]]) -> None:
    asyncio.run(story())


def test_nothing_runs_while_nothing_is_due() -> None:
    async def story() -> None:
        loft = Loft()
        assert loft.archive.status == ArchiveStatus(state=ArchiveState.OFF)
        loft.archive.start()
        for _ in range(50):
            await asyncio.sleep(0)
        assert loft.wishes == []
        assert loft.archive.status == ArchiveStatus(state=ArchiveState.IDLE)
        await loft.archive.close()

    run(story)


def test_a_deletion_starts_a_pass_and_is_kept_until_that_says_it_is_done() -> None:
    async def story() -> None:
        loft = Loft()
        loft.code = 1
        loft.archive.start()
        loft.archive.forget("S1")
        await loft.until(lambda status: status.tries == 1 and status.erasing == 1)
        await loft.archive.close()
        again = Loft(store=loft.store)  # the gateway was killed
        again.says = [Erased(session_ids=("S1",)), Over(files=3)]
        again.archive.start()
        status = await again.until(lambda status: status.passes == 1 and not status.erasing)
        assert again.wishes == [Wish(erase=("S1",))]
        assert (status.files, status.tries) == (3, 0)
        await again.archive.close()

    run(story)


def test_a_gateway_that_was_started_anew_knows_how_many_files_are_there() -> None:
    """The next pass may be a day away; until then gauge and command said 0 of a full archive."""

    async def story() -> None:
        loft = Loft()
        loft.says, loft.is_due = [Over(files=10, waiting=2)], True
        loft.archive.start()
        await loft.until(lambda status: status.passes == 1)
        await loft.archive.close()
        again = Loft(store=loft.store)
        again.archive.start()
        status = again.archive.status
        assert (status.files, status.passes, again.wishes) == (10, 0, [])
        await again.archive.close()

    run(story)


def test_a_deletion_needs_no_pass_where_no_file_ever_left() -> None:
    async def story() -> None:
        loft = Loft()
        loft.has_left = False
        loft.archive.forget("S1")
        assert loft.archive.status.erasing == 0

    run(story)


def test_a_deletion_during_a_pass_is_for_the_next_one_also_if_no_file_had_left() -> None:
    """The pass may have read the line before it was blanked."""

    async def story() -> None:
        loft = Loft()
        loft.has_left, loft.is_due, loft.holds_on = False, True, True
        loft.archive.start()
        await loft.until(lambda status: status.state is ArchiveState.RUNNING)
        loft.archive.forget("S1")
        loft.says = [Erased(session_ids=("S1",))]
        loft.is_due = loft.holds_on = False
        loft.passes[0].go_on.set()
        await loft.until(lambda status: status.passes == 2 and not status.erasing)
        assert loft.wishes == [Wish(), Wish(erase=("S1",))]
        await loft.archive.close()

    run(story)


def test_what_a_pass_tells_is_counted_and_shown() -> None:
    async def story() -> None:
        loft = Loft()
        expiring = Expiring(file="d/1.jsonl", before="d", session_ids=("S1",))
        loft.says = [
            Moved(file="d/2.jsonl", raw_bytes=10, stored_bytes=4, lines=1),
            expiring,
            Dropped(file="d/1.jsonl"),
            Checked(file="d/2.jsonl"),
            Checked(file="d/3.jsonl", healed=True),
            Trouble(what="d/4.jsonl is damaged"),
            Over(files=3, waiting=1),
        ]
        loft.archive.start()
        loft.archive.ask(check=True)
        status = await loft.until(lambda status: status.passes == 1)
        assert loft.wishes == [Wish(check=True)]
        assert loft.expired == [expiring]
        assert loft.passes[0].agreed == 1
        assert status == ArchiveStatus(
            state=ArchiveState.IDLE,
            files=3,
            waiting=1,
            passes=1,
            moved=1,
            moved_bytes=10,
            dropped=1,
            checked=2,
            healed=1,
            troubles=("d/4.jsonl is damaged",),
        )
        await loft.archive.close()

    run(story)


def test_a_pass_that_fails_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive_module, "BACKOFF_FIRST_S", 0.0)

    async def story() -> None:
        loft = Loft()
        loft.code = 1
        loft.archive.start()
        loft.archive.ask(check=True)
        loft.is_due = True
        await loft.until(lambda status: status.tries >= 3)
        loft.code = 0
        await loft.until(lambda status: status.tries == 0)
        assert all(wish.check for wish in loft.wishes), "what was asked for is not forgotten"
        await loft.archive.close()

    run(story)


def test_without_the_extra_sessions_go_on_and_whoever_asks_is_told() -> None:
    async def story() -> None:
        loft = Loft()
        loft.missing, loft.is_due = "pip install it", True
        loft.archive.start()
        loft.archive.forget("S1")
        for _ in range(50):
            await asyncio.sleep(0)
        assert loft.wishes == []
        assert loft.archive.status.erasing == 1
        with pytest.raises(AcpFailure, match="pip install it"):
            loft.archive.ask(check=False)
        await loft.archive.close()

    run(story)


def test_a_pass_under_way_ends_with_the_gateway() -> None:
    async def story() -> None:
        loft = Loft()
        loft.is_due = loft.holds_on = True
        loft.archive.start()
        await loft.until(lambda status: status.state is ArchiveState.RUNNING)
        await loft.archive.close()
        assert loft.passes[0].was_killed

    run(story)
