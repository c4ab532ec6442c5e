"""Faults that users of other gateways report, over whole sessions in virtual time (R09, R11).

Each test is the rule behind such a report; the house is the real service over fake components.
"""

import asyncio
import itertools
from collections import Counter

import pytest

from acp_spec.bindings.errors import error
from acp_spec.model.calls import OperationState
from acp_spec.model.enums import OperationStatus
from acp_spec.model.errors import AcpError, Reason
from acp_spec.model.payload import payload
from gateway.engine.events import AttemptStarted, Decided, Deferred, Refused
from gateway.engine.tests.casting import Said
from gateway.engine.tests.stage import ONE_ACTION, TOOLS, accepted, failed, gave
from gateway.governance.breaker import Circuit, Phase, phase_at
from gateway.governance.parameters import Override, Parameters
from gateway.governance.rules import BreakerRules, OnExcess, RateRules, RetryTokenRules, Slots
from gateway.runtime.connection import Outgoing
from gateway.runtime.parameters import ParameterVersion
from gateway.runtime.principal import LOCAL
from gateway.runtime.tests.fake_components import FakeConnection
from gateway.runtime.tests.house import House
from gateway.runtime.tests.virtual_time import run

PRIMARY = "tools-1.0.0-1"
BREAKER = BreakerRules(failures_in_a_row=5, open_ms=2_000, successes=2, ramp_calls=32)
RULES = Parameters(breaker=BREAKER, target=Slots(limit=500))
WITH_BACKUP = """
workflow: backed
version: 1.0.0
steps:
  - {name: act, role: execute, action: read, on_error: continue}
  - {name: backup, role: execute, action: put, condition: "act.status == 'FAILED'"}
output: backup.output
"""


def circuit(house: House, instance: str = PRIMARY) -> Circuit:
    return house.admission.row.breaker.state(f"breaker:{instance}")


def phase(house: House, instance: str = PRIMARY) -> Phase:
    return phase_at(circuit(house, instance), house.admission.now_ms())


def sent(house: House) -> int:
    return len(house.targets.connection.sent)


async def outage(house: House, sessions: int = 15, deadline_ms: int = 1_500) -> list[str]:
    """So many sessions while the primary is down; all of them ended."""
    house.targets.connection.lines["read"] = failed()
    opened = [
        await house.open(ONE_ACTION % "read", deadline_ms=deadline_ms) for _ in range(sessions)
    ]
    for session in opened:
        await house.ended(session)
    return opened


# ---- retries and the breaker ---------------------------------------------------------------------


def test_fifteen_requests_in_an_outage_are_not_forty_five_attempts() -> None:
    async def story() -> None:
        house = House(parameters=RULES)
        await outage(house)
        assert sent(house) <= 16, "the fifteen first attempts were on their way together"
        house.check_permits()

    run(story())


def test_while_the_breaker_is_open_nobody_tries_the_primary_and_no_token_is_burnt() -> None:
    async def story() -> None:
        rates = {"tools": Override(breaker=BREAKER, actions={"read": RateRules(per_second=1_000)})}
        house = House(parameters=Parameters(components=rates))
        await outage(house, 6)
        before, buckets = sent(house), dict(house.admission.row.parts[4].states)
        assert phase(house) is Phase.OPEN
        opened = [await house.open(ONE_ACTION % "read", deadline_ms=400) for _ in range(30)]
        for session in opened:
            assert (await house.ended(session)).error is not None
            refused = [e for e in house.journal(session) if isinstance(e, Refused)]
            assert {event.error.reason for event in refused} == {"BREAKER_OPEN"}
            assert {event.policy for event in refused} == {"breaker"}
        assert sent(house) == before
        assert house.admission.row.parts[4].states == buckets
        house.check_permits()

    run(story())


def test_a_healed_primary_gets_its_full_load_again() -> None:
    async def story() -> None:
        house = House(parameters=RULES)
        await outage(house)
        house.targets.connection.lines["read"] = gave(1)
        await asyncio.sleep(3)
        opened = [await house.open(ONE_ACTION % "read", deadline_ms=20_000) for _ in range(90)]
        for session in opened:
            assert (await house.ended(session)).status.value == "SUCCEEDED"
        assert (phase(house), circuit(house).ramp) == (Phase.CLOSED, 0)
        before = sent(house)
        opened = [await house.open(ONE_ACTION % "read") for _ in range(90)]
        assert house.executors.inflight == 90, "nothing is held back any more"
        for session in opened:
            await house.ended(session)
        assert sent(house) - before == 90
        house.check_permits()

    run(story())


