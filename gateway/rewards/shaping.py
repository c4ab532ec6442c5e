"""Shaping by potentials: what a step gains is the potential after it minus the one before it.

The potential is 0 at the start and at every end, so that the differences sum to nothing over an
ended session: shaping helps learning along the way and cannot change what is best (Ng, Harada,
Russell 1999, undiscounted). That is checked when rules are read and again at each session's end.
"""

import itertools
from collections.abc import Iterator
from typing import Final

from acp_spec.model.enums import TERMINAL_SESSION, SessionStatus, StepRole
from acp_spec.model.trajectory import Attempt, Trajectory
from gateway.expressions.expression import Expression, ExpressionError
from gateway.rewards.events import is_open
from gateway.rewards.facts import PROGRESS, FactScope, ProgressFacts
from gateway.rewards.settled import settled
from gateway.rewards.worth import number

ENDS: Final = tuple(sorted(TERMINAL_SESSION, key=lambda status: status.value))
_COUNTS: Final = (0, 1, 3)
"""Calls that the checked ends have behind them; division by zero shows at 0."""


def differences(potential: Expression, trajectory: Trajectory) -> dict[str, float]:
    """What each call gains, by its id. Raises ExpressionError for a potential that is none."""
    states = list(progress(trajectory))
    values = [0.0, *(number(potential, _scope(state)) for _, state in states)]
    if trajectory.ended_at and states and values[-1] != 0:
        raise ExpressionError(f"the potential is {values[-1]:g} at this end, not 0", 1)
    gains = itertools.pairwise(values)
    return {
        call_id: after - before for (call_id, _), (before, after) in zip(states, gains, strict=True)
    }


def fault_of(potential: Expression) -> str:
    """Why an expression is no potential: not 0 at the start or at some end, or it fails there."""
    for state in (ProgressFacts(), *_sampled_ends()):
        where = f"at the end {state.status}" if state.ended else "at the start"
        try:
            value = number(potential, _scope(state))
        except ExpressionError as problem:
            return f"{where} (progress.calls is {state.calls}): {problem.message}"
        if value != 0:
            return f"a potential is 0 {where}, this is {value:g}: write progress.ended ? 0.0 : ..."
    return ""


def progress(trajectory: Trajectory) -> Iterator[tuple[str, ProgressFacts]]:
    """The session after each settled call, in the order in which they ended."""
    rows = [row for row in settled(trajectory.calls).values() if not is_open(row)]
    rows.sort(key=_ended_at)
    goals = {taken.call_id: len(taken.plan.sub_goals) for taken in trajectory.plan}
    planned = good = done = 0
    for count, row in enumerate(rows, start=1):
        planned = goals.get(row.call_id, planned)
        good += row.error is None
        done += row.error is None and row.role == StepRole.EXECUTE.value and row.sub_goal != ""
        ended = trajectory.ended_at != "" and count == len(rows)
        yield (
            row.call_id,
            ProgressFacts(
                ended=ended,
                status=trajectory.status.value if ended else SessionStatus.RUNNING.value,
                fell_back=ended and trajectory.fell_back,
                step=row.step,
                loop=row.loop,
                calls=count,
                succeeded=good,
                failed=count - good,
                planned=planned,
                done=done,
            ),
        )


def _ended_at(row: Attempt) -> str:
    """Times are written alike, so that text sorts by time."""
    return row.ended_at or row.queued_at


def _sampled_ends() -> Iterator[ProgressFacts]:
    for status, fell_back, count in itertools.product(ENDS, (False, True), _COUNTS):
        yield ProgressFacts(
            ended=True,
            status=status.value,
            fell_back=fell_back,
            calls=count,
            succeeded=count,
            planned=count,
            done=count,
        )


def _scope(state: ProgressFacts) -> FactScope:
    return FactScope({PROGRESS: state})
