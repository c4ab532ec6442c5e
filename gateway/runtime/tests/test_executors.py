"""Append first, act second; one event per answer; every permit closed once."""

import asyncio
from collections.abc import Callable

import msgspec
import pytest

from acp_spec.bindings.errors import error
from acp_spec.model.calls import OperationState
from acp_spec.model.enums import CancelState, OperationStatus, SideEffect, StepStatus, StepType
from acp_spec.model.errors import Reason
from acp_spec.model.payload import payload
from acp_spec.model.session import ManualStep
from gateway.engine.events import (
    AttemptEnded,
    AttemptStarted,
    Deferred,
    Late,
    OperationEnded,
    Refused,
)
from gateway.engine.tests.casting import Said
from gateway.engine.tests.stage import (
    CARDS_OF_TWO,
    FOUR_CALLS,
    ONE_ACTION,
    accepted,
    failed,
    gave,
    goal,
    planned,
)
from gateway.runtime.connection import Outgoing
from gateway.runtime.principal import LOCAL
from gateway.runtime.tests.fake_components import refusal
from gateway.runtime.tests.house import House, slots
from gateway.runtime.tests.virtual_time import SkewedClock, run
from gateway.stores.errors import KeyGone
from gateway.stores.event_codec import Sealer
from gateway.stores.forgetful import ForgetfulStore
from gateway.stores.journal import read_events

# ---- append first, act second ----------------------------------------------------------


def test_every_attempt_is_written_before_it_leaves() -> None:
    async def story() -> None:
        house = House()
        seen: list[tuple[str, int]] = []

        def check(outgoing: Outgoing) -> None:
            context = outgoing.context
            written = house.journal(context.session_id)
            started = [e for e in written if isinstance(e, AttemptStarted)]
            assert (context.call_id, context.attempt) in [(e.call_id, e.attempt) for e in started]
            seen.append((context.call_id, context.attempt))

        house.targets.connection.on_send = check
        house.targets.connection.lines["read"] = failed()
        await house.ended(await house.open(FOUR_CALLS))
        assert len(seen) == 6
        house.check_permits()

    run(story())


@pytest.mark.parametrize(("action", "synced"), [("read", False), ("book", True), ("pay", True)])
def test_what_could_be_done_twice_leaves_only_once_its_start_is_on_disk(
    action: str, synced: bool
) -> None:
    """At the moment of sending the power goes: is the start still in the journal?"""

    async def story() -> None:
        store = ForgetfulStore()
        house = House(store=store, sync=True)
        kept: list[bool] = []
        left = asyncio.Event()

        def power_cut(outgoing: Outgoing) -> None:
            kept.append(_is_started(store.durable(), outgoing.context.session_id))
            left.set()

        house.targets.connection.on_send = power_cut
        await house.open(ONE_ACTION % action)
        await asyncio.wait_for(left.wait(), 5)
        assert kept[0] or not synced
        await house.committer.close()

    asyncio.run(story())


def _is_started(store: ForgetfulStore, session_id: str) -> bool:
    try:
        events = read_events(store, Sealer(store), session_id=session_id)
        return any(isinstance(event, AttemptStarted) for _, event in events)
    except KeyGone:
        return False


def test_the_bytes_that_leave_are_those_of_the_journal_in_every_attempt() -> None:
    async def story() -> None:
        house = House()
        house.targets.connection.lines["read"] = failed()
        await house.ended(await house.open(ONE_ACTION % "read"))
        bodies = {bytes(outgoing.body) for outgoing in house.targets.connection.sent}
        assert bodies == {b'{"action":"read","arguments":{"n":1}}'}
        attempts = [o.context.attempt for o in house.targets.connection.sent]
        assert attempts == [1, 2, 3]
        budgets = [o.context.retry_budget for o in house.targets.connection.sent]
        assert budgets == sorted(budgets, reverse=True)

    run(story())


def test_a_call_cancelled_before_it_was_written_is_never_sent() -> None:
    """The attempt waited for its sync; its session was cancelled meanwhile, yet it left."""

    async def story() -> None:
        house = House()
        session = await house.open("")
        await _pay(house, session)
        view = await house.ended(session)
        assert view.status.value == "CANCELLED"
        assert house.targets.connection.sent == []
        (call,) = house.state(session).calls.values()
        assert call.side_effect is SideEffect.NONE
        house.check_permits()

    run(story())


