"""One runner per call_id: the rules of BY_KEY over every binding, then against a model at
random.
"""

import asyncio
from pathlib import Path

import msgspec
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from acp_spec.model.calls import (
    ErrorBody,
    Observation,
    ObserveRequest,
    ObserveResponse,
)
from acp_spec.model.enums import Effect, Idempotency, SideEffect
from acp_spec.model.errors import AcpFailure, Reason
from acp_spec.sdk.call import Call
from acp_spec.sdk.callbook import Begun, CallBook, First, Lost, Remembered, Waiter
from acp_spec.sdk.client import ComponentClient
from acp_spec.sdk.component import Component
from acp_spec.sdk.outcome_file import FileOutcomes
from acp_spec.sdk.outcomes import MemoryOutcomes, OutcomesUnavailable, Record
from acp_spec.sdk.testing import InProcess, ManualClock, build_context, settle_loop
from acp_spec.sdk.tests.served import Binding, again, execute, output_of, reason_of, tell


def test_an_observation_is_stored_once_however_often_it_is_sent(binding: Binding) -> None:
    component = Component("memory", "1.0.0")
    stored: list[str] = []

    @component.observe
    def observe(request: ObserveRequest, call: Call) -> ObserveResponse:
        stored.extend(observation.kind for observation in request.observations)
        return ObserveResponse(stored=len(request.observations))

    async def story(client: ComponentClient) -> None:
        request = ObserveRequest(
            context=build_context(), observations=(Observation(kind="a"), Observation(kind="b"))
        )
        second = msgspec.structs.replace(
            request, context=msgspec.structs.replace(request.context, attempt=2)
        )
        for sent in (request, second):
            answer = await client.observe(sent)
            assert isinstance(answer, ObserveResponse)
            assert answer.stored == 2
        assert stored == ["a", "b"]

    tell(component, binding, story)


def test_a_repeated_call_id_gets_the_remembered_outcome(binding: Binding) -> None:
    component = Component("counter", "1.0.0")
    ran: list[object] = []

    @component.action("add", idempotency=Idempotency.BY_KEY)
    def add(arguments: object, call: Call) -> object:
        ran.append(arguments)
        return {"ran": len(ran)}

    async def story(client: ComponentClient) -> None:
        request = execute("add")
        first = await client.execute(request)
        repeated = await client.execute(again(request, attempt=2))
        assert output_of(first) == output_of(repeated)
        assert len(ran) == 1
        other = msgspec.structs.replace(
            request, context=msgspec.structs.replace(request.context, body_digest="0" * 64)
        )
        assert reason_of(await client.execute(other)) == Reason.IDEMPOTENCY_CONFLICT.value
        assert reason_of(await client.execute(request)) == Reason.STALE_ATTEMPT.value

    tell(component, binding, story)


def test_a_repeat_waits_for_the_first_and_gets_its_outcome(binding: Binding) -> None:
    component = Component("slow", "1.0.0")
    started = asyncio.Event()
    go_on = asyncio.Event()
    ran: list[int] = []

    @component.action("add", idempotency=Idempotency.BY_KEY)
    async def add(arguments: object, call: Call) -> object:
        ran.append(call.context.attempt)
        started.set()
        await go_on.wait()
        return {"attempt": call.context.attempt}

    async def story(client: ComponentClient) -> None:
        request = execute("add")
        first = asyncio.ensure_future(client.execute(request))
        await started.wait()
        hasty = again(request, attempt=2)
        hasty = msgspec.structs.replace(
            hasty, context=msgspec.structs.replace(hasty.context, timeout_ms=20)
        )
        in_progress = await client.execute(hasty)
        assert isinstance(in_progress, ErrorBody)
        assert in_progress.error.reason == Reason.CALL_IN_PROGRESS.value
        assert in_progress.error.retryable
        patient = asyncio.ensure_future(client.execute(again(request, attempt=3)))
        go_on.set()
        assert output_of(await first) == output_of(await patient) == b'{"attempt":1}'
        assert ran == [1]

    tell(component, binding, story)


