"""Signals and labels out of trajectories, for the fitting of decay. Pure."""

from typing import Final

from acp_spec.model.enums import FeedbackKind
from acp_spec.model.times import parse_rfc3339
from acp_spec.model.trajectory import FeedbackRow, Trajectory
from gateway.rewards.decay_fit import Sample
from gateway.rewards.events import Events, delay_of
from gateway.rewards.scoring import newest_ms

GOOD_FROM: Final = 0.5
"""A label is good from this score on, unless somebody says otherwise."""


def sample_of(
    trajectory: Trajectory,
    *,
    signal: FeedbackKind,
    label: FeedbackKind,
    good_from: float = GOOD_FROM,
) -> Sample | None:
    """None where nobody gave a label, or no signal came before it."""
    labels = [row for row in trajectory.feedback if _is(row, label)]
    if not labels:
        return None
    first_ms = min(map(_time_ms, labels))
    events = Events(trajectory, as_of_ms=newest_ms(trajectory))
    signals = tuple(
        (delay_of(events, row), row.feedback.score)
        for row in trajectory.feedback
        if _is(row, signal) and _time_ms(row) <= first_ms and row.feedback.score is not None
    )
    if not signals:
        return None
    scores = [row.feedback.score for row in labels if row.feedback.score is not None]
    drawn = [p for row in labels if (p := row.feedback.sampling_probability) is not None]
    return Sample(
        session_id=trajectory.session_id,
        signals=signals,
        label=sum(scores) / len(scores) >= good_from,
        probability=min(drawn) if drawn else None,
    )


def _is(row: FeedbackRow, kind: FeedbackKind) -> bool:
    return row.feedback.kind is kind and row.feedback.score is not None


def _time_ms(row: FeedbackRow) -> int:
    return parse_rfc3339(row.feedback.time) or parse_rfc3339(row.received_at) or 0
