"""Which components took part in a session, and whose fault its fallback was (R21).

The same answer from a live session and from its record, so that the metric and a query over the
records agree. Unlike in the SLA's samples (`sla_samples.py`), calls that were not sent count too: a
component whose calls are refused is why sessions fall back, whoever refused them. Pure.
"""

from collections.abc import Iterable, Iterator

from acp_spec.model.enums import SessionStatus, StepRole
from acp_spec.model.errors import Reason
from acp_spec.model.trajectory import Attempt, Trajectory
from gateway.engine.states import SessionState
from gateway.engine.trajectories import attempts

_MAKERS = (StepRole.PLAN.value, StepRole.EXECUTE.value)


def of_session(state: SessionState) -> Iterator[tuple[str, bool]]:
    """(component, to blame for a fallback) of each that took part; nothing of a cancelled session.

    Rows are built for the few that fell back only: this runs at each session's end.
    """
    if state.status is SessionStatus.CANCELLED:
        return
    if state.fell_back:
        rows = [row for call in state.calls.values() for row in attempts(call)]
        yield from _of_rows(rows, fell_back=True)
        return
    taking_part = {
        attempt.started.component if attempt.started else call.created.component
        for call in state.calls.values()
        if not call.created.reused_from
        for attempt in call.attempts
    }
    taking_part |= {
        call.created.component
        for call in state.calls.values()
        if not call.created.reused_from and not call.attempts
    }
    for component in taking_part:
        if component:
            yield component, False


def of_record(one: Trajectory) -> Iterator[tuple[str, bool]]:
    """The same of a session that is a record."""
    if one.status is not SessionStatus.CANCELLED:
        yield from _of_rows(one.calls, fell_back=one.fell_back)


def _of_rows(rows: Iterable[Attempt], *, fell_back: bool) -> Iterator[tuple[str, bool]]:
    """Blamed are those with a failed call; where there is none, planner and executors gave what was
    not good enough."""
    calls: dict[str, list[Attempt]] = {}
    for row in rows:
        if not row.reused and row.component:
            calls.setdefault(row.call_id, []).append(row)
    made = {row.component for call in calls.values() for row in call if row.role in _MAKERS}
    failed = {call[-1].component for call in calls.values() if _has_failed(call)}
    blamed = (failed or made) if fell_back else set()
    for component in dict.fromkeys(row.component for call in calls.values() for row in call):
        yield component, component in blamed


def _has_failed(call: list[Attempt]) -> bool:
    """No attempt was good, and the last did not end because somebody called it off."""
    if any(row.error is None and row.ended_at for row in call):
        return False
    last = call[-1].error
    return last is not None and last.reason != Reason.CANCELLED.value
