"""Who is put up for review as sessions end, one by one: what must be looked at, and a fair fifth.

A session that a person must look at is put up for certain. Of all others each is drawn by itself,
with a probability that is set before anything of the session is known, so that a fifth of all that
is put up is a uniform sample; it is never 0. Pure: the tally so far in, the verdict out.
"""

from typing import Final

import msgspec

from acp_spec.model.bounds import Count
from acp_spec.model.enums import FeedbackKind
from acp_spec.model.grounding import Review
from acp_spec.model.trajectory import Trajectory
from gateway.rewards.grounding.judging import review_of
from gateway.rewards.review_draw import UNIFORM_SHARE, ReviewSlice

APART: Final = 0.5
"""From here on two scores are two opinions."""
RATERS_ENOUGH: Final = 3
"""Of three the middle one can be taken; a fourth says little more."""
CATCH_UP: Final = 200
"""Sessions over which a share that has drifted comes back to its fifth."""
CHANCE_MIN: Final = 0.001
"""Where nothing is unclear for a long time, somebody still looks now and then."""
PER_UNCLEAR: Final = UNIFORM_SHARE / (1 - UNIFORM_SHARE)


class Tally(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """What was put up so far: `seen` of all that ended, `uniform` and `unclear` of these put up.

    The waiting ones of each slice, and how many were handed out, stand beside.
    """

    seen: Count = 0
    unclear: Count = 0
    uniform: Count = 0
    waiting_unclear: Count = 0
    waiting_uniform: Count = 0
    handed_out: Count = 0

    @property
    def waiting(self) -> int:
        """Of both slices."""
        return self.waiting_unclear + self.waiting_uniform


class PutUp(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A session that a person should look at, and how likely it was to be put up at all."""

    slice: ReviewSlice
    sampling_probability: float


def must_look(trajectory: Trajectory) -> bool:
    """Something in it waits for a person: the guard's finding, or raters who contradict."""
    grounding = trajectory.grounding
    waits = grounding is not None and grounding.review is Review.WAITING
    return waits or contradict(trajectory)


def contradict(trajectory: Trajectory) -> bool:
    """Two raters say opposite things, and no third has spoken. What users or programs contradict
    each other in is settled by one review; two reviews are settled by a third."""
    is_reviewed = review_of(trajectory) is not None
    return any(
        one.highest - one.lowest >= APART
        and one.raters < RATERS_ENOUGH
        and (one.kind is FeedbackKind.VALIDATION or not is_reviewed)
        for one in trajectory.rewards.raters
    )


def is_settled(trajectory: Trajectory, slice_: ReviewSlice) -> bool:
    """Nobody needs to look any more. Of the fair sample a judgement that was drawn is wanted: who
    spoke up by themselves is no answer to it."""
    if must_look(trajectory) or review_of(trajectory) is None:
        return False
    return slice_ is ReviewSlice.UNCLEAR or any(
        row.feedback.kind is FeedbackKind.VALIDATION
        and row.feedback.score is not None
        and row.feedback.sampling_probability is not None
        for row in trajectory.feedback
    )


def uniform_chance(tally: Tally) -> float:
    """With which probability the next session is drawn, whatever it is."""
    rate = (tally.unclear + 1) / (tally.seen + 1)
    missing = tally.unclear * PER_UNCLEAR - tally.uniform
    return min(1.0, max(CHANCE_MIN, rate * PER_UNCLEAR + missing / CATCH_UP))


def put_up(trajectory: Trajectory, *, chance: float, tally: Tally) -> PutUp | None:
    """Whether the session that has just ended is put up; `chance`: its own number in [0, 1).

    Its probability is that of being put up by either way, so that rates can undo both.
    """
    uniform = uniform_chance(tally)
    grounding = trajectory.grounding
    by_doubt = grounding.review_probability if grounding else 0.0
    if contradict(trajectory):
        by_doubt = 1.0
    probability = 1 - (1 - uniform) * (1 - by_doubt)
    if chance < uniform:
        return PutUp(slice=ReviewSlice.UNIFORM, sampling_probability=probability)
    if must_look(trajectory):
        return PutUp(slice=ReviewSlice.UNCLEAR, sampling_probability=probability)
    return None


def counted(tally: Tally, found: PutUp | None) -> Tally:
    """The tally with one more session that ended."""
    return msgspec.structs.replace(
        tally,
        seen=tally.seen + 1,
        unclear=tally.unclear + (found is not None and found.slice is ReviewSlice.UNCLEAR),
        uniform=tally.uniform + (found is not None and found.slice is ReviewSlice.UNIFORM),
    )


def turn_of(handed_out: int) -> ReviewSlice:
    """Of every five that reviewers are given the last is from the uniform slice."""
    every = round(1 / UNIFORM_SHARE)
    return ReviewSlice.UNIFORM if handed_out % every == every - 1 else ReviewSlice.UNCLEAR
