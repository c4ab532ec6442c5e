"""The sessions that wait for a person, in order, on disk: what is put up, by whom it is held, done.

Every session is looked at once when it ends and may be put up; it leaves when it was reviewed, and
comes back when two reviewers contradict. Rows hold numbers and ids, never a word of the session.
Nothing is held in memory but the last rows touched: the queue may be as long as the disk allows.
"""

from collections.abc import Callable, Iterator
from enum import Enum, auto
from functools import cache
from typing import Final, TypeVar

import msgspec

from acp_spec.model.bounds import Count
from acp_spec.model.enums import Word
from acp_spec.model.ids import unit_interval
from acp_spec.model.trajectory import Trajectory
from gateway.rewards.review_draw import ReviewSlice
from gateway.rewards.review_stream import Tally, counted, is_settled, must_look, put_up, turn_of
from gateway.rewards.uncertainty import UNCLEAR_MAX, Why, doubts, unclear
from gateway.stores.durable import Durable
from gateway.stores.fresh_rows import FreshRows
from gateway.stores.ports import Store, Table
from gateway.stores.tables import (
    listed_session,
    review_place_row,
    review_queue,
    review_queue_row,
    review_row,
    review_tally_row,
    reviewer_row,
)
from gateway.telemetry.logs import get_log

T = TypeVar("T")
log = get_log("gateway.reviews")

LEASE_MS: Final = 15 * 60_000
"""Nobody reads one session longer without opening a source; then others are given it too."""
LOOKED_AT_MAX: Final = 2_000
"""Waiting sessions that one look passes over (held, skipped, judged), some 20 ms."""
NOT_PUT_UP: Final = b""


class Stand(Word):
    """How a review stands."""

    WAITING = "WAITING"
    DONE = "DONE"