def test_a_failure_without_effect_may_be_tried_again_and_one_with_effect_not(
    binding: Binding,
) -> None:
    component = Component("flaky", "1.0.0")
    ran: list[int] = []

    @component.action("add", idempotency=Idempotency.BY_KEY)
    def add(arguments: object, call: Call) -> object:
        ran.append(call.context.attempt)
        effects = {1: SideEffect.NONE, 2: SideEffect.UNKNOWN}
        raise call.fail(
            Reason.UNAVAILABLE,
            f"attempt {call.context.attempt}",
            side_effect=effects[call.context.attempt],
        )

    async def story(client: ComponentClient) -> None:
        request = execute("add")
        await client.execute(request)
        second = await client.execute(again(request, attempt=2))
        third = await client.execute(again(request, attempt=3))
        assert isinstance(second, ErrorBody)
        assert isinstance(third, ErrorBody)
        assert second.error == third.error
        assert ran == [1, 2]

    tell(component, binding, story)


def test_a_write_cut_off_by_its_deadline_is_finished_and_found_by_the_repeat() -> None:
    component = Component("slow", "1.0.0")
    go_on = asyncio.Event()
    started = asyncio.Event()
    clock = ManualClock()

    @component.action("add", idempotency=Idempotency.BY_KEY)
    async def add(arguments: object, call: Call) -> object:
        started.set()
        while True:
            try:
                await go_on.wait()
            except asyncio.CancelledError:
                continue
            return "done after all"

    async def story() -> None:
        async with InProcess(component, clock=clock) as client:
            request = execute("add", timeout_ms=1000)
            late = asyncio.ensure_future(client.execute(request))
            await started.wait()
            clock.advance(1000)
            assert reason_of(await late) == Reason.TIMEOUT.value
            go_on.set()
            await settle_loop()
            found = await client.execute(again(request, attempt=2))
            assert output_of(found) == b'"done after all"'

    asyncio.run(story())


def test_after_its_ttl_an_outcome_is_forgotten() -> None:
    component = Component("short", "1.0.0")
    clock = ManualClock()
    ran: list[int] = []

    @component.action("add", idempotency=Idempotency.BY_KEY, idempotency_ttl_ms=1000)
    async def add(arguments: object, call: Call) -> object:
        ran.append(call.context.attempt)
        return None

    async def story() -> None:
        async with InProcess(component, clock=clock) as client:
            request = execute("add")
            await client.execute(request)
            clock.advance(999)
            await client.execute(again(request, attempt=2))
            assert ran == [1]
            clock.advance(1)
            await client.execute(again(request, attempt=3))
            assert ran == [1, 3]

    asyncio.run(story())


def test_a_full_store_refuses_new_calls_and_forgets_no_outcome() -> None:
    component = Component("full", "1.0.0", outcomes=MemoryOutcomes(outcomes_max=1))

    @component.action("add", idempotency=Idempotency.BY_KEY)
    async def add(arguments: object, call: Call) -> object:
        return "kept"

    async def story() -> None:
        async with InProcess(component) as client:
            request = execute("add")
            await client.execute(request)
            refused = await client.execute(execute("add"))
            assert reason_of(refused) == Reason.OVERLOADED.value
            assert output_of(await client.execute(again(request, attempt=2))) == b'"kept"'

    asyncio.run(story())


def bank(outcomes: FileOutcomes, ran: list[int]) -> Component:
    component = Component("bank", "1.0.0", outcomes=outcomes)

    @component.action("transfer", idempotency=Idempotency.BY_KEY, effect=Effect.WRITE)
    async def transfer(arguments: object, call: Call) -> object:
        ran.append(call.context.attempt)
        await call.cancelled
        return None

    @component.action("pay", idempotency=Idempotency.BY_KEY)
    async def pay(arguments: object, call: Call) -> object:
        ran.append(call.context.attempt)
        return {"paid": True}

    return component


def test_a_file_remembers_outcomes_over_a_restart(tmp_path: Path) -> None:
    ran: list[int] = []

    async def story() -> None:
        request = execute("pay")
        for attempt in (1, 2):
            outcomes = FileOutcomes(tmp_path / "outcomes.db")
            async with InProcess(bank(outcomes, ran)) as client:
                answer = await client.execute(again(request, attempt=attempt))
                assert output_of(answer) == b'{"paid":true}'
        assert ran == [1]

    asyncio.run(story())


def test_a_call_that_a_crash_interrupted_is_unknown_and_never_run_again(tmp_path: Path) -> None:
    ran: list[int] = []

    async def story() -> None:
        request = execute("transfer")
        outcomes = FileOutcomes(tmp_path / "outcomes.db")
        book = CallBook(outcomes, ManualClock(wall_ms=4e12))
        context = request.context
        await book.begin(
            context.call_id, attempt=1, digest=context.body_digest, ttl_ms=1e12
        )  # and here the process died
        outcomes.close()
        after = FileOutcomes(tmp_path / "outcomes.db")
        async with InProcess(bank(after, ran)) as client:
            answer = await client.execute(again(request, attempt=2))
            assert isinstance(answer, ErrorBody)
            assert answer.error.side_effect is SideEffect.UNKNOWN
            assert "restarted" in answer.error.message
        assert ran == []

    asyncio.run(story())


