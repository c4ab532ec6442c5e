"""Where raters disagree: everyone's last score of the same thing, side by side.

A mean hides that two people saw opposite things. Pure: rows of feedback in, spreads out.
"""

import math
from collections.abc import Iterable

from acp_spec.model.reward_vector import RaterSpread
from acp_spec.model.trajectory import FeedbackRow


def spreads(rows: Iterable[FeedbackRow]) -> tuple[RaterSpread, ...]:
    """One for each target and kind that at least two authors scored, in the order of `rows`."""
    scores: dict[tuple[str, str, int, str], list[FeedbackRow]] = {}
    for row in rows:
        given, target = row.feedback, row.feedback.target
        if given.score is not None:
            key = (target.call_id, target.step, target.loop, given.kind.value)
            scores.setdefault(key, []).append(row)
    return tuple(_spread(alike) for alike in scores.values() if len(alike) > 1)


def _spread(alike: list[FeedbackRow]) -> RaterSpread:
    values = [row.feedback.score for row in alike if row.feedback.score is not None]
    first = alike[0].feedback
    return RaterSpread(
        kind=first.kind,
        target=first.target,
        raters=len(values),
        mean=_mean(values),
        lowest=min(values),
        highest=max(values),
    )


def _mean(values: list[float]) -> float:
    """Also of scores as they were taken once, too large for their sum to be a number."""
    try:
        return math.fsum(values) / len(values)
    except OverflowError:
        return math.fsum(value / len(values) for value in values)
