"""From a handler's result, or its failure, to the response that the protocol knows.

A handler is foreign code: what it raises or returns wrongly becomes an error here. Its traceback
goes to the log, never to the caller.
"""

import asyncio
import contextvars
import inspect
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeAlias

import msgspec

from acp_spec.bindings.errors import error
from acp_spec.bindings.fields import MAX_RESPONSE_BYTES
from acp_spec.codec.payloads import check_each
from acp_spec.codec.refusals import Direction
from acp_spec.model.calls import (
    ErrorBody,
    ExecuteResponse,
    ObserveResponse,
    PlanResponse,
    ReflectResponse,
    Response,
)
from acp_spec.model.enums import Effect, SideEffect, StepRole
from acp_spec.model.errors import AcpError, AcpFailure, Reason
from acp_spec.model.payload import Payload
from acp_spec.model.plan import Plan
from acp_spec.sdk.call import Call
from acp_spec.sdk.component import Target
from acp_spec.sdk.faults import settled_error
from acp_spec.sdk.running import Running
from acp_spec.sdk.values import JsonText, check_sayable, write

Outcome: TypeAlias = Response | ErrorBody

log = logging.getLogger(__name__)

RESPONSE_OF_ROLE: dict[StepRole, type[Response]] = {
    StepRole.PLAN: PlanResponse,
    StepRole.EXECUTE: ExecuteResponse,
    StepRole.OBSERVE: ObserveResponse,
    StepRole.REFLECT: ReflectResponse,
}


async def run_function(
    work: Callable[[], object], running: Running, *, pool: ThreadPoolExecutor
) -> object:
    """Run a sync function in the pool, an async one as a task; `running.stop` reaches it there."""
    if is_async(work):
        running.work = asyncio.ensure_future(_entered(work, running))
    else:
        running.began = True
        running.cancels_work = False  # a thread cannot be cancelled: it watches `call.cancelled`
        in_context = contextvars.copy_context().run
        running.work = asyncio.get_running_loop().run_in_executor(pool, in_context, work)
    if running.cancelled.is_set() and running.cancels_work:
        running.work.cancel()
    await asyncio.wait({running.work})
    result = running.work.result()
    if inspect.isawaitable(result):  # a sync function (a lambda, say) that made a coroutine
        running.work, running.cancels_work = asyncio.ensure_future(_awaited(result)), True
        await asyncio.wait({running.work})
        result = running.work.result()
    return result


def is_async(work: Callable[[], object]) -> bool:
    """Whether calling it makes a coroutine; looks through `partial` and into callable objects."""
    function = work.func if isinstance(work, partial) else work
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004  # an object with an async __call__
    )


async def _entered(work: Callable[[], object], running: Running) -> object:
    """The handler, noting that it began: a task cancelled before has done nothing at all."""
    running.began = True
    return await _awaited(work())


async def _awaited(result: object) -> object:
    assert inspect.isawaitable(result)
    return await result


def failed(raised: BaseException, target: Target, *, running: Running) -> AcpError:
    """The error for what a handler raised without saying what it means."""
    if isinstance(raised, asyncio.CancelledError):
        return settled_error(_stopped(running), target.effect)
    log.error(
        "%s failed in call %s attempt %d",
        target.name,
        running.call_id,
        running.attempt,
        exc_info=raised,
    )
    message = (
        f"{target.name} failed unexpectedly; the component's log has the traceback "
        f"for call {running.call_id}."
    )
    return settled_error(error(Reason.INTERNAL, message), target.effect)


def _stopped(running: Running) -> AcpError:
    if not running.began:
        why = running.why_stopped or Reason.CANCELLED
        return error(why, "The call was stopped before it began.", side_effect=SideEffect.NONE)
    if running.why_stopped is Reason.TIMEOUT:
        return error(Reason.TIMEOUT, "The time for this call was over before it was done.")
    return error(Reason.CANCELLED, "The call was cancelled while it ran.")


def response_of(result: object, target: Target, *, call: Call) -> Outcome:
    """What a handler returned, as the response of its role. Never raises for a handler's fault."""
    done = _done(target, call)
    try:
        response = _typed(result, target, done=done)
    except (TypeError, ValueError, msgspec.MsgspecError) as problem:
        return _unsendable(problem, target, side_effect=done)
    return response


def _unsendable(problem: Exception, target: Target, *, side_effect: SideEffect) -> ErrorBody:
    said = str(problem).encode(errors="replace").decode()
    log.error("%s made an answer that cannot be sent: %s", target.name, said)
    message = f"{target.name} ran, but its answer cannot be sent: {said}."
    return ErrorBody(error=error(Reason.INTERNAL, message, side_effect=side_effect))


def _done(target: Target, call: Call) -> SideEffect:
    if call.side_effect is not None:
        return call.side_effect
    return SideEffect.NONE if target.effect is Effect.READ else SideEffect.PERFORMED


def _typed(result: object, target: Target, *, done: SideEffect) -> Response:
    expected = RESPONSE_OF_ROLE[target.role]
    if isinstance(result, ExecuteResponse) and target.role is StepRole.EXECUTE:
        result = msgspec.structs.replace(result, side_effect=result.side_effect or done)
    elif target.role is StepRole.EXECUTE:
        return ExecuteResponse(output=output_of(result, target), side_effect=done)
    elif isinstance(result, Plan):
        result = PlanResponse(plan=result)
    if not isinstance(result, expected):
        raise TypeError(f"expected {expected.__name__}, got {type(result).__name__}")
    _check_payloads(result)
    return result


def _check_payloads(made: msgspec.Struct) -> None:
    """A handler's own payloads enter here: one that is no JSON would break the message around
    it.
    """
    try:
        check_each(made, Direction.RESPONSE, max_bytes=MAX_RESPONSE_BYTES)
    except AcpFailure as failure:
        raise ValueError(failure.error.message) from None


def output_of(result: object, target: Target) -> Payload:
    """A handler's output as payload text, checked. Raises ValueError or TypeError."""
    output = write(result)
    if not bytes(output):
        raise ValueError("an empty text is no JSON; return None for null")
    _report_wrong_output(result, target)
    return output


def _report_wrong_output(result: object, target: Target) -> None:
    """An output against its own schema is logged, not hidden: the work is done, the gateway
    judges.
    """
    if target.output_valid is None or isinstance(result, JsonText | msgspec.Raw):
        return
    problem = target.output_valid(result)
    if problem is not None:
        log.error("%s returned an output against its output_schema: %s", target.name, problem)


def signed(outcome: Outcome, target: Target, *, call: Call) -> Outcome:
    """The envelope: what the call used, on successes and errors alike; and the last look at what
    a handler made. An answer that cannot be sent as it is becomes an error that can.
    """
    if call.retries_spent or call.usage or call.llm_calls:
        outcome = msgspec.structs.replace(
            outcome,
            retries_spent=outcome.retries_spent or call.retries_spent,
            usage=outcome.usage or call.usage,
            llm_calls=outcome.llm_calls or tuple(call.llm_calls),
        )
    try:
        _check_whole(outcome)
    except (TypeError, ValueError) as problem:
        stated = outcome.error.side_effect if isinstance(outcome, ErrorBody) else None
        return _unsendable(problem, target, side_effect=stated or _done(target, call))
    return outcome


def _check_whole(outcome: Outcome) -> None:
    """Numbers and texts of the whole answer, and the payloads that nobody looked at before."""
    check_sayable(outcome)
    if isinstance(outcome, ErrorBody):
        _check_payloads(outcome)
    for llm_call in outcome.llm_calls:
        _check_payloads(llm_call)
