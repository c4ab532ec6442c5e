"""How unclear it is what to think of a session, in parts that a reviewer can be told.

Each part is a number from 0 (clear) to 1; their sum orders the review queue. It says where a
person's look teaches most, never how good a session is. Pure: a trajectory in, parts out.
"""

import math
from collections.abc import Iterator
from typing import Final

import msgspec

from acp_spec.model.enums import Word
from acp_spec.model.grounding import GroundedClaim, GroundingVerdict
from acp_spec.model.reward_vector import Validity
from acp_spec.model.trajectory import QualityReward, Trajectory
from gateway.rewards.given import FEEDBACK


class Doubt(Word):
    """Where a doubt comes from."""

    CLAIMS = "CLAIMS"  # what the guard says of the claims
    DETECTOR = "DETECTOR"  # how likely a sentence that no claim covers is made up
    RATERS = "RATERS"  # how far those who scored the same thing are apart
    QUALITY = "QUALITY"  # how far the reflector's and the guard's judgements are apart
    COMMENTS = "COMMENTS"  # somebody said something that was not understood
    UNJUDGED = "UNJUDGED"  # nobody has judged the session


class Why(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One part of a session's uncertainty; it holds no word of the session."""

    doubt: Doubt
    amount: float


OF_VERDICT: Final = {
    GroundingVerdict.SUPPORTED: 0.0,
    GroundingVerdict.CONTRADICTED: 0.5,
    GroundingVerdict.NOT_CHECKABLE: 1.0,
}
"""A contradiction was decided by a rule, which is right more often than not; what no rule could
decide is wholly open."""
LARGEST_VARIANCE: Final = 0.25
"""Of values from 0 to 1: half of them 0, half of them 1."""
UNCLEAR_MAX: Final = float(len(Doubt))


def doubts(trajectory: Trajectory) -> tuple[Why, ...]:
    """The parts that are over 0, the largest first."""
    found = ((doubt, min(1.0, amount)) for doubt, amount in _amounts(trajectory) if amount > 0)
    ordered = sorted(found, key=lambda one: -one[1])
    return tuple(Why(doubt=doubt, amount=amount) for doubt, amount in ordered)


def unclear(why: tuple[Why, ...]) -> float:
    """The sum of the parts."""
    return math.fsum(one.amount for one in why)


def raters_apart(trajectory: Trajectory) -> float:
    """The widest gap between two who scored the same thing in the same way."""
    return max((one.highest - one.lowest for one in trajectory.rewards.raters), default=0.0)


def _amounts(trajectory: Trajectory) -> Iterator[tuple[Doubt, float]]:
    rewards, grounding = trajectory.rewards, trajectory.grounding
    yield Doubt.CLAIMS, max(map(_of_claim, grounding.claims if grounding else ()), default=0.0)
    yield Doubt.DETECTOR, grounding.risk if grounding else 0.0
    yield Doubt.RATERS, raters_apart(trajectory)
    yield Doubt.QUALITY, _variance(rewards.quality) / LARGEST_VARIANCE
    yield Doubt.COMMENTS, float(any(one.validity is not Validity.VALID for one in rewards.comments))
    vector = rewards.vector
    is_judged = vector is not None and vector.session.quality.validity is Validity.VALID
    yield Doubt.UNJUDGED, float(not is_judged)


def _of_claim(one: GroundedClaim) -> float:
    return OF_VERDICT[one.verdict]


def _variance(rows: tuple[QualityReward, ...]) -> float:
    """Of the judgements that are values from 0 to 1; of other scales nothing can be said here.
    What people scored counts as raters already."""
    values = [
        row.value
        for row in rows
        if row.value is not None and 0 <= row.value <= 1 and not row.source.startswith(FEEDBACK)
    ]
    if len(values) < 2:
        return 0.0
    mean = math.fsum(values) / len(values)
    return math.fsum((value - mean) ** 2 for value in values) / len(values)
