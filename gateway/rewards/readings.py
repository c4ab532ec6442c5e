"""The reading of every comment of a trajectory: a reflector's where one was given, else by rules.

A reflector's reading comes back as feedback of the gateway's own, so that it is in the journal and
the record like all that came from outside. One that failed is NOT_JUDGED with its reason.
"""

from collections.abc import Iterable
from typing import Annotated, Final

import msgspec

from acp_spec.model.enums import FeedbackKind
from acp_spec.model.reward_vector import CommentReading, Correction, Validity
from acp_spec.model.session import Feedback
from acp_spec.model.trajectory import FeedbackRow
from gateway.rewards.comments import CORRECTIONS_MAX, read

OURS: Final = "gateway/"
"""How authors that are the gateway itself begin; their comments are no opinions."""
READER: Final = "gateway/comment-reader/"
"""Author of a reading, followed by the author who was read: each has a row that stands."""
TAGS_MAX: Final = 10
UNREADABLE: Final = "the reading that was kept cannot be read"

_Tag = Annotated[str, msgspec.Meta(pattern=r"^[A-Z][A-Z0-9_]{0,39}$")]
_Text = Annotated[str, msgspec.Meta(max_length=300)]


class ReadCorrection(msgspec.Struct, frozen=True, kw_only=True):
    right: _Text
    wrong: _Text = ""


class ReflectorReading(msgspec.Struct, frozen=True, kw_only=True):
    """What a reflector answers in its `output`; more than this is not taken from it."""

    tags: Annotated[tuple[_Tag, ...], msgspec.Meta(max_length=TAGS_MAX)] = ()
    corrections: Annotated[
        tuple[ReadCorrection, ...], msgspec.Meta(max_length=CORRECTIONS_MAX)
    ] = ()


class KeptReading(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A reading as the comment of the gateway's own feedback. `of`: what was read."""

    of: str
    by: str
    reading: ReflectorReading | None = None
    failed: str = ""


def readings(rows: Iterable[FeedbackRow]) -> tuple[CommentReading, ...]:
    """One for each comment that stands, in the order of `rows`."""
    every = tuple(rows)
    kept = dict(_kept(row.feedback) for row in every if row.feedback.author.startswith(READER))
    return tuple(
        kept.get(row.feedback.feedback_id)
        or read(row.feedback.comment, feedback_id=row.feedback.feedback_id)
        for row in every
        if is_opinion(row.feedback)
    )


def is_opinion(feedback: Feedback) -> bool:
    """Words of somebody other than the gateway."""
    return feedback.comment != "" and not feedback.author.startswith(OURS)


def kept_as(given: Feedback, kept: KeptReading) -> Feedback:
    """The reading of a comment as feedback of the gateway's own, on the same target."""
    return Feedback(
        kind=FeedbackKind.COMMENT,
        comment=msgspec.json.encode(kept).decode(),
        target=given.target,
        author=f"{READER}{given.author}",
        time=given.time,
        feedback_id=f"{READER}{given.feedback_id}",
    )


def _kept(feedback: Feedback) -> tuple[str, CommentReading]:
    of = feedback.feedback_id.removeprefix(READER)
    try:
        kept = msgspec.json.decode(feedback.comment, type=KeptReading)
    except msgspec.DecodeError:
        return of, _not_judged(of, UNREADABLE, by="")
    if kept.reading is None:
        return of, _not_judged(of, kept.failed or UNREADABLE, by=kept.by)
    found = kept.reading
    corrections = (Correction(right=one.right, wrong=one.wrong) for one in found.corrections)
    return of, CommentReading(
        feedback_id=of, tags=found.tags, corrections=tuple(corrections), by=kept.by
    )


def _not_judged(of: str, reason: str, *, by: str) -> CommentReading:
    return CommentReading(feedback_id=of, validity=Validity.NOT_JUDGED, reason=reason, by=by)
