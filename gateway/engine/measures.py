"""What one finished session came to, as a rollout counts it: success, fallback, time, reward.

The time is the session's without its waits for the gateway's own admission, so that a twin, which
waits longest of all, is measured like its primary.
"""

from collections.abc import Iterator

from acp_spec.model.enums import SessionStatus
from acp_spec.model.trajectory import Attempt, Trajectory
from gateway.engine.states import CallState, SessionState
from gateway.governance.rollout_judging import Sample


def sample(state: SessionState, *, reward: str = "") -> Sample:
    """The figures of a session that ended. `reward`: only rewards of this name."""
    return Sample(
        succeeded=state.status is SessionStatus.SUCCEEDED,
        fell_back=state.fell_back,
        work_ms=float(work_ms(state)),
        reward=_reward(state, reward),
    )


def recorded_sample(trajectory: Trajectory) -> Sample:
    """The same of a session that is a record only; its rewards are not asked for."""
    rows: dict[str, list[Attempt]] = {}
    for row in trajectory.calls:
        rows.setdefault(row.call_id, []).append(row)
    spans = [span for attempts in rows.values() for span in _recorded_spans(attempts)]
    return Sample(
        succeeded=trajectory.status is SessionStatus.SUCCEEDED,
        fell_back=trajectory.fell_back,
        work_ms=float(_covered_ms(spans)),
    )


def _recorded_spans(rows: list[Attempt]) -> Iterator[tuple[int, int]]:
    before_ms: int | None = None
    for row in rows:
        begun, ended = row.sent_at_ms, row.ended_at_ms
        if before_ms is not None and row.queued_at_ms > before_ms:
            yield before_ms, row.queued_at_ms
        if begun is not None and ended is not None:
            yield begun, ended
        before_ms = ended if begun is not None else None


def work_ms(state: SessionState) -> int:
    """Milliseconds in which a call was at work or waited for its own retry; overlaps count once."""
    return _covered_ms([span for call in state.calls.values() for span in _spans(call)])


def _covered_ms(spans: list[tuple[int, int]]) -> int:
    total, reached = 0, 0
    for begin, end in sorted(spans):
        if end > reached:
            total += end - max(begin, reached)
            reached = end
    return total


def _spans(call: CallState) -> Iterator[tuple[int, int]]:
    """When each attempt was with its component, and the pause before it that a policy chose."""
    before_ms: int | None = None
    for attempt in call.attempts:
        started, final = attempt.started, attempt.operation or attempt.ended
        if before_ms is not None and attempt.queued_at_ms > before_ms:
            yield before_ms, attempt.queued_at_ms
        if started is not None and final is not None:
            yield started.at_ms, final.at_ms
        before_ms = final.at_ms if final else None


def _reward(state: SessionState, name: str) -> float | None:
    """The mean of what the last reflector gave; None where nobody judged."""
    given = state.reflections[-1].response.rewards if state.reflections else ()
    values = [one.value for one in given if name in ("", one.name)]
    return sum(values) / len(values) if values else None
