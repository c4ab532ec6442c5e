"""Feedback as it comes in: what it must name, what is filled in, and how much of it is taken.

Its key is (target, kind, author) within the session: of one key the last by the author's time
stands, the others stay in the journal. Sending the same again changes nothing.
"""

import hashlib
from collections.abc import Sequence
from typing import Final

import msgspec

from acp_spec.bindings.errors import error, invalid_request, refused_by_state
from acp_spec.codec.json import encode
from acp_spec.model.errors import AcpError, AcpFailure, Reason
from acp_spec.model.session import Feedback
from acp_spec.model.times import parse_rfc3339, rfc3339
from gateway.engine.rejections import OUR_FEEDBACK
from gateway.engine.states import FeedbackState, SessionState
from gateway.runtime.principal import TOKEN_SUBJECT, Principal

SKEW_MS: Final = 5 * 60_000
"""How far in the future an author's clock may be when feedback comes in."""
FEEDBACK_MAX: Final = 1_000
"""Judgements of one session: each makes its record anew, and the record holds all that stand."""

SCORE_MAX: Final = 1e12
"""Of either sign. No scale goes so far, and sums of what does would be no numbers any more."""
SAMPLING_MIN: Final = 1e-12
"""A judgement counts by the inverse, and one of nothing would be all there is."""


class Judged(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What came of one judgement of many: taken, by its id, or refused with an error."""

    session_id: str
    feedback_id: str = ""
    state_version: str = ""
    error: AcpError | None = None


class JudgedMany(msgspec.Struct, frozen=True, kw_only=True):
    """One result for each judgement, in the order they came."""

    taken: int
    refused: int
    results: tuple[Judged, ...]


def takes(log: Sequence[FeedbackState], feedback_id: str) -> bool:
    """False: it was taken before. Raises AcpFailure when the session was judged too often."""
    if any(entry.given.feedback_id == feedback_id for entry in log):
        return False
    if len(log) >= FEEDBACK_MAX:
        message = f"the session has {len(log)} judgements, more are not taken: judge other sessions"
        raise AcpFailure(refused_by_state("TOO_MUCH_FEEDBACK", message))
    return True


def complete(state: SessionState, feedback: Feedback, *, by: Principal, at_ms: int) -> Feedback:
    """The feedback with author, time and id filled in. INVALID_REQUEST names what is wrong,
    PERMISSION_DENIED that its author is a token which the caller did not show."""
    _check_target(state, feedback)
    if feedback.score is None and not feedback.comment:
        raise invalid_request("give a `score` or a `comment`")
    if feedback.score is not None and abs(feedback.score) > SCORE_MAX:
        raise invalid_request(f"score: {feedback.score:g} is beyond {SCORE_MAX:g}: mind the unit")
    _check_sampling(feedback.sampling_probability)
    time_ms = parse_rfc3339(feedback.time) if feedback.time else at_ms
    if time_ms is None:
        message = f"time: {feedback.time!r} is not RFC 3339, such as 2026-11-29T15:00:00Z"
        raise invalid_request(message)
    author = feedback.author or by.subject
    _check_author(author, by=by)
    said = msgspec.structs.replace(feedback, author=author, time=rfc3339(time_ms))
    # The author's clock may be wrong; a far future would win over every later judgement for ever.
    kept = rfc3339(min(time_ms, at_ms + SKEW_MS))
    if said.feedback_id:
        return msgspec.structs.replace(said, time=kept)
    basis = encode(said) if feedback.time else encode(said) + str(state.sequence).encode()
    digest = hashlib.sha256(state.session_id.encode() + basis).hexdigest()[:24]
    return msgspec.structs.replace(said, time=kept, feedback_id=digest)


def recorder_of(feedback: Feedback, *, by: Principal) -> str:
    """Who brought it, where that is known and its author is somebody else; else empty."""
    return by.subject if by.is_proven and by.subject != feedback.author else ""


def _check_author(author: str, *, by: Principal) -> None:
    """A system may say what its users said, by their names; nobody speaks as another's token."""
    if author.startswith(OUR_FEEDBACK):
        message = f"author: {OUR_FEEDBACK!r} begins the names of the gateway's own checks"
        raise invalid_request(message)
    if author.startswith(TOKEN_SUBJECT) and author != by.subject:
        message = f"author: {author!r} is who shows that token: leave `author` out, or give a name"
        raise AcpFailure(error(Reason.PERMISSION_DENIED, message))


def _check_target(state: SessionState, feedback: Feedback) -> None:
    target = feedback.target
    if target.call_id and target.call_id not in state.calls:
        raise AcpFailure(error(Reason.NOT_FOUND, f"the session has no call {target.call_id!r}"))
    if target.step and target.step not in state.steps and target.step not in state.manual:
        raise AcpFailure(error(Reason.NOT_FOUND, f"the session has no step {target.step!r}"))
    if target.loop > state.loop:
        message = f"target.loop: {target.loop}; the session has come to loop {state.loop}"
        raise AcpFailure(error(Reason.NOT_FOUND, message))


def _check_sampling(probability: float | None) -> None:
    if probability is not None and not SAMPLING_MIN <= probability <= 1:
        message = f"sampling_probability: {probability!r} is not from {SAMPLING_MIN:g} to 1"
        raise invalid_request(f"{message}; leave it out where nobody drew the target")
