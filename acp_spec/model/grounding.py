"""What the hallucination guard found in a session (SPEC section 7): part of its trajectory.

Only `CONTRADICTED`, a missing source and a sub-goal without a call (unless excused) are penalised.
A session whose `review` is `WAITING` is not for training until a person has judged it.
"""

import msgspec

from acp_spec.model.bounds import Count
from acp_spec.model.enums import Word


class GroundingVerdict(Word):
    """What a claim's sources say of it."""

    SUPPORTED = "SUPPORTED"
    CONTRADICTED = "CONTRADICTED"
    NOT_CHECKABLE = "NOT_CHECKABLE"


class Review(Word):
    """Whether a person must look before the session is trained on."""

    NOT_NEEDED = "NOT_NEEDED"
    WAITING = "WAITING"
    DONE = "DONE"


class GroundedClaim(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One claim, by its place in `claims`. `missing`: sources that lead nowhere, or `(none)`."""

    claim: Count
    verdict: GroundingVerdict
    reason: str
    missing: tuple[str, ...] = ()


class SubGoalWithoutCall(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A sub-goal of a plan that stands, and no call of its action that was executed for it.

    `excused`: what kept it from running was not the plan.
    """

    step: str
    generation: int
    sub_goal: str
    action: str
    reason: str
    excused: bool = False


class UnsourcedSentence(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A sentence of the output that no claim covers, and how likely it is made up."""

    text: str
    risk: float
    reason: str


class Grounding(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`risk`: the detector's, of all sentences that no claim covers; `detector` names it.

    `review_probability`: how likely a session like this one was to be put up for review.
    `label`: the score of the review that let it in.
    """

    claims: tuple[GroundedClaim, ...] = ()
    sub_goals: tuple[SubGoalWithoutCall, ...] = ()
    sentences: tuple[UnsourcedSentence, ...] = ()
    risk: float = 0.0
    detector: str = ""
    penalties: Count = 0
    review: Review = Review.NOT_NEEDED
    review_reasons: tuple[str, ...] = ()
    review_probability: float = 0.0
    label: float | None = None
