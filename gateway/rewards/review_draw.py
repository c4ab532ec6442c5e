"""Which sessions people should judge: a fifth uniformly at random, the rest where it is unclear.

Each session is drawn by itself with a probability that is known and never 0, so that rates over
the judged ones can undo the drawing. Chance is a hash of a seed and the session's id: the same seed
draws the same sessions, and a larger number draws those of a smaller one too. Pure.
"""

import math
from collections.abc import Sequence
from typing import Final

import msgspec

from acp_spec.model.enums import Word
from acp_spec.model.ids import unit_interval
from acp_spec.model.trajectory import Trajectory
from gateway.rewards.uncertainty import doubts, unclear

UNIFORM_SHARE: Final = 0.2
"""Of the reviews: enough to see what nobody is unsure about, and is wrong all the same."""


class ReviewSlice(Word):
    """By which of the two a session was drawn; the uniform ones alone are a fair sample."""

    UNIFORM = "UNIFORM"
    UNCLEAR = "UNCLEAR"


class Candidate(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """`unclear`: how unclear it is what to think of the session; 0 is clear."""

    session_id: str
    unclear: float


class Drawn(msgspec.Struct, frozen=True, kw_only=True):
    """A session to judge; feedback on it states `sampling_probability`."""

    session_id: str
    sampling_probability: float
    slice: ReviewSlice
    unclear: float


def candidate_of(trajectory: Trajectory) -> Candidate | None:
    """None for a session that has not ended, or was drawn and judged before."""
    if not trajectory.ended_at or any(
        row.feedback.sampling_probability is not None for row in trajectory.feedback
    ):
        return None
    return Candidate(session_id=trajectory.session_id, unclear=unclear(doubts(trajectory)))


def draw(candidates: Sequence[Candidate], count: int, *, seed: str) -> tuple[Drawn, ...]:
    """About `count` of them, the most unclear first; never more than chance allows for."""
    if not candidates:
        return ()
    total = math.fsum(one.unclear for one in candidates)
    share = UNIFORM_SHARE if total > 0 else 1.0
    uniform = min(1.0, share * count / len(candidates))
    found = []
    for one in candidates:
        by_doubt = (1 - share) * count * one.unclear / total if total > 0 else 0.0
        probability = min(1.0, uniform + by_doubt)
        chance = unit_interval("review", seed, one.session_id)
        if chance < probability:
            drawn_by = ReviewSlice.UNIFORM if chance < uniform else ReviewSlice.UNCLEAR
            found.append(
                Drawn(
                    session_id=one.session_id,
                    sampling_probability=probability,
                    slice=drawn_by,
                    unclear=one.unclear,
                )
            )
    return tuple(sorted(found, key=lambda one: (-one.unclear, one.session_id)))
