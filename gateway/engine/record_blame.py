"""Which components took part in a recorded session, and whose fault its fallback was (R21).

Of a record alone, without the engine: whoever shapes records needs no more. `fallback_blame` says
the same of a live session by the same rule. Pure.
"""

from collections.abc import Iterable, Iterator

from acp_spec.model.enums import SessionStatus, StepRole
from acp_spec.model.errors import Reason
from acp_spec.model.trajectory import Attempt, Trajectory

_MAKERS = (StepRole.PLAN.value, StepRole.EXECUTE.value)


def of_record(one: Trajectory) -> Iterator[tuple[str, bool]]:
    """(component, to blame for a fallback) of each that took part; nothing of a cancelled one."""
    if one.status is not SessionStatus.CANCELLED:
        yield from of_rows(one.calls, fell_back=one.fell_back)


def of_rows(rows: Iterable[Attempt], *, fell_back: bool) -> Iterator[tuple[str, bool]]:
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
