"""Rules answer after a row of failures, call nobody, and give way again; drills try them."""

import asyncio
from typing import Any

import msgspec
import pytest

from acp_spec.bindings.errors import error
from acp_spec.model.enums import Mode, SessionStatus
from acp_spec.model.errors import AcpFailure, Reason
from acp_spec.model.payload import payload
from acp_spec.model.session import FinishRequest, SessionView
from acp_spec.model.trajectory import FallbackRow, Trajectory
from gateway.engine.replay import check
from gateway.engine.tests.stage import ONE_ACTION, failed, gave
from gateway.governance.fallback_track import Standing
from gateway.governance.queue_delay import QueueDelay
from gateway.runtime.fallback_drills import DrillOutcome, DrillParts, Drills
from gateway.runtime.fallbacks import KEPT_EVERY_MS, Fallbacks
from gateway.runtime.intake import Asking, Intake
from gateway.runtime.observing import Observers
from gateway.runtime.principal import LOCAL, Principal
from gateway.runtime.tests.house import House
from gateway.runtime.tests.virtual_time import run
from gateway.stores.memory import MemoryStore
from gateway.telemetry.metrics import Metrics

RULES = """
contract:
  output_schema: {type: object, required: [to]}
  fallback:
    version: "r1"
    after_failures: 3
    probe_every: 4
    return_after: 2
    rules:
      - {name: small, when: "input.n < 10", output: {to: clerk}}
      - {name: odd, when: "input.n == 666", output: "input.missing"}
      - {name: loose, when: "input.n == 777", output: {from: nobody}}
      - {name: rest, output: "{'to': input.branch}"}
    drill:
      every_ms: 60000
      keep: 3
      inputs:
        - {input: {n: 1}, rule: small, output: {to: clerk}}
        - {input: {n: 50, branch: north}, rule: rest, output: {to: north}}
"""
WORKFLOW = ONE_ACTION % "read" + "recovery: {policy: backoff, base_ms: 1}\n" + RULES
BROKEN = failed(Reason.UNAVAILABLE)
DEADLINE_MS = 30_000
GIVEN = payload(b'{"n":5}')


class Bank:
    """A house whose sessions may be answered by rules."""

    def __init__(self, *, store: MemoryStore | None = None) -> None:
        self.house = House(store=store)
        self.metrics = Metrics()
        self.fallbacks = Fallbacks(
            self.house.store,
            self.house.committer,
            clock=self.house.clock,
            metrics=self.metrics,
            session_deadline_ms=DEADLINE_MS,
        )
        self.house.driver._observer = Observers(self.house.seen, self.fallbacks)
        self.house.service._openings.fallbacks = self.fallbacks
        self.drills = Drills(
            DrillParts(
                fallbacks=self.fallbacks,
                workflows=self.house.workflows,
                store=self.house.store,
                sealer=self.house.sealer,
                durable=self.house.committer,
                clock=self.house.clock,
                metrics=self.metrics,
            )
        )

    def breaks(self, *, broken: bool = True) -> None:
        self.house.targets.connection.lines["read"] = BROKEN if broken else gave({"to": "agent"})

    @property
    def sent(self) -> int:
        return len(self.house.targets.connection.sent)

    async def ask(
        self, text: bytes = b'{"n":5}', *, principal: Principal = LOCAL, **fields: object
    ) -> SessionView:
        """One session, to its end."""
        given: Any = {"input": payload(text), **fields}
        session = await self.house.open(WORKFLOW, principal=principal, **given)
        return await self.house.ended(session, principal)

    async def name(self) -> str:
        return (await self.house.learn(WORKFLOW)).partition("@")[0]

    async def standing(self, tenant: str = LOCAL.tenant) -> Standing:
        return self.fallbacks.track(await self.name(), tenant).standing

    async def trip(self) -> None:
        self.breaks()
        for _ in range(3):
            assert (await self.ask()).status is SessionStatus.FAILED
        assert await self.standing() is Standing.RULES


