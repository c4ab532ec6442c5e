"""Where raters disagree: everyone's last score of the same thing, side by side.

A mean hides that two people saw opposite things. Pure: rows of feedback in, spreads out.
"""

from collections.abc import Iterable

from acp_spec.model.reward_vector import RaterSpread
from acp_spec.model.trajectory import FeedbackRow
from gateway.engine.finite_mean import mean_of


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
        mean=mean_of(values),
        lowest=min(values),
        highest=max(values),
    )
