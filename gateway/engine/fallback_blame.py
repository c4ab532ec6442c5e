"""Which components took part in a session, and whose fault its fallback was (R21).

The same answer from a live session and from its record, so that the metric and a query over the
records agree. Unlike in the SLA's samples (`sla_samples.py`), calls that were not sent count too: a
component whose calls are refused is why sessions fall back, whoever refused them. Pure.
"""

from collections.abc import Iterator

from acp_spec.model.enums import SessionStatus
from gateway.engine.record_blame import of_rows
from gateway.engine.states import SessionState
from gateway.engine.trajectories import attempts


def of_session(state: SessionState) -> Iterator[tuple[str, bool]]:
    """(component, to blame for a fallback) of each that took part; nothing of a cancelled session.

    Rows are built for the few that fell back only: this runs at each session's end.
    """
    if state.status is SessionStatus.CANCELLED:
        return
    if state.fell_back:
        rows = [row for call in state.calls.values() for row in attempts(call)]
        yield from of_rows(rows, fell_back=True)
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
