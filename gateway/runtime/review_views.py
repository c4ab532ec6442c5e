"""What a reviewer is shown and sends: the queue, a session with its claims, openings, scores.

A source's words, and what the guard made of them, are told only to a reviewer who opened it: a
verdict that explains itself is agreed with before anybody has looked.
"""

from typing import Annotated, Final

import msgspec

from acp_spec.model.bounds import Count
from acp_spec.model.grounding import GroundingVerdict, UnsourcedSentence
from gateway.rewards.grounding.shown import SourceFound
from gateway.rewards.review_draw import ReviewSlice
from gateway.rewards.uncertainty import Why
from gateway.runtime.review_queue import Stand

COMMENT_CHARACTERS_MAX: Final = 10_000


class ReviewItem(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A session that waits. `why`: the parts of `unclear`, the largest first. `held_by`: another
    reviewer is at it, until then. `skipped`: the caller left it for later."""

    session_id: str
    workflow: str
    ended_at: str
    slice: ReviewSlice
    sampling_probability: float
    unclear: float
    why: tuple[Why, ...] = ()
    held_by: str = ""
    held_until: str = ""
    skipped: bool = False
    opened: Count = 0


class ReviewPage(msgspec.Struct, frozen=True, kw_only=True):
    """The queue: its length, of which `uniform` are the fair sample; `current`: where the caller
    was; `next`: for `after`, empty at the end."""

    waiting: Count
    uniform: Count
    current: str = ""
    items: tuple[ReviewItem, ...] = ()
    next: str = ""


class NextReview(msgspec.Struct, frozen=True, kw_only=True):
    """The session that the caller is to review; empty: nothing is left for them. `waiting`: for
    anybody."""

    session_id: str
    waiting: Count


class ShownSource(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One source of a claim, by its place. `found`, `says` and `characters` once it was opened."""

    source: Count
    pointer: str
    step: str = ""
    action: str = ""
    opened: bool = False
    found: SourceFound | None = None
    says: str = ""
    characters: Count = 0


class ShownClaim(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One claim, by its place. `value`: its JSON text. `reason`: the guard's, once every source was
    opened."""

    claim: Count
    text: str
    value: str = ""
    unit: str = ""
    derivation: str = ""
    verdict: GroundingVerdict | None = None
    reason: str = ""
    sources: tuple[ShownSource, ...] = ()


class ReviewView(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A session to be reviewed. `input`, `output`: JSON as it was written, so that no reader rounds
    a number. `unopened`: sources that the caller has still to open; at 0 the score is taken.
    `score`: the caller's last one."""

    session_id: str
    workflow: str
    opened_at: str
    ended_at: str
    stand: Stand
    slice: ReviewSlice
    sampling_probability: float
    unclear: float
    why: tuple[Why, ...] = ()
    input: str = ""
    output: str = ""
    claims: tuple[ShownClaim, ...] = ()
    claims_left_out: Count = 0
    sentences: tuple[UnsourcedSentence, ...] = ()
    unopened: Count = 0
    held_by: str = ""
    held_until: str = ""
    skipped: bool = False
    scored: bool = False
    score: float | None = None
    comment: str = ""


class Opening(msgspec.Struct, frozen=True, kw_only=True):
    """The caller opens a source of a claim, both by their places from 0 on."""

    claim: Count
    source: Count


class Opened(msgspec.Struct, frozen=True, kw_only=True):
    """What the source says, the claim as it is shown now, and how many are left."""

    claim: ShownClaim
    unopened: Count


class Score(msgspec.Struct, frozen=True, kw_only=True):
    """How right the session's answer is: 0 wrong, 1 right."""

    score: Annotated[float, msgspec.Meta(ge=0.0, le=1.0)]
    comment: Annotated[str, msgspec.Meta(max_length=COMMENT_CHARACTERS_MAX)] = ""


class Scored(msgspec.Struct, frozen=True, kw_only=True):
    """The feedback that it became; `stand`: WAITING where others must look as well."""

    feedback_id: str
    state_version: str
    sampling_probability: float
    stand: Stand
    waiting: Count


class Unopened(msgspec.Struct, frozen=True, kw_only=True):
    """A source that must be opened before the score is taken."""

    claim: Count
    source: Count
    pointer: str