def test_after_a_row_of_failures_the_rules_answer_and_nobody_is_called() -> None:
    async def story() -> None:
        bank = Bank()
        await bank.trip()
        before = bank.sent
        view = await bank.ask()
        assert (view.status, view.fell_back) == (SessionStatus.SUCCEEDED, True)
        assert bytes(view.output) == b'{"to":"clerk"}'
        assert bank.sent == before
        text = await bank.house.service.trajectory(view.session_id, LOCAL)
        record = msgspec.json.decode(text, type=Trajectory)
        assert record.fallback == FallbackRow(rule="small", version="r1")
        assert record.fell_back
        assert record.calls == ()
        found = check(
            bank.house.journal(view.session_id), bank.house.state(view.session_id).workflow
        )
        assert found.proven, found.difference

    run(story())


def test_one_session_in_k_tries_the_components_and_enough_successes_lead_back() -> None:
    async def story() -> None:
        bank = Bank()
        await bank.trip()
        bank.breaks(broken=False)
        outputs = [bytes((await bank.ask()).output) for _ in range(8)]
        agent, rules = b'{"to":"agent"}', b'{"to":"clerk"}'
        assert outputs == [rules, rules, rules, agent] * 2
        assert await bank.standing() is Standing.AGENTIC
        assert bytes((await bank.ask()).output) == agent

    run(story())


class Shut(Intake):
    """A gate that lets nobody in: the queue at the components is long."""

    def __init__(self, house: House) -> None:
        super().__init__(house.admission, house.targets.catalog, law=QueueDelay)
        self.asked = 0

    def admit(self, asking: Asking) -> None:
        self.asked += 1
        raise AcpFailure(error(Reason.OVERLOADED, "a queue stands", retry_after_ms=100))


def test_rules_answer_behind_any_queue_and_a_probe_that_is_not_let_in_is_answered_by_them() -> None:
    """Every second one was refused OVERLOADED, for the queue at components that nobody calls."""

    async def story() -> None:
        bank = Bank()
        await bank.trip()
        shut = bank.house.service._openings.intake = Shut(bank.house)
        before = bank.sent
        views = [await bank.ask() for _ in range(8)]
        assert [view.status for view in views] == [SessionStatus.SUCCEEDED] * 8
        assert all(view.fell_back for view in views)
        assert (shut.asked, bank.sent - before) == (2, 0), "only the two probes ask the gate"
        with pytest.raises(AcpFailure, match="a queue stands"):
            await bank.house.open(ONE_ACTION % "read")
        bank.house.service._openings.intake = None
        views = [await bank.ask() for _ in range(4)]
        assert [view.fell_back for view in views] == [True, True, True, False], "one in four again"

    run(story())


def test_a_failed_probe_is_told_as_what_it_was() -> None:
    async def story() -> None:
        bank = Bank()
        await bank.trip()
        views = [await bank.ask() for _ in range(4)]
        assert [view.fell_back for view in views] == [True, True, True, False]
        assert views[3].status is SessionStatus.FAILED
        opened = bank.house.state(views[3].session_id).opened
        assert opened.fallback == FallbackRow(probe=True, version="r1")
        assert await bank.standing() is Standing.RULES

    run(story())


def test_tenants_stand_for_themselves() -> None:
    async def story() -> None:
        bank = Bank()
        await bank.trip()
        other = Principal(tenant="other", scopes=LOCAL.scopes, subject="x")
        view = await bank.ask(principal=other)
        assert (view.status, view.fell_back) == (SessionStatus.FAILED, False)
        assert await bank.standing("other") is Standing.AGENTIC

    run(story())


def test_what_a_client_does_is_never_a_failure() -> None:
    async def story() -> None:
        bank = Bank()
        bank.house.targets.connection.lines["read"] = msgspec.structs.replace(
            gave({"to": "agent"}), after_ms=2_000
        )
        for _ in range(4):
            view = await bank.ask(deadline_ms=100)
            assert view.error is not None
            assert view.error.reason == "TIMEOUT"
        for _ in range(4):
            session = await bank.house.open(WORKFLOW, input=GIVEN)
            await bank.house.service.cancel(session, LOCAL)
            await bank.house.ended(session)
        assert bank.fallbacks.track(await bank.name(), LOCAL.tenant).failures == 0
        for _ in range(3):
            await bank.ask(deadline_ms=DEADLINE_MS)
        assert await bank.standing() is Standing.AGENTIC

    run(story())


