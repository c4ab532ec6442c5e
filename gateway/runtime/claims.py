"""What a call brings to the place it waits at: its name, its rank, and where it goes.

Made anew each time it has to wait: a session that has begun meanwhile ranks before those that
have not.
"""

from gateway.engine.states import CallState, Phase, SessionState
from gateway.governance import sharing
from gateway.runtime.demand import Demand
from gateway.runtime.habits import Place
from gateway.runtime.lines import Waiting


def claim(
    state: SessionState,
    call: CallState,
    *,
    woken: Waiting | None,
    step_priority: int = 0,
) -> Waiting:
    """The call's next attempt as it stands in a line; `woken`: how it stood in one before."""
    opened = state.opened
    under_way = len(state.calls) > 1 or bool(call.attempts)
    return Waiting(
        session_id=opened.session_id,
        call_id=call.created.call_id,
        attempt=call.number,
        tenant=opened.tenant,
        key=woken.key if woken else "",
        order=woken.order if woken else 0,
        rank_ms=sharing.rank_ms(
            opened.at_ms, opened.priority, step_priority=step_priority, under_way=under_way
        ),
    )


def still_waits(call: CallState, waiting: Waiting) -> bool:
    """Whether this attempt of the call is still to be sent."""
    return call.phase is Phase.READY and call.number == waiting.attempt


def tell_demand(
    demand: Demand, state: SessionState, *, call: CallState, pin: str, keys: tuple[str, ...]
) -> None:
    """The call has come to where it needs its slots: the demand is there, no longer to come."""
    created = call.created
    is_planned = bool(created.sub_goal) or f"step:{created.step}" not in state.opened.pins
    planned = Place(pin, created.step_type) if is_planned else None
    demand.reached(state.session_id, state.position, keys=keys, planned=planned)
