"""The reviewers' desk over a queue and sessions of its own: what is taken, what is refused."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeVar

import msgspec
import pytest

from acp_spec.bindings.errors import refused_by_state
from acp_spec.codec.json import encode
from acp_spec.model.calls import Claim
from acp_spec.model.errors import AcpFailure
from acp_spec.model.session import Feedback, FeedbackAccepted
from acp_spec.model.trajectory import FeedbackRow, Trajectory
from gateway.board.audit import AuditLog
from gateway.rewards.grounding.judging import grounding
from gateway.rewards.grounding.shown import SourceFound
from gateway.rewards.grounding.tests.records import ENDED, attempt, session
from gateway.runtime.principal import Principal
from gateway.runtime.review_queue import ReviewQueue, Stand
from gateway.runtime.review_views import Opening, Score
from gateway.runtime.reviews import Reviews
from gateway.stores.durable import Durable, WriteThrough
from gateway.stores.memory import MemoryStore
from gateway.stores.ports import Store, Table
from gateway.telemetry.masking import DEFAULT

T = TypeVar("T")
ANN = Principal(tenant="", scopes=frozenset({"annotate"}), subject="ann")
ONE = "S" + "0" * 25
CLAIMS = (
    Claim(text="The balance is 9.", sources=("/calls/look/output/balance",)),
    Claim(text="It is 12.50.", sources=("/calls/look/output/balance", "/calls/look/output/none")),
)


@dataclass
class Told:
    """One session that keeps its feedback; `full`: it takes no more."""

    said: list[Feedback] = field(default_factory=list)
    full: bool = False

    def record(self) -> Trajectory:
        rows = tuple(FeedbackRow(feedback=one, received_at=ENDED) for one in self.said)
        call = attempt("look", '{"balance": 12.50}')
        found = session(call, claims=CLAIMS, feedback=rows)
        found = msgspec.structs.replace(found, session_id=ONE)
        return msgspec.structs.replace(found, grounding=grounding(found))

    async def trajectory(self, session_id: str, principal: Principal) -> bytes:
        return encode(self.record())

    async def feedback(
        self, session_id: str, feedback: Feedback, *, principal: Principal
    ) -> FeedbackAccepted:
        await asyncio.sleep(0)  # the disk
        if self.full:
            raise AcpFailure(refused_by_state("TOO_MUCH_FEEDBACK", "no more is taken"))
        if all(one.feedback_id != feedback.feedback_id for one in self.said):
            at = f"2026-11-30T10:00:{len(self.said):02d}.000Z"
            self.said.append(msgspec.structs.replace(feedback, time=at))
        return FeedbackAccepted(feedback_id=feedback.feedback_id, state_version="1.0.1")


class AtItsTick:
    """Rows are written later, all at once, as the gateway's committer does."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._batch = store.batch()

    def put(self, table: Table, key: bytes, value: bytes) -> None:
        self._batch.put(table, key, value)

    def delete(self, table: Table, key: bytes) -> None:
        self._batch.delete(table, key)

    async def synced(self) -> None:
        batch, self._batch = self._batch, self._store.batch()
        self._store.write(batch)


def _desk(told: Told, durable_of: Callable[[Store], Durable] = WriteThrough) -> Reviews:
    store = MemoryStore()
    durable = durable_of(store)
    queue = ReviewQueue(store, durable, secret=lambda: "of this test")
    queue.consider(told.record())
    audit = AuditLog(store, durable, now_ms=lambda: 7)
    return Reviews(queue=queue, sessions=told, audit=audit, masker=DEFAULT, now_ms=lambda: 7)


def _now(work: Awaitable[T]) -> T:
    async def waited() -> T:
        return await work

    return asyncio.run(waited())


def _open_all(desk: Reviews) -> None:
    for claim, sources in ((0, 1), (1, 2)):
        for source in range(sources):
            _now(desk.open(ONE, Opening(claim=claim, source=source), principal=ANN))


def _refusal(work: Awaitable[object]) -> str:
    with pytest.raises(AcpFailure) as refused:
        _now(work)
    return refused.value.error.reason


def test_what_was_put_up_a_moment_ago_is_given_and_listed_before_its_row_is_written() -> None:
    assert _now(_desk(Told(), AtItsTick).next(ANN)).session_id == ONE
    page = _now(_desk(Told(), AtItsTick).page(ANN))
    assert ([one.session_id for one in page.items], page.waiting) == ([ONE], 1)


def test_a_score_is_refused_until_the_last_source_also_one_that_leads_nowhere_is_open() -> None:
    told = Told()
    desk = _desk(told)
    for opening in (Opening(claim=0, source=0), Opening(claim=1, source=0)):
        _now(desk.open(ONE, opening, principal=ANN))
        assert _refusal(desk.score(ONE, Score(score=0), principal=ANN)) == "SOURCES_NOT_OPENED"
    assert told.said == []
    last = _now(desk.open(ONE, Opening(claim=1, source=1), principal=ANN))
    assert (last.unopened, last.claim.sources[1].found) == (0, SourceFound.NOWHERE)
    assert _now(desk.score(ONE, Score(score=0), principal=ANN)).stand is Stand.DONE
    (given,) = told.said
    assert (given.author, given.score, given.sampling_probability) == ("ann", 0.0, 1.0)


def test_the_same_score_again_is_the_same_feedback_and_going_back_to_it_is_a_new_one() -> None:
    told = Told()
    desk = _desk(told)
    _open_all(desk)
    for score in (0.0, 0.0, 1.0, 0.0):
        _now(desk.score(ONE, Score(score=score), principal=ANN))
    assert [one.score for one in told.said] == [0.0, 1.0, 0.0]
    assert _now(desk.view(ONE, ANN)).score == 0.0
    actions = [entry.action for entry in desk.audit.entries()]
    assert actions == ["review.open"] * 3 + ["review.score"] * 3


def test_two_scores_of_one_reviewer_at_once_are_two_and_none_is_lost() -> None:
    told = Told()
    desk = _desk(told)
    _open_all(desk)

    async def both() -> None:
        await asyncio.gather(
            *(desk.score(ONE, Score(score=score), principal=ANN) for score in (0.0, 1.0))
        )

    asyncio.run(both())
    assert sorted(one.score or 0.0 for one in told.said) == [0.0, 1.0]


def test_a_session_that_takes_no_more_feedback_counts_as_unscored() -> None:
    told = Told(full=True)
    desk = _desk(told)
    _open_all(desk)
    assert _refusal(desk.score(ONE, Score(score=1), principal=ANN)) == "TOO_MUCH_FEEDBACK"
    assert not _now(desk.view(ONE, ANN)).scored
    assert _now(desk.next(ANN)).session_id == ONE
    told.full = False
    assert _now(desk.score(ONE, Score(score=1), principal=ANN)).stand is Stand.DONE


def test_opening_twice_is_opening_once() -> None:
    desk = _desk(Told())
    for _ in range(3):
        _now(desk.open(ONE, Opening(claim=0, source=0), principal=ANN))
    assert len(list(desk.audit.entries())) == 1
    assert _now(desk.view(ONE, ANN)).unopened == 2


def test_who_comes_back_for_what_was_skipped_has_it_no_more_skipped() -> None:
    desk = _desk(Told())
    assert _now(desk.next(ANN)).session_id == ONE
    _now(desk.skip(ONE, ANN))
    assert _now(desk.page(ANN)).items[0].skipped
    assert _now(desk.next(ANN)).session_id == ONE
    assert not _now(desk.page(ANN)).items[0].skipped
    assert _now(desk.page(ANN)).current == ONE