def test_manual_sessions_go_their_own_way() -> None:
    async def story() -> None:
        bank = Bank()
        await bank.trip()
        session = await bank.house.open(WORKFLOW, mode=Mode.MANUAL)
        assert bank.house.state(session).opened.fallback is None

    run(story())


def test_what_a_person_finished_by_hand_says_nothing_of_the_components() -> None:
    async def story() -> None:
        bank = Bank()
        bank.breaks()
        for _ in range(2):
            await bank.ask()
        session = await bank.house.open(WORKFLOW, mode=Mode.MANUAL)
        done = FinishRequest(output=payload(b'{"to":"me"}'))
        view = await bank.house.service.finish(session, done, principal=LOCAL)
        assert view.status is SessionStatus.SUCCEEDED
        await bank.ask()
        assert await bank.standing() is Standing.RULES, "three in a row, whatever was by hand"

    run(story())


@pytest.mark.parametrize(
    ("given", "told"),
    [(b'{"n":666}', "rule 'odd'"), (b'{"n":777}', "output_schema"), (b"{}", "rule 'small'")],
)
def test_an_answer_that_is_none_fails_the_session_and_says_so(given: bytes, told: str) -> None:
    async def story() -> None:
        bank = Bank()
        await bank.trip()
        view = await bank.ask(given)
        assert (view.status, view.fell_back) == (SessionStatus.FAILED, True)
        assert view.error is not None
        assert view.error.reason == "CONTRACT_VIOLATION"
        assert told in view.error.message

    run(story())


def test_a_restart_stands_where_the_gateway_stood() -> None:
    async def story() -> None:
        store = MemoryStore()
        bank = Bank(store=store)
        await bank.trip()
        await bank.house.committer.synced()
        again = Bank(store=store)
        assert await again.standing() is Standing.RULES
        assert (await again.ask()).fell_back
        assert again.drills.answering() == 1

    run(story())


def test_a_drill_answers_given_and_recorded_inputs_and_sends_nothing() -> None:
    async def story() -> None:
        bank = Bank()
        bank.breaks(broken=False)
        await bank.ask(b'{"n":50,"branch":"south"}')
        sent, events = bank.sent, len(bank.house.seen.events)
        result = await bank.drills.run(await bank.name(), tenant=LOCAL.tenant, by="me")
        assert (result.outcome, result.inputs, result.failed) == (DrillOutcome.PASSED, 3, 0)
        assert result.answered_by == {"small": 1, "rest": 2}
        assert result.never_asked == ("odd", "loose")
        assert (bank.sent, len(bank.house.seen.events)) == (sent, events)

    run(story())


def test_a_drill_that_finds_a_fault_names_the_input_is_counted_and_kept() -> None:
    async def story() -> None:
        store = MemoryStore()
        bank = Bank(store=store)
        bank.breaks(broken=False)
        session = (await bank.ask(b'{"n":777}')).session_id
        result = await bank.drills.run(await bank.name(), tenant=LOCAL.tenant, by="me")
        assert result.outcome is DrillOutcome.FAILED
        (failure,) = result.failures
        assert (failure.source, failure.rule) == (session, "loose")
        assert "output_schema" in failure.message
        assert bank.drills.failing() == 1
        again = Bank(store=store).drills
        assert again.one(await bank.name(), tenant=LOCAL.tenant).drill == result
        _, text = bank.metrics.render()
        assert b'outcome="FAILED"' in text

    run(story())


WRONG = WORKFLOW.replace("rule: small, output: {to: clerk}}", "rule: small, output: {to: cash}}", 2)
ACME = Principal(tenant="acme", scopes=LOCAL.scopes, subject="a")


@pytest.mark.parametrize(("newer", "answering"), [(WORKFLOW, 1), (WORKFLOW.replace(RULES, ""), 0)])
def test_what_another_version_was_found_to_be_is_no_alarm_any_more(
    newer: str, answering: int
) -> None:
    """The gauges said for ever what had been true of rules that were mended, or gone."""

    async def story() -> None:
        bank = Bank()
        name = (await bank.house.learn(WRONG)).partition("@")[0]
        assert bank.drills.tick() == 1, "no session has ended yet: drilled for the default tenant"
        bank.breaks()
        for _ in range(3):
            session = await bank.house.open(WRONG, principal=ACME, input=GIVEN)
            await bank.house.ended(session, ACME)
        assert bank.drills.tick() == 1
        assert (bank.drills.answering(), bank.drills.failing()) == (1, 2)
        source = newer.replace("version: 1.0.0", "version: 1.1.0", 1)
        own = source.replace(source.split("\n", 2)[1], f"workflow: {name}", 1)
        await bank.house.workflows.put(name, "1.1.0", source=own.encode())
        await bank.house.workflows.activate(name, "1.1.0")
        assert bank.drills.tick() == answering
        assert (bank.drills.answering(), bank.drills.failing()) == (answering, 0)

    run(story())