def test_when_it_heals_those_who_waited_do_not_come_all_at_once() -> None:
    async def story() -> None:
        house = House(parameters=RULES)
        await outage(house, 6)
        connection = house.targets.connection
        at_once: list[int] = []
        connection.on_send = lambda outgoing: at_once.append(house.executors.inflight)
        connection.lines["read"] = Said(response=b'{"output":1}', after_ms=100)
        opened = [await house.open(ONE_ACTION % "read", deadline_ms=60_000) for _ in range(90)]
        for session in opened:
            assert (await house.ended(session)).status.value == "SUCCEEDED"
        assert len(at_once) == 90
        assert at_once[0] == 1, "one probe"
        ramp = at_once[: 2 * BREAKER.ramp_calls]
        assert all(count <= number // 2 + 1 for number, count in enumerate(ramp, 1)), ramp
        house.check_permits()

    run(story())


def test_a_session_goes_to_another_replica_while_its_own_is_open_and_comes_back() -> None:
    async def story() -> None:
        house = House(parameters=RULES)
        other = house.targets.add(TOOLS, instance="tools-second")
        second = other.connection = FakeConnection()
        await outage(house, 6)
        before = sent(house)
        for _ in range(10):
            view = await house.ended(await house.open(ONE_ACTION % "read"))
            assert view.status.value == "SUCCEEDED"
        assert sent(house) == before, "nothing more for the broken one"
        assert len(second.sent) >= 10
        house.targets.connection.lines["read"] = gave(1)
        await asyncio.sleep(3)
        for _ in range(60):
            await house.ended(await house.open(ONE_ACTION % "read"))
        assert phase(house) is Phase.CLOSED
        taken = len(second.sent)
        for _ in range(10):
            await house.ended(await house.open(ONE_ACTION % "read"))
        assert len(second.sent) == taken, "all of them are back at the primary"
        house.check_permits()

    run(story())


def test_in_a_long_outage_nothing_is_repeated_once_half_of_the_retry_tokens_are_gone() -> None:
    async def story() -> None:
        rules = Parameters(
            breaker=BreakerRules(enabled=False), retry_tokens=RetryTokenRules(max_tokens=10)
        )
        house = House(parameters=rules)
        house.targets.connection.lines["read"] = failed()
        opened = []
        for _ in range(40):
            opened.append(await house.open(ONE_ACTION % "read"))
            await house.ended(opened[-1])
        assert sent(house) <= 40 + 5
        (decision,) = [e.decision for e in house.journal(opened[-1]) if isinstance(e, Decided)]
        assert decision.options[0].masked_by == "retry_tokens"
        assert decision.features["may_retry"] is False
        view = await house.ended(opened[-1])
        assert view.error is not None
        assert view.error.reason == "UNAVAILABLE", "the caller is told what really failed"

    run(story())


# ---- what does not count against a target --------------------------------------------------------


def test_the_gateways_own_refusals_never_eject_a_healthy_target() -> None:
    async def story() -> None:
        house = House(
            parameters=Parameters(
                breaker=BreakerRules(failures_in_a_row=2, least_calls=2),
                target=Slots(limit=1, max_waiting=0),
            )
        )
        house.targets.connection.lines["read"] = Said(response=b'{"output":1}', after_ms=300)
        opened = [await house.open(ONE_ACTION % "read", deadline_ms=250) for _ in range(12)]
        cancelled = await house.open(ONE_ACTION % "read")
        await house.service.cancel(cancelled, LOCAL)
        for session in (*opened, cancelled):
            await house.ended(session)
        await asyncio.sleep(5)
        reasons = Counter(
            event.error.reason
            for session in opened
            for event in house.journal(session)
            if isinstance(event, Refused)
        )
        assert reasons["OVERLOADED"] >= 10
        assert phase(house) is Phase.CLOSED
        assert circuit(house).bad == 0
        house.check_permits()

    run(story())


def test_an_attempt_that_got_little_of_its_own_time_blames_nobody() -> None:
    async def story() -> None:
        house = House(parameters=Parameters(breaker=BreakerRules(failures_in_a_row=1)))
        house.targets.connection.lines["read"] = Said(response=b'{"output":1}', after_ms=2_000)
        await house.ended(await house.open(ONE_ACTION % "read", deadline_ms=1_000))
        await asyncio.sleep(5)
        assert phase(house) is Phase.CLOSED
        house.targets.connection.lines["read"] = None
        await house.ended(await house.open(ONE_ACTION % "read", deadline_ms=9_000))
        assert phase(house) is not Phase.CLOSED, "silence for its whole time is its own"

    run(story())


def test_a_late_answer_is_not_counted_a_second_time() -> None:
    async def story() -> None:
        house = House(parameters=RULES)
        house.targets.connection.lines["pay"] = Said(response=b'{"output":1}', after_ms=5_500)
        await house.ended(await house.open(ONE_ACTION % "pay"))
        await asyncio.sleep(3)
        assert (circuit(house).good, circuit(house).bad) == (0, 1)
        house.check_permits()

    run(story())


# ---- streams and operations ----------------------------------------------------------------------


def _ends(status: OperationStatus) -> OperationState:
    if status is OperationStatus.FAILED:
        failure = error(Reason.UNAVAILABLE, "it broke half way")
        return OperationState(status=status, error=failure)
    return OperationState(status=status, output=payload(b"1"))


def test_what_is_accepted_and_then_fails_opens_the_breaker_at_its_end_not_at_its_opening() -> None:
    """A breaker that counted the opening as success never opened for streams."""

    async def story() -> None:
        house = House(parameters=Parameters(breaker=BreakerRules(failures_in_a_row=3)))
        connection = house.targets.connection
        connection.lines["grow"] = accepted(100)
        for number in range(3):
            assert phase(house) is Phase.CLOSED, number
            session = await house.open(ONE_ACTION % "grow")
            await asyncio.sleep(0.05)
            assert circuit(house).good == 0, "nothing is known of it yet"
            assert house.admission.row.taken() == {}, "its slot is free meanwhile"
            connection.operations = [_ends(OperationStatus.FAILED)]
            assert (await house.ended(session)).status.value == "FAILED"
        assert phase(house) is Phase.OPEN
        house.check_permits()

    run(story())


@pytest.mark.parametrize("how", ["poll", "timeout", "cancel"])
def test_however_an_operation_ends_it_is_judged_once(how: str) -> None:
    async def story() -> None:
        house = House(parameters=RULES)
        connection = house.targets.connection
        connection.lines["print"] = accepted(100)
        session = await house.open(ONE_ACTION % "print")
        await asyncio.sleep(0.05)
        assert len(house.admitting.permits) == 1
        if how == "poll":
            connection.operations = [_ends(OperationStatus.SUCCEEDED)]
        elif how == "cancel":
            await house.service.cancel(session, LOCAL)
        await house.ended(session)
        counted = {"poll": (1, 0), "timeout": (0, 1), "cancel": (0, 0)}[how]
        assert (circuit(house).good, circuit(house).bad) == counted
        house.check_permits()

    run(story())


# ---- rates and push-back -------------------------------------------------------------------------


def _limited(per_second: float, on_excess: OnExcess = OnExcess.WAIT) -> Parameters:
    rate = RateRules(per_second=per_second, on_excess=on_excess)
    return Parameters(components={"tools": Override(actions={"read": rate})})


def test_calls_over_the_rate_wait_for_their_token_in_the_order_they_came() -> None:
    async def story() -> None:
        house = House(parameters=_limited(10))
        times: list[tuple[float, str]] = []

        def note(outgoing: Outgoing) -> None:
            times.append((house.admission.now_ms(), outgoing.context.session_id))

        house.targets.connection.on_send = note
        opened = [await house.open(ONE_ACTION % "read") for _ in range(6)]
        for session in opened:
            assert (await house.ended(session)).status.value == "SUCCEEDED"
        assert [name for _, name in times] == opened
        gaps = [later[0] - sooner[0] for sooner, later in itertools.pairwise(times)]
        assert all(99 <= gap <= 103 for gap in gaps), gaps
        waits = [e for e in house.journal(opened[3]) if isinstance(e, AttemptStarted)]
        assert 295 <= waits[0].wait_ms <= 305
        (put_off,) = [e for e in house.journal(opened[3]) if isinstance(e, Deferred)]
        assert (put_off.policy, put_off.until_ms > put_off.at_ms) == ("rate_limit", True)
        house.check_permits()

    run(story())


def test_a_wait_that_does_not_fit_is_refused_at_once_and_the_workflow_degrades() -> None:
    async def story() -> None:
        house = House(parameters=_limited(0.1))
        await house.ended(await house.open(ONE_ACTION % "read"))
        session = await house.open(WITH_BACKUP, deadline_ms=3_000)
        view = await house.ended(session)
        assert view.status.value == "SUCCEEDED"
        (refused,) = [e for e in house.journal(session) if isinstance(e, Refused)]
        assert refused.error.reason == "RATE_LIMITED"
        assert (refused.error.retry_after_ms or 0) > 9_000
        assert [step.status.value for step in view.steps] == ["FAILED", "SUCCEEDED"]
        house.check_permits()

    run(story())


def test_those_who_wait_go_by_the_new_rate_as_soon_as_it_is_changed() -> None:
    async def story() -> None:
        house = House(parameters=_limited(0.05))
        house.parameters.on_change = lambda: house.admission.renew(
            lambda wish: house.parameters.rules_for(house.targets.here[wish.instance])
        )
        opened = [await house.open(ONE_ACTION % "read", deadline_ms=90_000) for _ in range(4)]
        await asyncio.sleep(1)
        assert sent(house) == 1
        changed = ParameterVersion(version=2, parameters=_limited(100))
        house.parameters.apply(changed)
        for session in opened:
            assert (await house.ended(session)).status.value == "SUCCEEDED"
        times = [e for s in opened for e in house.journal(s) if isinstance(e, AttemptStarted)]
        assert times[-1].at_ms - times[0].at_ms <= 1_030, "nobody waits for a token of the old rate"
        assert [event.parameter_version for event in times] == [1, 2, 2, 2]
        house.check_permits()

    run(story())


RATED = """
workflow: rated
version: 1.0.0
contract: {rates: {read: {per_second: 10, on_excess: %s}}}
steps:
  - {name: act, role: execute, action: read, on_error: continue}
output: act.status
"""


@pytest.mark.parametrize("on_excess", ["wait", "refuse"])
def test_a_workflow_keeps_to_the_rate_of_its_own_contract(on_excess: str) -> None:
    async def story() -> None:
        house = House()
        opened = [await house.open(RATED % on_excess) for _ in range(4)]
        free = await house.open(ONE_ACTION % "read")
        assert sent(house) == 2, "another workflow has no part in it"
        for session in (*opened, free):
            await house.ended(session)
        refused = [e for s in opened for e in house.journal(s) if isinstance(e, Refused)]
        waits = [
            e.wait_ms for s in opened for e in house.journal(s) if isinstance(e, AttemptStarted)
        ]
        if on_excess == "wait":
            assert not refused
            assert [round(wait, -2) for wait in waits] == [0, 100, 200, 300]
        else:
            assert {event.error.reason for event in refused} == {"RATE_LIMITED"}
        house.check_permits()

    run(story())


def _too_many(retry_after_ms: int) -> Said:
    failure: AcpError = error(Reason.RATE_LIMITED, "slower", retry_after_ms=retry_after_ms)
    return Said(error=failure)


def test_a_429_is_honoured_by_everybody_and_is_no_failure_of_the_target() -> None:
    async def story() -> None:
        house = House(parameters=RULES)
        connection = house.targets.connection
        answers = iter([_too_many(500)] + [gave(1)] * 99)
        connection.lines["read"] = lambda outgoing: next(answers)
        times: list[float] = []
        connection.on_send = lambda outgoing: times.append(house.admission.now_ms())
        first = await house.open(ONE_ACTION % "read")
        await asyncio.sleep(0.02)
        others = [await house.open(ONE_ACTION % "read") for _ in range(20)]
        for session in (first, *others):
            assert (await house.ended(session)).status.value == "SUCCEEDED"
        answered = times[0] + 5
        assert min(times[1:]) >= answered + 500, "nobody came before the pause was over"
        together = Counter(round(at, 1) for at in times)
        assert max(together.values()) == 1, "and then one by one"
        assert phase(house) is Phase.CLOSED
        house.check_permits()

    run(story())


def test_a_429_that_asks_for_more_than_is_left_leads_to_the_fallback_of_the_workflow() -> None:
    async def story() -> None:
        house = House(parameters=RULES)
        house.targets.connection.lines["read"] = _too_many(60_000)
        session = await house.open(WITH_BACKUP, deadline_ms=3_000)
        view = await house.ended(session)
        assert view.status.value == "SUCCEEDED"
        reads = [o for o in house.targets.connection.sent if o.context.step == "act"]
        assert len(reads) == 1
        (decision,) = [e.decision for e in house.journal(session) if isinstance(e, Decided)]
        assert decision.options[0].masked_by == "deadline"

    run(story())


# ---- the record ----------------------------------------------------------------------------------


def test_a_row_names_its_breaker_and_the_version_of_the_parameters() -> None:
    async def story() -> None:
        house = House(parameters=RULES)
        await outage(house, 6)
        house.targets.connection.lines["read"] = gave(1)
        await asyncio.sleep(3)
        session = await house.open(ONE_ACTION % "read")
        await house.ended(session)
        (started,) = [e for e in house.journal(session) if isinstance(e, AttemptStarted)]
        assert (started.breaker, started.parameter_version) == ("half_open", 1)

    run(story())


def test_a_decision_sees_the_breaker_and_waits_until_it_may_be_probed() -> None:
    async def story() -> None:
        house = House(parameters=RULES)
        await outage(house, 6)
        session = await house.open(ONE_ACTION % "read", deadline_ms=20_000)
        await asyncio.sleep(0)
        (decision,) = [e.decision for e in house.journal(session) if isinstance(e, Decided)]
        assert decision.features["breaker"] == "open"
        left_ms = decision.features["breaker_open_ms"]
        assert isinstance(left_ms, int)
        assert decision.options[0].wait_ms >= left_ms > 0

    run(story())
