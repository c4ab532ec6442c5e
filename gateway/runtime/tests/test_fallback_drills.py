"""Drills try the rules on given and recorded inputs, on schedule, and call nobody."""

import asyncio

import pytest

from acp_spec.bindings.errors import error
from acp_spec.model.enums import SessionStatus
from acp_spec.model.errors import AcpFailure, Reason
from gateway.engine.tests.stage import ONE_ACTION
from gateway.runtime.fallback_drills import DrillOutcome
from gateway.runtime.fallbacks import KEPT_EVERY_MS
from gateway.runtime.principal import LOCAL, Principal
from gateway.runtime.tests.bank import GIVEN, RULES, WORKFLOW, Bank
from gateway.runtime.tests.virtual_time import run
from gateway.stores.memory import MemoryStore


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


def test_an_input_that_nobody_answered_alarms_no_drill() -> None:
    """It may be nonsense of one client, which the rules rightly cannot answer."""

    async def story() -> None:
        bank = Bank()
        await bank.trip()
        for given in (b"{}", b'"nonsense"', b'{"n":666}', b'{"n":777}') * 2:
            await asyncio.sleep(KEPT_EVERY_MS / 1000)
            assert (await bank.ask(given)).status is SessionStatus.FAILED
        result = await bank.drill()
        assert (result.outcome, result.inputs) == (DrillOutcome.PASSED, 2)
        assert (await bank.ask()).status is SessionStatus.SUCCEEDED
        assert (await bank.drill()).inputs == 3

    run(story())


def test_a_recorded_input_that_the_workflow_takes_no_more_alarms_no_drill() -> None:
    async def story() -> None:
        bank = Bank()
        bank.breaks(broken=False)
        await bank.ask(b"{}")
        assert (await bank.drill()).outcome is DrillOutcome.FAILED, "the agent knew an answer"
        schema = "contract:\n  input_schema: {required: [n]}\n"
        await bank.renew("1.1.0", "contract:\n", schema)
        result = await bank.drill()
        assert (result.outcome, result.inputs) == (DrillOutcome.PASSED, 2)

    run(story())


def test_a_clock_that_is_set_back_puts_off_neither_drills_nor_what_they_try() -> None:
    async def story() -> None:
        bank = Bank()
        bank.breaks(broken=False)
        await bank.ask()
        assert bank.drills.tick() == 1
        bank.clock.skew_ms -= 3_600_000
        assert bank.drills.tick() == 1
        assert bank.drills.tick() == 0, "once is enough"
        await bank.ask()
        assert len(bank.fallbacks.recent(await bank.name(), LOCAL.tenant)) == 2

    run(story())


def test_a_tenant_whose_sessions_all_fail_has_its_drills_too() -> None:
    async def story() -> None:
        bank = Bank()
        await bank.trip()
        assert bank.fallbacks.tenants(await bank.name()) == {LOCAL.tenant}
        assert bank.fallbacks.recent(await bank.name(), LOCAL.tenant) == ()

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
