"""The review queue over a store: who waits, in which order, who is given which, over restarts."""

import hypothesis.strategies as st
import msgspec
from hypothesis import settings
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
)

from acp_spec.model.enums import FeedbackKind
from acp_spec.model.grounding import Grounding
from acp_spec.model.grounding import Review as Verdict
from acp_spec.model.trajectory import FeedbackRow, Rewards, Trajectory
from gateway.rewards.raters import spreads
from gateway.rewards.review_draw import ReviewSlice
from gateway.rewards.tests.records import said, trajectory
from gateway.runtime.review_queue import (
    LEASE_MS,
    START,
    Review,
    ReviewQueue,
    Seat,
    Stand,
)
from gateway.stores.durable import WriteThrough
from gateway.stores.memory import MemoryStore
from gateway.stores.ports import Table
from gateway.stores.tables import review_row

REVIEWERS = ("ann", "bo", "cy")
TENANT = "acme"


def session_id(number: int) -> str:
    return f"S{number:025d}"


def _ended(number: int, *, risk: float = 0.0, rows: tuple[FeedbackRow, ...] = ()) -> Trajectory:
    """A session; with a risk it is one that a person must look at until somebody has."""
    reviewed = any(row.feedback.kind is FeedbackKind.VALIDATION for row in rows)
    grounding = None
    if risk:
        stands = Verdict.DONE if reviewed else Verdict.WAITING
        grounding = Grounding(risk=risk, review=stands, review_probability=1.0)
    return trajectory(
        session_id=session_id(number),
        tenant=TENANT,
        grounding=grounding,
        feedback=rows,
        rewards=Rewards(raters=spreads(rows)),
    )


def _queue(store: MemoryStore) -> ReviewQueue:
    return ReviewQueue(store, WriteThrough(store), secret=lambda: "of this test")


def _everything(queue: ReviewQueue, *, limit: int) -> list[Review]:
    """All pages."""
    found, cursor = queue.page(TENANT, after=START, limit=limit)
    while not cursor.is_end:
        more, cursor = queue.page(TENANT, after=cursor, limit=limit)
        found += more
    return found


