"""What was done, told truly: an error says what its call, its step or its session did.

An expression that fails does nothing itself, but the calls before it may have: whoever reads NONE
may open the session again. So errors take the side effect of the calls that they stand for.
"""

from collections.abc import Iterable

import msgspec

from acp_spec.model.enums import SideEffect
from acp_spec.model.errors import AcpError
from gateway.engine.states import CallState, SessionState

_LEAST_FIRST = (SideEffect.NONE, SideEffect.UNKNOWN, SideEffect.PERFORMED)


def joined(effects: Iterable[SideEffect]) -> SideEffect:
    """What one of them did stays done; what one may have done stays possible; else NONE."""
    return max(effects, key=_LEAST_FIRST.index, default=SideEffect.NONE)


def of_call(failure: AcpError, call: CallState) -> AcpError:
    """The error of a call over all its attempts: a refusal undoes no earlier one."""
    did = joined((failure.side_effect or SideEffect.NONE, call.side_effect))
    return failure if did is SideEffect.NONE else _told(failure, did)


def of_step(failure: AcpError, state: SessionState, *, step: str) -> AcpError:
    """The error of this pass of a step."""
    entry = state.steps[step]
    ids = [goal.call_id for goal in entry.sub_goals.values() if goal.call_id]
    return _told(failure, joined(state.calls[call_id].side_effect for call_id in ids))


def of_session(failure: AcpError, state: SessionState) -> AcpError:
    """The error of a session; one that called nobody did what its error states, else nothing."""
    if not state.calls:
        return _told(failure, failure.side_effect or SideEffect.NONE)
    return _told(failure, joined(call.side_effect for call in state.calls.values()))


def _told(failure: AcpError, did: SideEffect) -> AcpError:
    return msgspec.structs.replace(failure, side_effect=did)