def test_drills_come_when_they_are_due_and_a_new_version_is_drilled_at_once() -> None:
    async def story() -> None:
        bank = Bank()
        clock = bank.house.clock
        name = await bank.name()
        assert bank.drills.tick() == 1
        assert bank.drills.tick() == 0
        first = bank.drills.one(name, tenant=LOCAL.tenant).drill
        assert first is not None
        assert (first.by, first.outcome) == ("schedule", DrillOutcome.PASSED)
        await asyncio.sleep(59)
        assert bank.drills.tick() == 0
        await asyncio.sleep(2)
        assert bank.drills.tick() == 1
        assert clock.now_ms() > first.at_ms
        workflow = bank.house.workflows.resolve(name)
        source = bank.house.workflows.stored(name, workflow.version).source
        newer = source.replace("version: 1.0.0", "version: 1.1.0", 1).encode()
        await bank.house.workflows.put(name, "1.1.0", source=newer)
        assert bank.drills.tick() == 0, "what is not active is not drilled"
        await bank.house.workflows.activate(name, "1.1.0")
        assert bank.drills.tick() == 1
        assert bank.drills.one(name, tenant=LOCAL.tenant).version == "1.1.0"

    run(story())


def test_a_deleted_session_is_drilled_no_more() -> None:
    async def story() -> None:
        bank = Bank()
        bank.breaks(broken=False)
        session = (await bank.ask(b'{"n":777}')).session_id
        await bank.house.service.erase(session, LOCAL)
        result = await bank.drills.run(await bank.name(), tenant=LOCAL.tenant, by="me")
        assert (result.outcome, result.inputs) == (DrillOutcome.PASSED, 2)

    run(story())


def test_so_many_sessions_are_kept_one_a_second_at_most() -> None:
    async def story() -> None:
        bank = Bank()
        bank.breaks(broken=False)
        sessions = []
        for _ in range(5):
            sessions.append((await bank.ask()).session_id)
            await asyncio.sleep(KEPT_EVERY_MS / 1000)
        kept = bank.fallbacks.recent(await bank.name(), LOCAL.tenant)
        assert kept == tuple(reversed(sessions[-3:]))

    run(story())


def test_a_workflow_without_rules_has_no_fallback_to_show_or_drill() -> None:
    async def story() -> None:
        bank = Bank()
        plain = (await bank.house.learn(ONE_ACTION % "read")).partition("@")[0]
        assert bank.drills.page(LOCAL.tenant).fallbacks == ()
        with pytest.raises(AcpFailure) as refused:
            await bank.drills.run(plain, tenant=LOCAL.tenant, by="me")
        assert refused.value.error.reason == error(Reason.NOT_FOUND, "").reason

    run(story())


def test_a_drill_that_raises_stops_neither_the_others_nor_the_next() -> None:
    """The loop's task died without a word, and nothing was ever drilled again."""

    async def story() -> None:
        bank = Bank()
        name = await bank.name()
        whole = bank.fallbacks.recent
        broken = True

        def recent(workflow: str, tenant: str) -> tuple[str, ...]:
            if broken:
                raise RuntimeError("a fault of ours")
            return whole(workflow, tenant)

        bank.fallbacks.recent = recent  # type: ignore[method-assign]
        bank.drills.start()
        await asyncio.sleep(3)
        assert bank.drills.one(name, tenant=LOCAL.tenant).drill is None
        assert b'acp_loop_failures_total{loop="drills"}' in bank.metrics.render()[1]
        broken = False
        await asyncio.sleep(2)
        drill = bank.drills.one(name, tenant=LOCAL.tenant).drill
        assert drill is not None
        assert drill.outcome is DrillOutcome.PASSED
        await bank.drills.close()

    run(story())