class Desk(RuleBasedStateMachine):
    """Sessions end, are judged and deleted, three people review, the gateway restarts."""

    def __init__(self) -> None:
        super().__init__()
        self.store = MemoryStore()
        self.queue = _queue(self.store)
        self.now_ms = 1_000
        self.count = 0
        self.said: dict[int, tuple[FeedbackRow, ...]] = {}
        self.risk: dict[int, float] = {}
        self.opened: dict[tuple[int, str], set[tuple[int, int]]] = {}

    sessions: Bundle[int] = Bundle("sessions")

    def _consider(self, number: int) -> None:
        if number in self.said:
            self.queue.consider(_ended(number, risk=self.risk[number], rows=self.said[number]))

    @rule(target=sessions, risk=st.sampled_from((0.0, 0.0, 0.3, 0.9)))
    def a_session_ends(self, risk: float) -> int:
        self.count += 1
        self.said[self.count], self.risk[self.count] = (), risk
        self._consider(self.count)
        return self.count

    @rule(number=sessions)
    def its_record_is_delivered_again(self, number: int) -> None:
        before = self.queue.tally(TENANT)
        stood = self.queue.find(session_id(number))
        self._consider(number)
        assert self.queue.tally(TENANT) == before
        assert self.queue.find(session_id(number)) == stood

    @rule(number=sessions, reviewer=st.sampled_from(REVIEWERS), place=st.integers(0, 3))
    def a_source_is_opened(self, number: int, reviewer: str, place: int) -> None:
        review = self.queue.find(session_id(number))
        if review is None:
            return
        seat = self.queue.seat(review.session_id, reviewer)
        if (0, place) not in seat.opened:
            seat = msgspec.structs.replace(seat, opened=(*seat.opened, (0, place)), skipped_at_ms=0)
            self.queue.sit(review.session_id, reviewer, seat=seat)
        self.queue.hold(review, reviewer, at_ms=self.now_ms)
        self.opened.setdefault((number, reviewer), set()).add((0, place))

    @rule(number=sessions, reviewer=st.sampled_from(REVIEWERS), score=st.sampled_from((0.0, 1.0)))
    def a_score_is_given(self, number: int, reviewer: str, score: float) -> None:
        review = self.queue.find(session_id(number))
        if review is None:
            return
        others = tuple(row for row in self.said[number] if row.feedback.author != reviewer)
        row = said(
            score,
            FeedbackKind.VALIDATION,
            author=reviewer,
            sampling_probability=review.sampling_probability,
        )
        self.said[number] = (*others, row)
        seat = self.queue.seat(review.session_id, reviewer)
        seat = msgspec.structs.replace(seat, scored_at_ms=self.now_ms, skipped_at_ms=0)
        self.queue.sit(review.session_id, reviewer, seat=seat)
        self._consider(number)
        again = self.queue.find(review.session_id)
        assert again is not None
        self.queue.let_go(again, reviewer)

    @rule(number=sessions, reviewer=st.sampled_from(REVIEWERS))
    def it_is_skipped(self, number: int, reviewer: str) -> None:
        review = self.queue.find(session_id(number))
        if review is not None:
            seat = self.queue.seat(review.session_id, reviewer)
            seat = msgspec.structs.replace(seat, skipped_at_ms=self.now_ms)
            self.queue.sit(review.session_id, reviewer, seat=seat)
            self.queue.let_go(review, reviewer)

    @rule(reviewer=st.sampled_from(REVIEWERS))
    def the_next_one_is_asked_for(self, reviewer: str) -> None:
        place = self.queue.place(TENANT, reviewer)
        review = self.queue.next_for(TENANT, reviewer, at_ms=self.now_ms)
        free = self._free_for(reviewer)
        if place:
            assert review is not None
            assert review.session_id == place, "a reviewer goes on where they were"
        elif review is None:
            assert not free
        else:
            assert review.session_id in free
            fresh = {one for one in free if not self.queue.seat(one, reviewer).skipped_at_ms}
            assert not fresh or review.session_id in fresh, "what was skipped comes last"
        if review is not None:
            self.queue.hold(review, reviewer, at_ms=self.now_ms)

    def _free_for(self, reviewer: str) -> set[str]:
        return {
            one.session_id
            for one in _everything(self.queue, limit=7)
            if not one.is_held_from(reviewer, at_ms=self.now_ms)
            and not self.queue.seat(one.session_id, reviewer).scored_at_ms
        }

    @rule()
    def time_passes(self) -> None:
        self.now_ms += LEASE_MS

    @rule(number=sessions)
    def it_is_deleted(self, number: int) -> None:
        self.queue.forget_session(session_id(number))
        self.said.pop(number, None)
        for reviewer in REVIEWERS:
            self.opened.pop((number, reviewer), None)
            assert self.queue.seat(session_id(number), reviewer) == Seat()
        assert self.queue.find(session_id(number)) is None

    @precondition(lambda self: self.count > 0)
    @rule()
    def the_gateway_restarts(self) -> None:
        before = [one.session_id for one in _everything(self.queue, limit=5)]
        self.queue = _queue(self.store)
        assert [one.session_id for one in _everything(self.queue, limit=5)] == before

    @invariant()
    def the_queue_is_what_waits_in_order_and_its_length_is_told(self) -> None:
        found = [self.queue.find(session_id(number)) for number in self.said]
        waiting = [one for one in found if one is not None and one.stand is Stand.WAITING]
        listed = _everything(self.queue, limit=3)
        assert {one.session_id for one in listed} == {one.session_id for one in waiting}
        assert len(listed) == len(waiting)
        tally = self.queue.tally(TENANT)
        for slice_, told in (
            (ReviewSlice.UNIFORM, tally.waiting_uniform),
            (ReviewSlice.UNCLEAR, tally.waiting_unclear),
        ):
            orders = [one.order for one in listed if one.slice is slice_]
            assert orders == sorted(orders)
            assert told == len(orders)

    @invariant()
    def whoever_must_be_looked_at_waits_until_somebody_has(self) -> None:
        for number, rows in self.said.items():
            review = self.queue.find(session_id(number))
            if self.risk[number] and not rows:
                assert review is not None
                assert review.stand is Stand.WAITING
            if review is not None:
                assert 0 < review.sampling_probability <= 1

    @invariant()
    def nobody_loses_what_they_opened(self) -> None:
        for (number, reviewer), places in self.opened.items():
            assert set(self.queue.seat(session_id(number), reviewer).opened) == places