class Broken(MemoryOutcomes):
    """A store that cannot be written."""

    async def put(self, record: Record) -> None:
        raise OutcomesUnavailable("the disk is full")


def test_a_store_that_cannot_be_written_refuses_before_anything_ran() -> None:
    component = Component("bank", "1.0.0", outcomes=Broken())

    @component.action("pay", idempotency=Idempotency.BY_KEY)
    async def pay(arguments: object, call: Call) -> object:
        raise AssertionError("must not run")

    async def story() -> None:
        async with InProcess(component) as client:
            answer = await client.execute(execute("pay"))
            assert isinstance(answer, ErrorBody)
            assert answer.error.reason == Reason.UNAVAILABLE.value
            assert answer.error.side_effect is SideEffect.NONE
            assert "disk" not in answer.error.message

    asyncio.run(story())


class CallBookMachine(RuleBasedStateMachine):
    """Any order of begins and ends: the model is a dict of what each call_id must answer."""

    calls = st.sampled_from(["a", "b"])
    digests = st.sampled_from(["x", "y"])

    @initialize()
    def start(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.clock = ManualClock()
        self.book = CallBook(MemoryOutcomes(), self.clock)
        self.running: dict[str, First] = {}
        self.digest: dict[str, str] = {}
        self.seen: dict[str, int] = {}
        self.outcome: dict[str, bytes | None] = {}
        self.expires: dict[str, float] = {}

    def teardown(self) -> None:
        if hasattr(self, "loop"):
            self.loop.close()

    @rule(call=calls, digest=digests, attempt=st.integers(1, 4))
    def begin(self, call: str, digest: str, attempt: int) -> None:
        self._expire(call)
        begun = self._begun(call, digest, attempt)
        if isinstance(begun, str):
            conflict = self.digest[call] != digest
            assert conflict or attempt < self.seen[call]
            expected = Reason.IDEMPOTENCY_CONFLICT if conflict else Reason.STALE_ATTEMPT
            assert begun == expected.value
            return
        assert self.digest.setdefault(call, digest) == digest
        assert attempt >= self.seen.get(call, 0)
        self.seen[call] = attempt
        match begun:
            case First():
                assert call not in self.running
                assert self.outcome.get(call) is None
                self.running[call] = begun
                self.expires[call] = self.clock.wall_ms() + 100
            case Waiter(flight=flight):
                assert self.running[call].flight is flight
            case Remembered(outcome=outcome):
                assert outcome == self.outcome[call]
            case Lost():
                raise AssertionError("nothing is lost while the process lives")

    @rule(call=calls, outcome=st.sampled_from([b"done", b"failed", None]))
    def end(self, call: str, outcome: bytes | None) -> None:
        if call not in self.running:
            return
        flight = self.running.pop(call).flight
        self.loop.run_until_complete(self.book.settle(flight, outcome=outcome, ttl_ms=100))
        assert flight.settled.is_set()
        self.outcome[call] = outcome
        self.expires[call] = self.clock.wall_ms() + 100

    @rule(by_ms=st.sampled_from([1, 60, 100]))
    def wait(self, by_ms: int) -> None:
        self.clock.advance(by_ms)

    @invariant()
    def every_runner_is_alone(self) -> None:
        for call, first in getattr(self, "running", {}).items():
            assert first.flight.call_id == call
            assert not first.flight.settled.is_set()

    def _begun(self, call: str, digest: str, attempt: int) -> Begun | str:
        """What the book says; for a refusal its reason."""
        begin = self.book.begin(call, attempt=attempt, digest=digest, ttl_ms=100)
        try:
            return self.loop.run_until_complete(begin)
        except AcpFailure as failure:
            return failure.error.reason

    def _expire(self, call: str) -> None:
        over = call in self.expires and self.expires[call] <= self.clock.wall_ms()
        if over and call not in self.running:
            for known in (self.digest, self.seen, self.outcome, self.expires):
                known.pop(call, None)


TestCallBookAgainstItsModel = CallBookMachine.TestCase
TestCallBookAgainstItsModel.settings = settings(max_examples=60, stateful_step_count=30)
