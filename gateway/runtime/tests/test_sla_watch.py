"""A breach does what the contract says, is seen by people and in the record, and ends on proof."""

import asyncio
import json
from typing import Final

import msgspec
import pytest

from acp_spec.model.enums import SessionStatus
from acp_spec.model.errors import Reason
from acp_spec.model.session import SessionView
from gateway.engine.events import AttemptEnded, Refused
from gateway.engine.rejections import OUR_FEEDBACK
from gateway.engine.sla_samples import BAR
from gateway.engine.tests.stage import ONE_ACTION, action, card, failed, gave
from gateway.runtime.principal import LOCAL
from gateway.runtime.sla_watch import SILENT_WINDOWS, BreachRow
from gateway.runtime.tests.house import House, slots
from gateway.runtime.tests.virtual_time import run

WORKFLOW: Final = ONE_ACTION % "read" + "fallback: {output: {n: 0}}\n"
SLA: Final = (
    "contract: {{sla: {{tools: {{min_success_rate: 0.5, min_samples: 4, window_ms: 16000,"
    " on_breach: {0}}}}}}}\n"
)
WINDOW_MS: Final = 16_000
PROBE_MS: Final = 1_000
DOWN: Final = failed(Reason.INTERNAL)


async def session(house: House, on_breach: str) -> SessionView:
    return await house.ended(await house.open(WORKFLOW + SLA.format(on_breach)))


async def breach(house: House, on_breach: str) -> BreachRow:
    """Four failures in a row."""
    house.targets.connection.lines["read"] = DOWN
    for _ in range(4):
        await session(house, on_breach)
    (row,) = house.sla.breaches()
    assert not row.until
    return row


def refusals(house: House) -> list[Refused]:
    return [e for e in house.seen.events if isinstance(e, Refused) and e.policy == BAR]


def test_an_alarm_is_told_counted_audited_and_stops_nothing() -> None:
    async def story() -> None:
        house = House()
        row = await breach(house, "alarm")
        assert row.message == (
            "component 'tools' is outside its SLA: 4 of 4 calls failed (50% may)"
        )
        sent = len(house.targets.connection.sent)
        await session(house, "alarm")
        assert len(house.targets.connection.sent) == sent + 1
        text = house.metrics.render()[1].decode()
        assert 'acp_sla_breaches_total{component="tools",demand="min_success_rate",' in text
        assert house.sla.standing == 1
        (entry,) = house.audit.entries()
        assert (entry.action, entry.actor) == ("contract.breach_began", "gateway")

    run(story())


def test_the_session_that_showed_it_has_the_breach_in_its_trajectory() -> None:
    async def story() -> None:
        house = House()
        house.targets.connection.lines["read"] = DOWN
        opened = [await house.open(WORKFLOW + SLA.format("alarm")) for _ in range(4)]
        for one in opened:
            await house.ended(one)
        told = []
        for one in opened:
            record = json.loads(await house.service.trajectory(one, LOCAL))
            told += [row["feedback"] for row in record.get("feedback", ())]
        (given,) = told
        assert given["author"].startswith(OUR_FEEDBACK)
        assert "4 of 4 calls failed" in given["comment"]
        assert "score" not in given

    run(story())


def test_refuse_makes_no_call_but_probes_and_the_workflow_decides() -> None:
    async def story() -> None:
        house = House()
        await breach(house, "refuse")
        sent = len(house.targets.connection.sent)
        view = await session(house, "refuse")
        assert view.status is SessionStatus.FAILED
        assert refusals(house)
        assert refusals(house)[0].error.reason == "BREAKER_OPEN"
        assert "outside its SLA" in refusals(house)[0].error.message
        probes = len(house.targets.connection.sent) - sent
        assert probes <= 1, "the wait before a retry may have let one through"

    run(story())


def test_fallback_ends_sessions_with_the_fallback_at_once_and_sends_nothing() -> None:
    async def story() -> None:
        house = House()
        await breach(house, "fallback")
        sent = len(house.targets.connection.sent)
        view = await session(house, "fallback")
        assert (view.status, view.fell_back) == (SessionStatus.SUCCEEDED, True)
        assert bytes(view.output) == b'{"n":0}'
        assert len(house.targets.connection.sent) == sent
        assert refusals(house)[0].fall_back
        house.check_permits()

    run(story())