async def _pay(house: House, session: str) -> None:
    """In one tick: the step is made and admitted, and the client cancels."""
    step = ManualStep(step_type=StepType.TOOL, payload=payload(b'{"action":"pay"}'), step_key="k")
    await asyncio.gather(
        house.service.manual_step(session, step, principal=LOCAL, wait_s=0),
        house.service.cancel(session, LOCAL),
    )


# ---- answers ---------------------------------------------------------------------------


def test_an_answer_after_the_timeout_is_late_and_sharpens() -> None:
    async def story() -> None:
        house = House()
        house.targets.connection.lines["pay"] = Said(response=b'{"output":1}', after_ms=5_500)
        session = await house.open(ONE_ACTION % "pay")
        await house.ended(session)
        await asyncio.sleep(2)
        assert [type(e) for e in house.journal(session)].count(Late) == 1
        (call,) = house.state(session).calls.values()
        assert (call.status, call.side_effect) == (StepStatus.FAILED, SideEffect.PERFORMED)
        assert len(house.recorded) == 2, "the trajectory is delivered anew"
        house.check_permits()

    run(story())


def test_a_late_answer_to_a_deleted_session_disturbs_nobody() -> None:
    """It raised Erased out of the connection's callback."""

    async def story() -> None:
        house = House()
        house.targets.connection.lines["pay"] = Said(response=b'{"output":1}', after_ms=5_900)
        session = await house.open(ONE_ACTION % "pay")
        await house.ended(session)
        await house.service.erase(session, LOCAL)
        problems: list[object] = []
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: problems.append(context))
        await asyncio.sleep(3)
        assert problems == []

    run(story())


def test_a_peer_that_is_overdue_is_told_to_stop() -> None:
    async def story() -> None:
        house = House()
        house.targets.connection.lines["pay"] = None
        session = await house.open(ONE_ACTION % "pay")
        await house.ended(session)
        (sent,) = house.targets.connection.sent
        assert house.targets.connection.cancelled == [(sent.context.call_id, 1)]

    run(story())


def test_an_instance_that_left_between_admission_and_sending_was_not_called() -> None:
    async def story() -> None:
        house = House()
        session = await house.open(ONE_ACTION % "pay")
        house.targets.remove("tools-1.0.0-1")
        view = await house.ended(session)
        assert house.targets.connection.sent == [] or view.status.value == "SUCCEEDED"
        house.check_permits()

    run(story())


# ---- cancel and reset ------------------------------------------------------------------


def test_cancel_reaches_the_peer_and_the_session_ends_with_its_answer() -> None:
    async def story() -> None:
        house = House()
        house.targets.connection.lines["pay"] = None
        house.targets.connection.stops = CancelState.STOPPED
        session = await house.open(ONE_ACTION % "pay")
        await asyncio.sleep(0.5)
        await house.service.cancel(session, LOCAL)
        view = await house.ended(session)
        assert view.status.value == "CANCELLED"
        assert house.targets.connection.resets == []
        house.check_permits()

    run(story())


def test_who_ignores_a_cancel_is_reset_after_the_grace() -> None:
    async def story() -> None:
        house = House()
        house.targets.connection.lines["pay"] = None
        session = await house.open(ONE_ACTION % "pay")
        await asyncio.sleep(0.5)
        await house.service.cancel(session, LOCAL)
        assert (await house.service.view(session, LOCAL)).status.value == "RUNNING"
        await asyncio.sleep(1.1)
        assert (await house.service.view(session, LOCAL)).status.value == "CANCELLED"
        assert len(house.targets.connection.resets) == 1
        (call,) = house.state(session).calls.values()
        assert call.side_effect is SideEffect.UNKNOWN
        house.check_permits()

    run(story())


# ---- operations ------------------------------------------------------------------------

DONE = OperationState(status=OperationStatus.SUCCEEDED, output=payload(b"0.10"))


def test_an_operation_is_polled_and_its_permit_is_free_meanwhile() -> None:
    async def story() -> None:
        house = House()
        house.targets.connection.lines["grow"] = accepted(100)
        house.targets.connection.operations = [refusal(Reason.UNAVAILABLE), DONE]
        session = await house.open(ONE_ACTION % "grow")
        await asyncio.sleep(0.05)
        assert (await house.service.view(session, LOCAL)).status.value == "WAITING"
        assert house.executors.inflight == 0
        view = await house.ended(session)
        assert bytes(view.output) == b"0.10"
        house.check_permits()

    run(story())


