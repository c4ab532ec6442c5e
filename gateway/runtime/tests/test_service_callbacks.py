"""Call-backs of long operations, as components send them."""

import asyncio
from collections.abc import Callable

import msgspec
import pytest

from acp_spec.bindings.errors import error
from acp_spec.model.enums import SideEffect
from acp_spec.model.errors import Reason
from acp_spec.model.payload import ABSENT, Payload, payload
from acp_spec.model.session import (
    CompleteOperation,
)
from gateway.engine.events import Late
from gateway.engine.states import Phase
from gateway.engine.tests.stage import ONE_ACTION, accepted, failed
from gateway.runtime.tests.house import House, told
from gateway.runtime.tests.virtual_time import run
from gateway.stores.forgetful import ForgetfulStore


def test_a_call_back_ends_its_operation_once() -> None:
    async def story() -> None:
        house = House()
        house.targets.connection.lines["grow"] = accepted(60_000)
        session = await house.open(ONE_ACTION % "grow")
        await asyncio.sleep(0.1)
        (sent,) = house.targets.connection.sent
        callback = sent.context.callback
        assert callback is not None
        call_id, complete = sent.context.call_id, house.service.complete_operation
        result = CompleteOperation(output=payload(b"9007199254740993"))
        wrong = complete(call_id, "x" + callback.token, result=result)
        assert await told(wrong) == "UNAUTHENTICATED"
        await complete(call_id, callback.token, result=result)
        assert bytes((await house.ended(session)).output) == b"9007199254740993"
        await complete(call_id, callback.token, result=result)
        other = CompleteOperation(output=payload(b"1"))
        assert await told(complete(call_id, callback.token, result=other)) == "ALREADY_EXISTS"

    run(story())


def test_a_call_back_may_overtake_the_answer() -> None:
    async def story() -> None:
        house = House()
        house.targets.connection.lines["grow"] = msgspec.structs.replace(accepted(), after_ms=900)
        session = await house.open(ONE_ACTION % "grow")
        await asyncio.sleep(0.1)
        context = house.targets.connection.sent[0].context
        assert context.callback is not None
        result = CompleteOperation(output=payload(b"1"))
        await house.service.complete_operation(
            context.call_id, context.callback.token, result=result
        )
        assert (await house.ended(session)).status.value == "SUCCEEDED"
        await asyncio.sleep(2)
        house.check_permits()

    run(story())


@pytest.mark.parametrize(
    ("output", "failed"), [(ABSENT, False), (payload(b"1"), True)], ids=["neither", "both"]
)
def test_a_call_back_says_exactly_one_thing(output: Payload, failed: bool) -> None:
    async def story() -> None:
        house = House()
        house.targets.connection.lines["grow"] = accepted(60_000)
        await house.open(ONE_ACTION % "grow")
        await asyncio.sleep(0.1)
        context = house.targets.connection.sent[0].context
        assert context.callback is not None
        failure = error(Reason.INTERNAL, "x") if failed else None
        result = CompleteOperation(output=output, error=failure)
        asked = house.service.complete_operation(
            context.call_id, context.callback.token, result=result
        )
        assert await told(asked) == "INVALID_REQUEST"

    run(story())


def test_a_call_back_after_the_operations_time_tells_what_was_done_and_changes_no_outcome() -> None:
    """It was told that the operation had ended otherwise, and its news was thrown away."""

    async def story() -> None:
        house = House()
        house.targets.connection.lines["print"] = accepted(60_000)
        session = await house.open(ONE_ACTION % "print")
        await house.ended(session)
        context = house.targets.connection.sent[0].context
        assert context.callback is not None
        for _ in range(2):
            await house.service.complete_operation(
                context.call_id,
                context.callback.token,
                result=CompleteOperation(output=payload(b"1")),
            )
        (call,) = house.state(session).calls.values()
        assert (call.status.value, call.side_effect.value) == ("FAILED", "PERFORMED")
        assert [type(e) for e in house.journal(session)].count(Late) == 1

    run(story())


class SlowSync:
    """A sync thread on the loop; `amid` happens while a sync is under way."""

    def __init__(self) -> None:
        self.amid: Callable[[], None] = lambda: None

    def put(self, job: Callable[[], None]) -> None:
        loop = asyncio.get_running_loop()
        loop.call_soon(self.amid)
        loop.call_later(0.01, job)

    async def close(self) -> None:
        """Nothing is left behind."""


def test_a_call_back_that_comes_while_a_retry_waits_for_the_disk_keeps_no_slot() -> None:
    """The retry never leaves, so nobody ever answered for its permit (simulated)."""

    async def story() -> None:
        house, syncs = House(store=ForgetfulStore(), sync=True), SlowSync()
        house.committer._worker = syncs
        house.targets.connection.lines["grow"] = failed(Reason.UNAVAILABLE, SideEffect.UNKNOWN)
        session = await house.open(ONE_ACTION % "grow")
        await asyncio.sleep(0.001)
        context = house.targets.connection.sent[0].context
        assert context.callback is not None
        tasks: list[asyncio.Task[None]] = []

        def call_back() -> None:
            call = house.state(session).calls[context.call_id]
            if call.number == 2 and call.phase is Phase.SENT and context.callback and not tasks:
                result = CompleteOperation(output=payload(b"1"))
                complete = house.service.complete_operation
                back = complete(context.call_id, context.callback.token, result=result)
                tasks.append(asyncio.get_running_loop().create_task(back))

        syncs.amid = call_back
        assert (await house.ended(session)).status.value == "SUCCEEDED"
        assert tasks
        assert len(house.targets.connection.sent) == 1, "the retry had become needless"
        await asyncio.sleep(2)
        house.check_permits()

    run(story())
