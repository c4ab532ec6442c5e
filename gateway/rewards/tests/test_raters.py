"""Raters that disagree are seen: a mean alone would say that all is half well."""

import pytest

from acp_spec.model.enums import FeedbackKind
from acp_spec.model.session import Feedback, FeedbackTarget
from acp_spec.model.times import rfc3339
from acp_spec.model.trajectory import FeedbackRow
from gateway.rewards.raters import spreads

CALL = FeedbackTarget(call_id="c")


def _row(author: str, score: float | None, **fields: object) -> FeedbackRow:
    given = {"kind": FeedbackKind.RATING, "author": author, "score": score, "comment": "x"}
    feedback = Feedback(**{**given, **fields})  # type: ignore[arg-type]
    return FeedbackRow(feedback=feedback, received_at=rfc3339(1))


def test_two_who_saw_opposite_things_stand_apart_and_not_only_as_their_mean() -> None:
    (found,) = spreads([_row("ann", 0.0), _row("bo", 1.0), _row("cy", 0.5)])
    assert (found.raters, found.lowest, found.highest, found.mean) == (3, 0.0, 1.0, 0.5)


def test_one_rater_and_one_who_only_wrote_words_make_no_spread() -> None:
    assert spreads([_row("ann", 0.0), _row("bo", None)]) == ()


def test_only_judgements_of_the_same_thing_in_the_same_way_are_compared() -> None:
    rows = [
        _row("ann", 0.0),
        _row("bo", 1.0, target=CALL),
        _row("cy", 1.0, kind=FeedbackKind.VALIDATION),
        _row("di", 0.5, target=CALL),
    ]
    (found,) = spreads(rows)
    assert (found.target, found.lowest, found.highest) == (CALL, 0.5, 1.0)


def test_scores_that_were_taken_before_there_was_a_limit_have_a_mean_all_the_same() -> None:
    """The journal has them, and a record that cannot be made is one that nobody trains on."""
    (found,) = spreads([_row("ann", 1.7e308), _row("bo", 1.7e308), _row("cy", -1.7e308)])
    assert found.mean == pytest.approx(1.7e308 / 3)
    assert (found.lowest, found.highest) == (-1.7e308, 1.7e308)
