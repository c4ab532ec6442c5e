"""Reviewing sessions: a person opens what each claim stands on, then says how right it is (R16).

The score is taken from whoever has opened every source, and becomes ordinary feedback with the
probability with which the session was put up. Openings are on disk before they are answered.
A session of another tenant, one that was deleted or never put up, is NOT_FOUND.
"""

import asyncio
import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

import msgspec

from acp_spec.bindings.errors import error, invalid_request, refused_by_state
from acp_spec.model.calls import SettledCall
from acp_spec.model.enums import FeedbackKind
from acp_spec.model.errors import AcpFailure, Reason
from acp_spec.model.grounding import GroundedClaim
from acp_spec.model.payload import Payload, payload
from acp_spec.model.session import Feedback, FeedbackAccepted
from acp_spec.model.times import rfc3339
from acp_spec.model.trajectory import Trajectory
from gateway.board.audit import AuditLog
from gateway.rewards.grounding.judging import CLAIMS_MAX, calls_of
from gateway.rewards.grounding.shown import (
    SourceFound,
    call_of,
    required,
    source_shown,
    sources_of,
)
from gateway.runtime.principal import Principal
from gateway.runtime.review_queue import START, Cursor, Review, ReviewQueue, Seat
from gateway.runtime.review_views import (
    NextReview,
    Opened,
    Opening,
    ReviewItem,
    ReviewPage,
    ReviewView,
    Score,
    Scored,
    ShownClaim,
    ShownSource,
    Unopened,
)
from gateway.stores.masked import masked
from gateway.telemetry.masking import MASK, Masker

PAGE_DEFAULT: Final = 50
PAGE_MAX: Final = 200
SAYS_CHARACTERS_MAX: Final = 300
PAYLOAD_CHARACTERS_MAX: Final = 20_000
"""Of the input and of the output: what a person reads; the session's own page has the rest."""
UNOPENED_TOLD_MAX: Final = 50