@pytest.mark.parametrize("on_breach", ["refuse", "fallback"])
def test_probes_prove_that_it_is_well_again_and_calls_go_through(on_breach: str) -> None:
    async def story() -> None:
        house = House()
        await breach(house, on_breach)
        house.targets.connection.lines["read"] = gave({"n": 1})
        sent, began_ms = len(house.targets.connection.sent), house.clock.now_ms()
        while house.sla.standing:
            await session(house, on_breach)
            await asyncio.sleep(PROBE_MS / 4 / 1000)
            assert house.clock.now_ms() - began_ms < 30 * PROBE_MS, "it never ends"
        assert len(house.targets.connection.sent) - sent == 4, "as many as a judgement needs"
        assert house.clock.now_ms() - began_ms > 3 * PROBE_MS, "one probe a second"
        (row,) = house.sla.breaches()
        assert row.ended_by == "proof"
        view = await session(house, on_breach)
        assert (view.status, view.fell_back) == (SessionStatus.SUCCEEDED, False)
        assert [e.action for e in house.audit.entries()] == [
            "contract.breach_began",
            "contract.breach_ended",
        ]

    run(story())


def test_a_breach_outlives_a_restart_and_still_ends_on_proof() -> None:
    async def story() -> None:
        house = House()
        before = await breach(house, "refuse")
        again = House(store=house.store, targets=house.targets, clock=house.clock)
        assert again.sla.breaches() == (before,)
        again.targets.connection.lines["read"] = gave({"n": 1})
        loops = 0
        while again.sla.standing:
            await session(again, "refuse")
            await asyncio.sleep(PROBE_MS / 1000)
            loops += 1
            assert loops < 20, "it never ends"
        last = House(store=house.store, targets=house.targets, clock=house.clock)
        (row,) = last.sla.breaches()
        assert (row.since, row.ended_by) == (before.since, "proof")

    run(story())


def test_a_breach_of_whom_nothing_is_heard_ends_by_itself() -> None:
    async def story() -> None:
        house = House()
        await breach(house, "refuse")
        await asyncio.sleep(SILENT_WINDOWS * WINDOW_MS / 1000 - 1)
        assert house.sla.standing == 1
        await asyncio.sleep(2)
        (row,) = house.sla.breaches()
        assert row.ended_by == "silence"

    run(story())


def test_a_breach_that_stood_for_long_is_not_silent_because_the_gateway_was_restarted() -> None:
    async def story() -> None:
        house = House()
        await breach(house, "alarm")
        for _ in range(2 * SILENT_WINDOWS):
            await session(house, "alarm")
            await asyncio.sleep(WINDOW_MS / 1000)
        assert house.sla.standing == 1
        again = House(store=house.store, targets=house.targets, clock=house.clock)
        assert again.sla.standing == 1

    run(story())


def test_time_in_the_gateways_own_queue_is_not_the_components() -> None:
    async def story() -> None:
        house = House(parameters=slots(1))
        house.targets.connection.lines["read"] = gave({"n": 1})
        text = ONE_ACTION % "read" + (
            "contract: {sla: {tools: {max_latency_ms: 50, min_samples: 4, window_ms: 60000}}}\n"
        )
        for one in [await house.open(text) for _ in range(40)]:
            await house.ended(one)
        (row,) = house.sla.standings()
        assert (row.counts.calls, row.counts.slow) == (40, 0)
        assert house.sla.breaches() == ()

    run(story())


def test_a_bad_version_of_a_component_does_not_bar_a_good_one() -> None:
    async def story() -> None:
        house = House()
        row = await breach(house, "refuse")
        assert row.version == "1.0.0"
        house.targets.connection.lines["read"] = gave({"n": 1})
        house.targets.add(card("tools", action("read"), version="2.0.0"))
        view = await session(house, "refuse")
        assert view.status is SessionStatus.SUCCEEDED
        assert {one.version: one.counts.failed for one in house.sla.standings()} == {
            "1.0.0": 4,
            "2.0.0": 0,
        }

    run(story())


def test_a_twin_is_its_rollouts_to_judge_and_breaks_nobodys_sla() -> None:
    async def story() -> None:
        house = House()
        opened = await house.open(WORKFLOW + SLA.format("refuse"))
        await house.ended(opened)
        state = house.state(opened)
        twin = msgspec.structs.replace(state)
        twin.opened = msgspec.structs.replace(state.opened, twin_of=opened)
        (end,) = (e for e in house.seen.events if isinstance(e, AttemptEnded))
        before = house.sla.standings()
        for _ in range(10):
            house.sla.seen(twin, end)
        assert house.sla.standings() == before
        house.sla.seen(state, end)
        assert house.sla.standings() != before

    run(story())


def test_another_version_of_the_workflow_is_judged_by_itself() -> None:
    async def story() -> None:
        house = House()
        await breach(house, "refuse")
        other = (WORKFLOW + SLA.format("refuse")).replace("1.0.0", "1.1.0")
        house.targets.connection.lines["read"] = gave({"n": 1})
        view = await house.ended(await house.open(other))
        assert view.status is SessionStatus.SUCCEEDED

    run(story())
