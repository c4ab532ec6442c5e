"""Both stores keep the same promise, and the rule over a record has no gap."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acp_spec.sdk.outcome_file import FileOutcomes
from acp_spec.sdk.outcomes import (
    Judgement,
    MemoryOutcomes,
    OutcomeStore,
    OutcomesUnavailable,
    Record,
    Stage,
    judge,
)

RECORD = Record(
    call_id="c", digest="d", attempt=2, stage=Stage.SETTLED, expires_at_ms=100.0, outcome=b"x"
)
Open = Callable[[], OutcomeStore]


@pytest.fixture(params=["memory", "file"])
def open_store(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    def make() -> OutcomeStore:
        if request.param == "memory":
            return MemoryOutcomes()
        return FileOutcomes(tmp_path / "deep" / "outcomes.db")

    return make


def test_what_was_put_is_found_and_the_last_put_stands(open_store: Open) -> None:
    async def story() -> None:
        store = open_store()
        assert await store.get("c") is None
        for record in (RECORD, replace(RECORD, attempt=3, stage=Stage.FREE, outcome=b"")):
            await store.put(record)
            assert await store.get("c") == record
        assert await store.has_room(0.0)
        store.close()

    asyncio.run(story())


def test_a_full_memory_makes_room_only_by_what_expired() -> None:
    async def story() -> None:
        store = MemoryOutcomes(outcomes_max=2)
        await store.put(RECORD)
        await store.put(replace(RECORD, call_id="later", expires_at_ms=200.0))
        assert not await store.has_room(99.0)
        assert await store.has_room(100.0)
        assert await store.get("c") is None
        assert await store.get("later") is not None

    asyncio.run(story())


def test_a_file_forgets_what_expired(tmp_path: Path) -> None:
    async def story() -> None:
        store = FileOutcomes(tmp_path / "outcomes.db")
        await store.put(RECORD)
        assert await store.has_room(60_001.0)
        assert await store.get("c") is None
        store.close()

    asyncio.run(story())


def test_a_file_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    async def story() -> None:
        store = FileOutcomes(tmp_path / "outcomes.db")
        await store._run(lambda: store._connection.execute("PRAGMA query_only = ON"))
        with pytest.raises(OutcomesUnavailable):
            await store.put(RECORD)
        store.close()

    asyncio.run(story())


@given(
    record=st.none()
    | st.builds(
        Record,
        call_id=st.just("c"),
        digest=st.sampled_from("de"),
        attempt=st.integers(1, 3),
        stage=st.sampled_from(Stage),
        expires_at_ms=st.sampled_from([50.0, 150.0]),
        outcome=st.just(b"x"),
    ),
    digest=st.sampled_from("de"),
    attempt=st.integers(1, 3),
)
def test_a_call_runs_only_when_it_has_not_run_or_has_done_nothing(
    record: Record | None, digest: str, attempt: int
) -> None:
    judged = judge(record, digest=digest, attempt=attempt, now_ms=100.0)
    fresh = record is None or record.expires_at_ms <= 100.0
    may_run = fresh or (
        record is not None
        and record.digest == digest
        and record.attempt <= attempt
        and record.stage is Stage.FREE
    )
    assert (judged is Judgement.RUN) == may_run
