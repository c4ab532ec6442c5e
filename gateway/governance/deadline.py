"""Time that an attempt may take: never more than its session has left (R06).

What is left is refused rather than sent when it is nothing: the peer could not answer in time. It
keeps no state, so the row asks it before the policies that do.
"""

import msgspec

from acp_spec.bindings.errors import error
from acp_spec.model.enums import Boundary
from acp_spec.model.errors import Reason
from gateway.governance.verdicts import ADMIT, Refuse, Verdict

NAME = "deadline"


def timeout_ms(wanted_ms: int, deadline_at_ms: int, *, now_ms: int) -> int:
    """The shrinking deadline: the call's own timeout, or what the session has left."""
    return wanted_ms if not deadline_at_ms else min(wanted_ms, deadline_at_ms - now_ms)


def check(left_ms: int) -> Verdict:
    """Refuse what has no time left."""
    if left_ms > 0:
        return ADMIT
    message = "the session's deadline is over; nothing was sent"
    refusal = error(Reason.TIMEOUT, message, boundary=Boundary.GATEWAY)
    return Refuse(NAME, refusal)


def too_late(left_ms: float, *, needed_ms: float) -> Refuse:
    """Of a call that nobody holds up, and whose target was never as fast as its session is short.

    It is not to be repeated: a later attempt has less time still.
    """
    message = f"{left_ms:.0f} ms are left, and its answer takes at least {needed_ms:.0f} ms"
    refusal = error(Reason.TIMEOUT, message, boundary=Boundary.GATEWAY)
    return Refuse(NAME, msgspec.structs.replace(refusal, retryable=False))
