"""What is known of the fourth signal: awaited, kept, found out again when it is old."""

import asyncio
from collections.abc import Coroutine

from acp_spec.bindings.errors import error
from acp_spec.model.errors import AcpFailure, Reason
from gateway.runtime.clock import ManualClock
from gateway.runtime.dashboard.variance import (
    AWAITED,
    BUSY,
    FRESH_MS,
    WAITING_MAX,
    Computed,
    VarianceAsked,
    Variances,
)


def asked(workflow: str = "hotline", *, tenant: str = "default", to_ms: int = 300) -> VarianceAsked:
    return VarianceAsked(tenant, workflow, from_ms=to_ms - 200, middle_ms=to_ms - 100, to_ms=to_ms)


class Story:
    """Variances over a computation that a test ends."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.begun: list[VarianceAsked] = []
        self.go = asyncio.Event()
        self.found: Computed | AcpFailure = Computed(0.25)
        self.variances = Variances(self._compute, self.clock)

    async def _compute(self, one: VarianceAsked) -> Computed:
        self.begun.append(one)
        await self.go.wait()
        if isinstance(self.found, AcpFailure):
            raise self.found
        return self.found

    async def settled(self) -> None:
        self.go.set()
        for _ in range(50):
            await asyncio.sleep(0)


def run(story: Coroutine[object, object, None]) -> None:
    asyncio.run(story)


def test_the_first_to_ask_waits_for_nothing_and_the_next_gets_the_figure_with_its_time() -> None:
    async def story() -> None:
        one = Story()
        first = one.variances.told(asked())
        assert (first.value, first.reason, first.computed_at) == (None, AWAITED, None)
        await one.settled()
        found = one.variances.told(asked(to_ms=400))  # a little later: the same question
        assert (found.value, found.reason) == (0.25, "")
        assert found.computed_at == one.clock.now_ms()
        assert (found.from_ms, found.to_ms) == (200, 300)
        assert one.variances.gauge() == {"hotline": 0.25}
        assert len(one.begun) == 1

    run(story())


def test_an_old_figure_is_shown_while_a_new_one_is_found() -> None:
    async def story() -> None:
        one = Story()
        one.variances.told(asked())
        await one.settled()
        one.clock.advance(FRESH_MS)
        one.found = Computed(reason="too few")
        assert one.variances.told(asked()).value == 0.25
        await one.settled()
        found = one.variances.told(asked())
        assert (found.value, found.reason) == (None, "too few")
        assert one.variances.gauge() == {}

    run(story())


def test_what_cannot_be_computed_is_a_reason_and_no_failure() -> None:
    async def story() -> None:
        one = Story()
        one.found = AcpFailure(error(Reason.UNIMPLEMENTED, "this needs numpy"))
        one.variances.told(asked())
        await one.settled()
        assert one.variances.told(asked()).reason == "this needs numpy"

    run(story())


def test_one_is_computed_at_a_time_few_wait_and_a_tenant_gets_its_own() -> None:
    async def story() -> None:
        one = Story()
        for number in range(WAITING_MAX):
            assert one.variances.told(asked(f"w{number}")).reason == AWAITED
            assert one.variances.told(asked(f"w{number}")).reason == AWAITED
        assert one.variances.told(asked("one more")).reason == BUSY
        await asyncio.sleep(0)
        assert len(one.begun) == 1
        await one.settled()
        one.found = Computed(0.5)
        one.variances.told(asked("w1", tenant="bank"))
        await one.settled()
        assert one.variances.told(asked("w1", tenant="bank")).value == 0.5
        assert one.variances.told(asked("w1")).value == 0.25
        assert one.variances.gauge()["w1"] == 0.25

    run(story())


def test_closing_breaks_off_what_is_under_way() -> None:
    async def story() -> None:
        one = Story()
        one.variances.told(asked())
        await asyncio.sleep(0)
        await one.variances.close()
        assert one.variances.told(asked()).reason == AWAITED
        await one.variances.close()

    run(story())