def test_an_operation_that_is_not_known_any_more_ends_unknown() -> None:
    async def story() -> None:
        house = House()
        house.targets.connection.lines["grow"] = accepted(100)
        house.targets.connection.operations = [refusal(Reason.NOT_FOUND)]
        session = await house.open(ONE_ACTION % "grow")
        view = await house.ended(session)
        assert view.error is not None
        assert (view.error.reason, view.error.side_effect) == ("NOT_FOUND", SideEffect.UNKNOWN)

    run(story())


def test_a_stopped_operation_ends_the_cancelled_session_at_once() -> None:
    async def story() -> None:
        house = House()
        house.targets.connection.lines["grow"] = accepted(100)
        house.targets.connection.stops = CancelState.STOPPED
        session = await house.open(ONE_ACTION % "grow")
        await asyncio.sleep(0.05)
        await house.service.cancel(session, LOCAL)
        await asyncio.sleep(0.05)
        assert (await house.service.view(session, LOCAL)).status.value == "CANCELLED"
        ended = [e for e in house.journal(session) if isinstance(e, OperationEnded)]
        assert [e.side_effect for e in ended] == [SideEffect.NONE]
        await asyncio.sleep(5)
        assert not house.driver.timers._handles, "no timer of an ended session stays"

    run(story())


# ---- admission -------------------------------------------------------------------------


def test_a_full_instance_defers_and_every_deferred_call_starts_when_it_can() -> None:
    async def story() -> None:
        house = House(parameters=slots(1, queue=100))
        plan = planned(*(goal(f"g{n}", "put") for n in range(5)))
        house.targets.connection.lines["plan"] = plan
        at_once: list[int] = []
        house.targets.connection.on_send = lambda outgoing: at_once.append(house.executors.inflight)
        session = await house.open(FOUR_CALLS)
        assert (await house.ended(session)).status.value == "SUCCEEDED"
        assert max(at_once) == 1
        deferred = [e for e in house.journal(session) if isinstance(e, Deferred)]
        assert len(deferred) == 4
        waits = [e.wait_ms for e in house.journal(session) if isinstance(e, AttemptStarted)]
        assert waits == [0, 0, 5, 10, 15, 20, 0, 0]
        house.check_permits()

    run(story())


def test_a_slot_freed_for_a_cancelled_session_goes_to_the_next_that_waits() -> None:
    """The wake went to the cancelled one and was lost: the third waited until its deadline."""

    async def story() -> None:
        house = House(parameters=slots(1, queue=100))
        house.targets.connection.lines["put"] = Said(response=b'{"output":1}', after_ms=1_000)
        first, second, third = [await house.open(ONE_ACTION % "put") for _ in range(3)]
        await asyncio.sleep(0.1)
        await house.service.cancel(second, LOCAL)
        await asyncio.sleep(2.5)
        statuses = [
            (await house.service.view(s, LOCAL)).status.value for s in (first, second, third)
        ]
        assert statuses == ["SUCCEEDED", "CANCELLED", "SUCCEEDED"]
        house.check_permits()

    run(story())


def test_a_slot_freed_for_one_that_must_wait_elsewhere_goes_to_the_next() -> None:
    async def story() -> None:
        house = House(cards=CARDS_OF_TWO, parameters=slots(1, queue=2))
        house.targets.connection.lines["put"] = Said(response=b'{"output":1}', after_ms=1_000)
        house.targets.connection.lines["other"] = Said(response=b'{"output":1}', after_ms=100)
        opened = [await house.open(ONE_ACTION % name) for name in ("put", "other", "put", "other")]
        for session in opened:
            assert (await house.ended(session)).status.value == "SUCCEEDED"
        order = [o.context.session_id for o in house.targets.connection.sent]
        assert order == [opened[0], opened[1], opened[3], opened[2]]
        house.check_permits()

    run(story())


