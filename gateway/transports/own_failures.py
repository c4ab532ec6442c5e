"""The gateway's own failures, as callers hear them: that it was us, and where the rest stands.

What nobody expected is logged with its cause and never told to a caller.
"""

from collections.abc import Awaitable
from typing import TypeVar

from acp_spec.bindings.errors import error
from acp_spec.model.enums import Boundary, SideEffect
from acp_spec.model.errors import AcpError, AcpFailure, Reason
from gateway.stores.errors import StoreError
from gateway.telemetry.logs import get_log

T = TypeVar("T")

log = get_log(__name__)


async def attempted(
    work: Awaitable[T], *, where: str, passing: tuple[type[Exception], ...] = ()
) -> T | AcpError:
    """What `work` gives, or the error for whatever it raised; `where` is the route, for the log.

    This is the border: whatever goes wrong in an operation ends here, as one answer. `passing` is
    what is no failure and goes on.
    """
    try:
        return await work
    except passing:
        raise
    except Exception as problem:
        return _failure_of(problem, where=where)


def too_many_streams() -> AcpFailure:
    """As many event streams are open as one gateway keeps."""
    message = "as many event streams are open as this gateway keeps; poll the session instead"
    return AcpFailure(error(Reason.OVERLOADED, message, boundary=Boundary.GATEWAY))


def stopping() -> AcpError:
    """The gateway ends while a request is under way: nobody knows what became of it."""
    message = "the gateway is stopping: look at the session, or ask again in a moment"
    return error(
        Reason.UNAVAILABLE,
        message,
        side_effect=SideEffect.UNKNOWN,
        boundary=Boundary.GATEWAY,
        retry_after_ms=1000,
    )


def _failure_of(problem: Exception, *, where: str) -> AcpError:
    match problem:
        case AcpFailure():
            return problem.error
        case StoreError():
            log.error("store_failed", cause=problem, where=where)
            message = "the gateway cannot write or read its store; its log says why"
            return error(Reason.UNAVAILABLE, message, boundary=Boundary.GATEWAY)
        case _:
            log.error("request_failed", cause=problem, where=where)
            message = "the gateway failed, not you: its log holds the cause"
            return error(Reason.INTERNAL, message, boundary=Boundary.GATEWAY)