Desk.TestCase.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
TestDesk = Desk.TestCase


def test_the_most_unclear_is_first_and_every_fifth_is_of_the_fair_sample() -> None:
    queue = _queue(MemoryStore())
    for number in range(400):
        queue.consider(_ended(number, risk=(number % 100 + 1) / 100))
    listed = _everything(queue, limit=50)
    assert len(listed) == 400
    uniform = [one for one in listed if one.slice is ReviewSlice.UNIFORM]
    assert 60 <= len(uniform) <= 100
    first = [one.slice for one in listed[:10]]
    assert [first.index(ReviewSlice.UNIFORM), first.count(ReviewSlice.UNIFORM)] == [4, 2]
    unclear = [one.unclear for one in listed if one.slice is ReviewSlice.UNCLEAR]
    assert unclear == sorted(unclear, reverse=True)


def test_of_those_given_out_every_fifth_is_of_the_fair_sample_however_many_people_ask() -> None:
    queue, given = _queue(MemoryStore()), []
    for number in range(200):
        queue.consider(_ended(number, risk=0.5))
    for number in range(20):
        review = queue.next_for(TENANT, f"reviewer {number}", at_ms=0)
        assert review is not None
        queue.hold(review, f"reviewer {number}", at_ms=0)
        given.append(review)
    assert len({one.session_id for one in given}) == 20, "nobody was given another's"
    assert sum(one.slice is ReviewSlice.UNIFORM for one in given) == 4


def test_one_that_two_reviewers_contradict_in_comes_back_for_a_third() -> None:
    queue = _queue(MemoryStore())
    queue.consider(_ended(1, risk=0.9))
    review = FeedbackKind.VALIDATION
    one = said(1.0, review, sampling_probability=1.0)
    queue.consider(_ended(1, risk=0.9, rows=(one,)))
    assert _everything(queue, limit=9) == []
    two = (one, said(0.0, review, author="bo", sampling_probability=1.0))
    queue.consider(_ended(1, risk=0.9, rows=two))
    (back,) = _everything(queue, limit=9)
    assert back.unclear > 1, "and the raters' gap is in what it is put up for"
    three = (*two, said(0.0, review, author="cy", sampling_probability=1.0))
    queue.consider(_ended(1, risk=0.9, rows=three))
    assert _everything(queue, limit=9) == []


def test_a_row_that_cannot_be_read_costs_no_session_its_record() -> None:
    store = MemoryStore()
    queue = _queue(store)
    queue.consider(_ended(1, risk=0.9))
    batch = store.batch()
    batch.put(Table.INDEX, review_row(session_id(1)), b"{spoilt")
    store.write(batch)
    queue = _queue(store)
    assert queue.find(session_id(1)) is None
    queue.consider(_ended(1, risk=0.9))
    assert len(_everything(queue, limit=9)) == 1


def test_a_session_of_another_tenant_is_in_another_queue() -> None:
    queue = _queue(MemoryStore())
    queue.consider(msgspec.structs.replace(_ended(1, risk=0.9), tenant="other"))
    assert _everything(queue, limit=9) == []
    assert queue.next_for(TENANT, "ann", at_ms=0) is None
    assert queue.next_for("other", "ann", at_ms=0) is not None


def test_a_running_session_is_not_looked_at() -> None:
    queue = _queue(MemoryStore())
    queue.consider(msgspec.structs.replace(_ended(1, risk=0.9), ended_at=""))
    assert queue.find(session_id(1)) is None