class Review(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One session that was put up. `order`: its place among those of its slice."""

    session_id: str
    tenant: str
    workflow: str = ""
    ended_at: str = ""
    stand: Stand = Stand.WAITING
    slice: ReviewSlice
    sampling_probability: float
    order: float
    unclear: float = 0.0
    why: tuple[Why, ...] = ()
    held_by: str = ""
    held_until_ms: Count = 0

    @property
    def row(self) -> bytes:
        return review_queue_row(
            self.tenant, self.slice.value, order=self.order, session_id=self.session_id
        )

    def is_held_from(self, reviewer: str, *, at_ms: int) -> bool:
        """Somebody else is at it."""
        return self.held_by not in ("", reviewer) and at_ms < self.held_until_ms


class Seat(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one reviewer has done with one session. `said`: digest of the last score and words."""

    opened: tuple[tuple[int, int], ...] = ()
    skipped_at_ms: Count = 0
    scored_at_ms: Count = 0
    scores: Count = 0
    said: str = ""


class _Turn(Enum):
    """Whether a waiting session may be given to a reviewer."""

    GIVE = auto()
    SKIPPED = auto()
    PASS = auto()


class ReviewQueue:
    """The reviews of one gateway; its only writer. `secret` keeps the draw from being foreseen."""

    def __init__(self, store: Store, durable: Durable, *, secret: Callable[[], str]) -> None:
        self._store = store
        self._rows = FreshRows(store, durable, table=Table.INDEX)
        self._secret = cache(secret)

    # ---- sessions come and go --------------------------------------------------------------------

    def consider(self, trajectory: Trajectory) -> None:
        """A record was made: at the end of a session, and after each later judgement of it."""
        if not trajectory.ended_at:
            return
        session_id = trajectory.session_id
        if self._rows.get(review_row(session_id)) == NOT_PUT_UP:
            if must_look(trajectory):
                self._put_up(trajectory, ReviewSlice.UNCLEAR, probability=1.0)
            return
        review = self.find(session_id)
        if review is None:
            self._first_look(trajectory)
        elif review.stand is Stand.WAITING and is_settled(trajectory, review.slice):
            self._done(review)
        elif review.stand is Stand.DONE and must_look(trajectory):
            self._put_up(trajectory, review.slice, probability=review.sampling_probability)

    def _first_look(self, trajectory: Trajectory) -> None:
        tenant, session_id = trajectory.tenant, trajectory.session_id
        tally = self.tally(tenant)
        chance = unit_interval("review", self._secret(), session_id)
        found = put_up(trajectory, chance=chance, tally=tally)
        self._count(tenant, counted(tally, found))
        if found is None:
            self._rows.put(review_row(session_id), NOT_PUT_UP)
        else:
            self._put_up(trajectory, found.slice, probability=found.sampling_probability)

    def _put_up(self, trajectory: Trajectory, slice_: ReviewSlice, *, probability: float) -> None:
        why = doubts(trajectory)
        order = UNCLEAR_MAX - unclear(why)
        if slice_ is ReviewSlice.UNIFORM:
            order = unit_interval("review order", self._secret(), trajectory.session_id)
        review = Review(
            session_id=trajectory.session_id,
            tenant=trajectory.tenant,
            workflow=trajectory.workflow,
            ended_at=trajectory.ended_at,
            slice=slice_,
            sampling_probability=probability,
            order=order,
            unclear=unclear(why),
            why=why,
        )
        self._keep(review)
        self._rows.put(review.row, b"")
        self._wait(review, more=1)

    def _done(self, review: Review) -> None:
        self._keep(msgspec.structs.replace(review, stand=Stand.DONE, held_by="", held_until_ms=0))
        self._rows.delete(review.row)
        self._wait(review, more=-1)

    def forget_session(self, session_id: str) -> None:
        """A deleted session is in no queue, and nobody has seen anything of it."""
        review = self.find(session_id)
        if review is not None and review.stand is Stand.WAITING:
            self._rows.delete(review.row)
            self._wait(review, more=-1)
        for key, _ in list(self._store.scan(Table.INDEX, reviewer_row(session_id))):
            self._rows.delete(key)
        self._rows.delete(review_row(session_id))

    # ---- who looks -------------------------------------------------------------------------------

    def find(self, session_id: str) -> Review | None:
        """How a session's review stands; None where it was never put up."""
        if not session_id:
            return None
        return self._read(review_row(session_id), Review)

    def tally(self, tenant: str) -> Tally:
        return self._read(review_tally_row(tenant), Tally) or Tally()

    def seat(self, session_id: str, reviewer: str) -> Seat:
        """What this reviewer has done with it."""
        return self._read(reviewer_row(session_id, reviewer), Seat) or Seat()

    def sit(self, session_id: str, reviewer: str, *, seat: Seat) -> None:
        self._rows.put(reviewer_row(session_id, reviewer), msgspec.json.encode(seat))

    def place(self, tenant: str, reviewer: str) -> str:
        """The session that this reviewer is at; empty when they are at none that still waits."""
        row = self._rows.get(review_place_row(tenant, reviewer))
        session_id = row.decode() if row else ""
        review = self.find(session_id)
        if review is None or review.stand is not Stand.WAITING:
            return ""
        seat = self.seat(session_id, reviewer)
        return "" if seat.scored_at_ms or seat.skipped_at_ms else session_id

    def hold(self, review: Review, reviewer: str, *, at_ms: int) -> None:
        """This reviewer is at it: others are given other sessions, if nobody else was first."""
        if review.stand is not Stand.WAITING:
            return
        self._rows.put(review_place_row(review.tenant, reviewer), review.session_id.encode())
        if not review.is_held_from(reviewer, at_ms=at_ms):
            until_ms = at_ms + LEASE_MS
            self._keep(msgspec.structs.replace(review, held_by=reviewer, held_until_ms=until_ms))

    def let_go(self, review: Review, reviewer: str) -> None:
        """This reviewer leaves it to whoever comes next."""
        self._rows.delete(review_place_row(review.tenant, reviewer))
        if review.held_by == reviewer:
            self._keep(msgspec.structs.replace(review, held_by="", held_until_ms=0))

    def next_for(self, tenant: str, reviewer: str, *, at_ms: int) -> Review | None:
        """Where they were; else the next that nobody else is at; what they skipped comes last."""
        here = self.find(self.place(tenant, reviewer))
        if here is not None:
            return here
        tally = self.tally(tenant)
        skipped: Review | None = None
        for looked_at, review in enumerate(self._in_order(tenant, turn=tally.handed_out)):
            if looked_at == LOOKED_AT_MAX:
                break
            turn = self._turn(review, reviewer, at_ms=at_ms)
            if turn is _Turn.GIVE:
                handed_out = tally.handed_out + 1
                self._count(tenant, msgspec.structs.replace(tally, handed_out=handed_out))
                return review
            if turn is _Turn.SKIPPED and skipped is None:
                skipped = review
        return skipped

    def _turn(self, review: Review, reviewer: str, *, at_ms: int) -> _Turn:
        if review.stand is not Stand.WAITING or review.is_held_from(reviewer, at_ms=at_ms):
            return _Turn.PASS
        seat = self.seat(review.session_id, reviewer)
        if seat.scored_at_ms:
            return _Turn.PASS  # who contradicted another does not settle it
        return _Turn.SKIPPED if seat.skipped_at_ms else _Turn.GIVE

    # ---- the order -------------------------------------------------------------------------------

    def page(self, tenant: str, *, after: "Cursor", limit: int) -> tuple[list[Review], "Cursor"]:
        """Up to `limit` of those that wait, beyond `after`, and where to go on (`is_end`: nowhere).

        Four by their uncertainty, then one of the uniform slice; where one of them has ended, the
        other goes on alone.
        """
        found: list[Review] = []
        cursor = after
        for review in self._in_order(tenant, turn=after.turn, after=after):
            if len(found) == limit:
                return found, cursor
            found.append(review)
            cursor = cursor.beyond(review)
        return found, END

    def _in_order(
        self, tenant: str, *, turn: int, after: "Cursor | None" = None
    ) -> Iterator[Review]:
        lanes = {
            one: self._lane(tenant, one, after=after.of(one) if after else b"")
            for one in ReviewSlice
        }
        heads = {one: next(lane, None) for one, lane in lanes.items()}
        while any(heads.values()):
            wanted = turn_of(turn)
            review = heads[wanted] or heads[_other(wanted)]
            assert review is not None, "one of the two heads stands"
            heads[review.slice] = next(lanes[review.slice], None)
            turn += 1
            yield review

    def _lane(self, tenant: str, slice_: ReviewSlice, *, after: bytes) -> Iterator[Review]:
        prefix = review_queue(tenant, slice_.value)
        beyond = prefix + after if after else b""
        for key, _ in self._store.scan(Table.INDEX, prefix, after=beyond):
            review = self.find(listed_session(key))
            # A row that was settled or moved in this tick is still in the store.
            if review is not None and review.stand is Stand.WAITING and review.row == key:
                yield review

    # ---- rows ------------------------------------------------------------------------------------

    def _read(self, key: bytes, kind: type[T]) -> T | None:
        """A row; one that cannot be read is told, and made anew: no session is lost by it."""
        row = self._rows.get(key)
        if not row:
            return None
        try:
            return msgspec.json.decode(row, type=kind)
        except msgspec.DecodeError as problem:
            log.error("review_row_unreadable", cause=problem, key=key.decode("utf-8", "replace"))
            return None

    def _keep(self, review: Review) -> None:
        self._rows.put(review_row(review.session_id), msgspec.json.encode(review))

    def _count(self, tenant: str, tally: Tally) -> None:
        self._rows.put(review_tally_row(tenant), msgspec.json.encode(tally))

    def _wait(self, review: Review, *, more: int) -> None:
        tally = self.tally(review.tenant)
        if review.slice is ReviewSlice.UNIFORM:
            changed = {"waiting_uniform": tally.waiting_uniform + more}
        else:
            changed = {"waiting_unclear": tally.waiting_unclear + more}
        self._count(review.tenant, msgspec.structs.replace(tally, **changed))


class Cursor(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where a page ended: the last key of each slice (behind its prefix, as hex) and the turn."""

    unclear: str = ""
    uniform: str = ""
    turn: Count = 0
    is_end: bool = False

    def of(self, slice_: ReviewSlice) -> bytes:
        return bytes.fromhex(self.uniform if slice_ is ReviewSlice.UNIFORM else self.unclear)

    def beyond(self, review: Review) -> "Cursor":
        prefix = review_queue(review.tenant, review.slice.value)
        last = review.row[len(prefix) :].hex()
        if review.slice is ReviewSlice.UNIFORM:
            return msgspec.structs.replace(self, uniform=last, turn=self.turn + 1)
        return msgspec.structs.replace(self, unclear=last, turn=self.turn + 1)


START: Final = Cursor()
END: Final = Cursor(is_end=True)


def _other(one: ReviewSlice) -> ReviewSlice:
    return ReviewSlice.UNCLEAR if one is ReviewSlice.UNIFORM else ReviewSlice.UNIFORM
