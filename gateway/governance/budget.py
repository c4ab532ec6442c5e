"""The retry budget of a session, leased to its calls (SPEC section 2, R09).

A call may spend what it was leased, itself and all it causes; the rest comes back with the answer,
and an answer that is lost has spent it all. So the last retry is never lent: it stays with the
gateway, which could otherwise not repeat just those calls that need it most.
"""

KEPT_BACK = 1
"""The gateway's own next retry of the call."""


def lease(session_left: int, call_left: int) -> int:
    """What an attempt that starts now carries: at most the call's share of what is left."""
    return max(0, min(session_left, call_left) - KEPT_BACK)