def test_a_full_queue_refuses_and_the_call_is_retried_like_any_other() -> None:
    async def story() -> None:
        house = House(parameters=slots(1, waiting=0))
        house.targets.connection.lines["put"] = Said(response=b'{"output":1}', after_ms=300)
        first = await house.open(ONE_ACTION % "put")
        second = await house.open(ONE_ACTION % "put")
        assert (await house.ended(first)).status.value == "SUCCEEDED"
        assert (await house.ended(second)).status.value == "SUCCEEDED"
        refused = [e for e in house.journal(second) if isinstance(e, Refused)]
        assert refused[0].error.reason == "OVERLOADED"
        house.check_permits()

    run(story())


def test_while_an_operation_runs_a_sibling_may_take_its_time() -> None:
    """Its time left was counted against a deadline that stands still, and it was refused."""

    async def story() -> None:
        house = House()
        plan = planned(goal("a", "grow"), goal("b", "put"), goal("c", "read", depends_on=["b"]))
        house.targets.connection.lines["plan"] = plan
        house.targets.connection.lines["grow"] = accepted(3_000)
        house.targets.connection.lines["put"] = Said(response=b'{"output":1}', after_ms=500)
        house.targets.connection.lines["read"] = failed(retry_after_ms=800)
        house.targets.connection.operations = [DONE]
        session = await house.open(FOUR_CALLS, deadline_ms=1_000)
        await asyncio.sleep(2.9)
        house.targets.connection.lines["read"] = gave(1)
        attempts = [e for e in house.journal(session) if isinstance(e, AttemptEnded)]
        assert not [e for e in house.journal(session) if isinstance(e, Refused)]
        assert len(attempts) >= 4

    run(story())


def test_nothing_starts_while_the_gateway_drains() -> None:
    async def story() -> None:
        house = House()
        house.executors.admitting.stopped = True
        session = await house.open(ONE_ACTION % "read")
        await asyncio.sleep(1)
        assert house.targets.connection.sent == []
        await house.executors.idle()
        again = House(store=house.store, targets=house.targets)
        await again.resume()
        assert (await again.ended(session)).status.value == "SUCCEEDED"

    run(story())


def test_an_answer_is_a_sign_of_life_and_silence_is_not() -> None:
    async def story() -> None:
        house = House()
        house.targets.connection.lines["pay"] = None
        await house.ended(await house.open(ONE_ACTION % "pay"))
        assert house.targets.heard_of == []
        await house.ended(await house.open(ONE_ACTION % "read"))
        assert house.targets.heard_of == ["tools-1.0.0-1"]

    run(story())


def test_an_error_answer_keeps_what_the_component_said() -> None:
    async def story() -> None:
        house = House()
        said = error(Reason.SEMANTIC_MISMATCH, "cents, not euros", side_effect=SideEffect.NONE)
        house.targets.connection.lines["pay"] = Said(error=said)
        view = await house.ended(await house.open(ONE_ACTION % "pay"))
        assert view.error == msgspec.structs.replace(said)

    run(story())


class SlowDisk(ForgetfulStore):
    """Once `is_slow` a sync takes longer than a key lives."""

    def __init__(self) -> None:
        super().__init__()
        self.is_slow = False
        self.clock = SkewedClock()

    def sync(self) -> None:
        super().sync()
        self.clock.skew_ms += 400 if self.is_slow else 0


class OnLoop:
    """A sync thread that takes no real time, so that virtual time does not run away from it."""

    def put(self, job: Callable[[], None]) -> None:
        asyncio.get_running_loop().call_soon(job)

    async def close(self) -> None:
        """Nothing is left behind."""


def test_what_a_slow_disk_held_up_beyond_its_key_is_not_sent() -> None:
    """The key was young when the attempt was admitted, and forgotten when its sync was back."""

    async def story() -> None:
        disk = SlowDisk()
        house = House(store=disk, sync=True, clock=disk.clock)
        house.committer._worker = OnLoop()
        house.targets.connection.lines["brief"] = failed(Reason.UNAVAILABLE, SideEffect.UNKNOWN)

        def then_slow(outgoing: Outgoing) -> None:
            disk.is_slow = True

        house.targets.connection.on_send = then_slow
        view = await house.ended(await house.open(ONE_ACTION % "brief"))
        assert [one.context.attempt for one in house.targets.connection.sent] == [1]
        assert view.error is not None
        assert view.error.reason == "RETRY_UNSAFE"

    run(story())
