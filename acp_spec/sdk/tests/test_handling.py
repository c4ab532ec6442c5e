"""What a stopped handler did: nothing, when it had not begun."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest

from acp_spec.model.enums import Effect, SideEffect, StepRole
from acp_spec.model.errors import AcpError, Reason
from acp_spec.sdk.call import Cancellation
from acp_spec.sdk.component import Target
from acp_spec.sdk.handling import failed, run_function
from acp_spec.sdk.running import Running


async def stopped(turns: int, why: Reason) -> AcpError:
    """The error of an async handler that is stopped after so many turns of the loop."""

    async def handler() -> None:
        await asyncio.Event().wait()

    target = Target(
        name="write",
        role=StepRole.EXECUTE,
        handler=handler,
        effect=Effect.WRITE,
        remembers=False,
    )
    cancelled = Cancellation(asyncio.get_running_loop())
    running = Running(call_id="c", attempt=1, cancelled=cancelled)
    with ThreadPoolExecutor(1) as pool:
        work = asyncio.ensure_future(run_function(handler, running, pool=pool))
        for _ in range(turns):
            await asyncio.sleep(0)
        running.stop(why)
        with pytest.raises(asyncio.CancelledError) as raised:
            await work
    return failed(raised.value, target, running=running)


@pytest.mark.parametrize("why", [Reason.CANCELLED, Reason.TIMEOUT])
@pytest.mark.parametrize("turns", [0, 1])
def test_a_handler_that_had_not_begun_has_done_nothing(turns: int, why: Reason) -> None:
    """A cancel that came right behind its call was told UNKNOWN, so nothing could be repeated."""
    told = asyncio.run(stopped(turns, why))
    assert (told.reason, told.side_effect) == (why.value, SideEffect.NONE)


def test_of_a_handler_that_had_begun_nobody_knows() -> None:
    told = asyncio.run(stopped(5, Reason.CANCELLED))
    assert told.side_effect in (None, SideEffect.UNKNOWN)