class JudgedSessions(Protocol):
    """What a review needs of the sessions."""

    async def trajectory(self, session_id: str, principal: Principal) -> bytes: ...

    async def feedback(
        self, session_id: str, feedback: Feedback, *, principal: Principal
    ) -> FeedbackAccepted: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Reviews:
    """The reviewers' desk of one gateway. A reviewer is a token's subject."""

    queue: ReviewQueue
    sessions: JudgedSessions
    audit: AuditLog
    masker: Masker
    now_ms: Callable[[], int]

    # ---- the queue -------------------------------------------------------------------------------

    async def page(self, principal: Principal, *, after: str = "", limit: int = 0) -> ReviewPage:
        """The queue of the caller's tenant, the next one first."""
        await self.audit.synced()  # the order is read from the store: what came just now as well
        tenant, reviewer = principal.tenant, principal.subject
        tally = self.queue.tally(tenant)
        start = _cursor(after) if after else msgspec.structs.replace(START, turn=tally.handed_out)
        most = min(limit or PAGE_DEFAULT, PAGE_MAX)
        found, end = self.queue.page(tenant, after=start, limit=most)
        return ReviewPage(
            waiting=tally.waiting,
            uniform=tally.waiting_uniform,
            current=self.queue.place(tenant, reviewer),
            items=tuple(self._item(review, reviewer) for review in found),
            next="" if end.is_end else msgspec.json.encode(end).hex(),
        )

    def _item(self, review: Review, reviewer: str) -> ReviewItem:
        seat = self.queue.seat(review.session_id, reviewer)
        held = review.is_held_from(reviewer, at_ms=self.now_ms())
        return ReviewItem(
            session_id=review.session_id,
            workflow=review.workflow,
            ended_at=review.ended_at,
            slice=review.slice,
            sampling_probability=review.sampling_probability,
            unclear=review.unclear,
            why=review.why,
            held_by=review.held_by if held else "",
            held_until=rfc3339(review.held_until_ms) if held else "",
            skipped=seat.skipped_at_ms > 0,
            opened=len(seat.opened),
        )

    async def next(self, principal: Principal) -> NextReview:
        """Where the caller was, or the next one, which others are then not given for a while."""
        await self.audit.synced()  # nobody is told that nothing is left of what was put up just now
        tenant, reviewer = principal.tenant, principal.subject
        at_ms = self.now_ms()
        review = self.queue.next_for(tenant, reviewer, at_ms=at_ms)
        if review is not None:
            seat = self.queue.seat(review.session_id, reviewer)
            if seat.skipped_at_ms:
                seat = msgspec.structs.replace(seat, skipped_at_ms=0)
                self.queue.sit(review.session_id, reviewer, seat=seat)
            self.queue.hold(review, reviewer, at_ms=at_ms)
            await self.audit.synced()
        return NextReview(
            session_id=review.session_id if review else "", waiting=self._waiting(tenant)
        )

    async def skip(self, session_id: str, principal: Principal) -> NextReview:
        """Leave it to others, and to the caller once nothing else is left. What they opened
        stays opened."""
        review, reviewer = self._review(session_id, principal), principal.subject
        seat = self.queue.seat(session_id, reviewer)
        seat = msgspec.structs.replace(seat, skipped_at_ms=self.now_ms())
        self.queue.sit(session_id, reviewer, seat=seat)
        self.queue.let_go(review, reviewer)
        await self.audit.synced()
        return NextReview(session_id="", waiting=self._waiting(principal.tenant))

    # ---- one session -----------------------------------------------------------------------------

    async def view(self, session_id: str, principal: Principal) -> ReviewView:
        """The session as this reviewer may see it now."""
        self._review(session_id, principal)
        trajectory = await self._record(session_id, principal)
        shown = await asyncio.to_thread(self._shown, trajectory)
        review, reviewer = self._review(session_id, principal), principal.subject
        seat = self.queue.seat(session_id, reviewer)
        held = review.is_held_from(reviewer, at_ms=self.now_ms())
        own = _last_of(shown.safe, reviewer)
        return ReviewView(
            session_id=session_id,
            workflow=review.workflow,
            opened_at=trajectory.opened_at,
            ended_at=review.ended_at,
            stand=review.stand,
            slice=review.slice,
            sampling_probability=review.sampling_probability,
            unclear=review.unclear,
            why=review.why,
            input=_payload(shown.safe.input),
            output=_payload(shown.safe.output),
            claims=_claims(shown, seat),
            claims_left_out=max(0, len(trajectory.claims) - CLAIMS_MAX),
            sentences=shown.safe.grounding.sentences if shown.safe.grounding else (),
            unopened=len(_unopened(trajectory, seat)),
            held_by=review.held_by if held else "",
            held_until=rfc3339(review.held_until_ms) if held else "",
            skipped=seat.skipped_at_ms > 0,
            scored=seat.scored_at_ms > 0,
            score=own.score if own else None,
            comment=own.comment if own else "",
        )

    async def open(self, session_id: str, asked: Opening, *, principal: Principal) -> Opened:
        """Record that the caller opens a source, and tell what it says; again changes nothing."""
        self._review(session_id, principal)
        trajectory = await self._record(session_id, principal)
        review, reviewer = self._review(session_id, principal), principal.subject
        _check_source(trajectory, asked)
        seat = self.queue.seat(session_id, reviewer)
        one = (asked.claim, asked.source)
        if one not in seat.opened:
            seat = msgspec.structs.replace(seat, opened=(*seat.opened, one), skipped_at_ms=0)
            self.queue.sit(session_id, reviewer, seat=seat)
            self._tell("review.open", session_id, principal=principal, details=asked)
        self.queue.hold(review, reviewer, at_ms=self.now_ms())
        await self.audit.synced()
        shown = await asyncio.to_thread(self._shown, trajectory)
        claim = _claim(shown, asked.claim, seat=seat)
        return Opened(claim=claim, unopened=len(_unopened(trajectory, seat)))

    async def score(self, session_id: str, given: Score, *, principal: Principal) -> Scored:
        """The caller's judgement. FAILED_PRECONDITION names what they have not opened."""
        self._review(session_id, principal)
        trajectory = await self._record(session_id, principal)
        review, reviewer = self._review(session_id, principal), principal.subject
        seat = self.queue.seat(session_id, reviewer)
        _refuse_unopened(trajectory, seat)
        accepted = await self._written(review, seat, given=given, principal=principal)
        self.queue.consider(await self._record(session_id, principal))
        stands = self._review(session_id, principal)
        self.queue.let_go(stands, reviewer)
        await self.audit.synced()
        return Scored(
            feedback_id=accepted.feedback_id,
            state_version=accepted.state_version,
            sampling_probability=review.sampling_probability,
            stand=stands.stand,
            waiting=self._waiting(principal.tenant),
        )

    async def _written(
        self, review: Review, seat: Seat, *, given: Score, principal: Principal
    ) -> FeedbackAccepted:
        """The judgement as feedback; sent again, the same. Its seat is put in the same batch."""
        session_id, reviewer = review.session_id, principal.subject
        said = _digest(given)
        is_new = seat.said != said
        scored = seat
        if is_new:
            scored = msgspec.structs.replace(
                seat,
                scored_at_ms=self.now_ms(),
                skipped_at_ms=0,
                scores=seat.scores + 1,
                said=said,
            )
            self.queue.sit(session_id, reviewer, seat=scored)
        feedback = Feedback(
            kind=FeedbackKind.VALIDATION,
            score=given.score,
            comment=given.comment,
            author=reviewer,
            feedback_id=_feedback_id(session_id, reviewer, number=scored.scores),
            sampling_probability=review.sampling_probability,
        )
        try:
            accepted = await self.sessions.feedback(session_id, feedback, principal=principal)
        except AcpFailure:
            self.queue.sit(session_id, reviewer, seat=seat)
            raise
        if is_new:
            details = {
                "feedback_id": accepted.feedback_id,
                "score": given.score,
                "slice": review.slice,
                "sampling_probability": review.sampling_probability,
            }
            self._tell("review.score", session_id, principal=principal, details=details)
        return accepted

    # ---- inside ----------------------------------------------------------------------------------

    def _review(self, session_id: str, principal: Principal) -> Review:
        review = self.queue.find(session_id)
        if review is None or review.tenant != principal.tenant:
            message = f"no session {session_id[:64]!r} was put up for review"
            raise AcpFailure(error(Reason.NOT_FOUND, message))
        return review

    async def _record(self, session_id: str, principal: Principal) -> Trajectory:
        text = await self.sessions.trajectory(session_id, principal)
        return msgspec.json.decode(text, type=Trajectory)

    def _waiting(self, tenant: str) -> int:
        return self.queue.tally(tenant).waiting

    def _tell(self, action: str, session_id: str, *, principal: Principal, details: object) -> None:
        self.audit.record(
            action,
            f"session:{session_id}",
            actor=principal.subject,
            tenant=principal.tenant,
            details=details,
        )

    def _shown(self, trajectory: Trajectory) -> "_Shown":
        """Reads every payload there is: in a thread, never on the loop."""
        safe = masked(trajectory, self.masker)
        return _Shown(
            safe=safe, calls=calls_of(trajectory), safe_calls=calls_of(safe), masker=self.masker
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shown:
    """A session as it may be seen, without its secrets, and its calls as they were: a source that
    leads into a secret leads somewhere all the same."""

    safe: Trajectory
    calls: dict[str, SettledCall]
    safe_calls: dict[str, SettledCall]
    masker: Masker


def _claims(shown: _Shown, seat: Seat) -> tuple[ShownClaim, ...]:
    count = min(len(shown.safe.claims), CLAIMS_MAX)
    return tuple(_claim(shown, index, seat=seat) for index in range(count))


def _claim(shown: _Shown, index: int, *, seat: Seat) -> ShownClaim:
    claim = shown.safe.claims[index]
    judged = _judged(shown.safe, index)
    sources = tuple(
        _source(shown, pointer, place=place, is_open=(index, place) in seat.opened)
        for place, pointer in enumerate(sources_of(claim))
    )
    is_open = all(one.opened for one in sources)
    return ShownClaim(
        claim=index,
        text=claim.text,
        value=_payload(claim.value),
        unit=claim.unit,
        derivation=claim.derivation,
        verdict=judged.verdict if judged else None,
        reason=judged.reason if judged and is_open else "",
        sources=sources,
    )


def _source(shown: _Shown, pointer: str, *, place: int, is_open: bool) -> ShownSource:
    call = call_of(pointer, shown.safe_calls)
    told = ShownSource(
        source=place,
        pointer=pointer,
        step=call.step if call else "",
        action=call.action if call else "",
        opened=is_open,
    )
    if not is_open:
        return told
    found = source_shown(pointer, shown.calls)
    safe = source_shown(pointer, shown.safe_calls)
    is_secret = any(map(shown.masker.named, pointer.split("/")[3:]))
    if found.found is not safe.found or is_secret:
        says = MASK if found.found is not SourceFound.NOWHERE else ""
    else:
        says = safe.says[:SAYS_CHARACTERS_MAX]
    return msgspec.structs.replace(told, found=found.found, says=says, characters=found.characters)


def _payload(given: Payload) -> str:
    """JSON text as it was written; of a long one the beginning."""
    text = bytes(given).decode("utf-8", "replace")
    if len(text) <= PAYLOAD_CHARACTERS_MAX:
        return text
    return f"{text[:PAYLOAD_CHARACTERS_MAX]} ... ({len(text)} characters in all)"


def _judged(trajectory: Trajectory, index: int) -> GroundedClaim | None:
    found = trajectory.grounding.claims if trajectory.grounding else ()
    return next((one for one in found if one.claim == index), None)


def _last_of(trajectory: Trajectory, reviewer: str) -> Feedback | None:
    """This reviewer's judgement of the whole session that stands."""
    rows = [
        row.feedback
        for row in trajectory.feedback
        if row.feedback.author == reviewer
        and row.feedback.kind is FeedbackKind.VALIDATION
        and not row.feedback.target.step
        and not row.feedback.target.call_id
    ]
    return max(rows, key=lambda one: one.time, default=None)


def _unopened(trajectory: Trajectory, seat: Seat) -> tuple[tuple[int, int], ...]:
    return tuple(one for one in required(trajectory) if one not in seat.opened)


def _refuse_unopened(trajectory: Trajectory, seat: Seat) -> None:
    left = _unopened(trajectory, seat)
    if not left:
        return
    named = [
        Unopened(claim=claim, source=source, pointer=trajectory.claims[claim].sources[source])
        for claim, source in left[:UNOPENED_TOLD_MAX]
    ]
    message = (
        f"open every source before you score: {len(left)} are left, the first is "
        f"claim {named[0].claim}, source {named[0].source}"
    )
    refusal = refused_by_state("SOURCES_NOT_OPENED", message)
    details = payload(msgspec.json.encode({"unopened": named, "count": len(left)}))
    raise AcpFailure(msgspec.structs.replace(refusal, details=details))


def _check_source(trajectory: Trajectory, asked: Opening) -> None:
    if asked.claim >= min(len(trajectory.claims), CLAIMS_MAX):
        raise invalid_request(f"claim: the session has no claim {asked.claim} to review")
    if asked.source >= len(sources_of(trajectory.claims[asked.claim])):
        raise invalid_request(f"source: claim {asked.claim} has no source {asked.source}")


def _digest(given: Score) -> str:
    return hashlib.sha256(msgspec.json.encode(given)).hexdigest()[:32]


def _feedback_id(session_id: str, reviewer: str, *, number: int) -> str:
    """The same judgement sent again is the same feedback; a changed one is the next."""
    basis = msgspec.json.encode(["review", session_id, reviewer, number])
    return hashlib.sha256(basis).hexdigest()[:24]


def _cursor(after: str) -> Cursor:
    try:
        cursor = msgspec.json.decode(bytes.fromhex(after), type=Cursor)
        bytes.fromhex(cursor.unclear + cursor.uniform)
    except (ValueError, msgspec.DecodeError):
        raise invalid_request("after: not the `next` of an earlier page") from None
    return cursor
