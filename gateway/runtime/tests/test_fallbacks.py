"""Rules answer after a row of failures, call nobody, and give way again."""

import msgspec
import pytest

from acp_spec.bindings.errors import error
from acp_spec.model.enums import Mode, SessionStatus
from acp_spec.model.errors import AcpFailure, Reason
from acp_spec.model.payload import payload
from acp_spec.model.session import FinishRequest
from acp_spec.model.trajectory import FallbackRow, Trajectory
from gateway.engine.events import Opened
from gateway.engine.replay import check
from gateway.engine.tests.stage import ONE_ACTION, gave
from gateway.governance.fallback_track import Standing
from gateway.governance.queue_delay import QueueDelay
from gateway.runtime.intake import Asking, Intake
from gateway.runtime.principal import LOCAL, Principal
from gateway.runtime.tests.bank import DEADLINE_MS, GIVEN, WORKFLOW, Bank
from gateway.runtime.tests.house import House
from gateway.runtime.tests.virtual_time import run
from gateway.stores.memory import MemoryStore


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


def test_a_clock_that_is_set_back_keeps_nobody_on_the_rules_and_no_failure_uncounted() -> None:
    """Until it had come again to the moment of the last turn, nothing that ended was counted."""

    async def story() -> None:
        bank = Bank()
        await bank.trip()
        bank.clock.skew_ms -= 3_600_000
        bank.breaks(broken=False)
        for _ in range(8):
            await bank.ask()
        assert await bank.standing() is Standing.AGENTIC
        bank.clock.skew_ms -= 3_600_000
        await bank.trip()

    run(story())


def test_an_opening_tells_how_often_the_rules_had_taken_over() -> None:
    async def story() -> None:
        bank = Bank()
        await bank.trip()
        bank.breaks(broken=False)
        for _ in range(8):
            await bank.ask()
        session = (await bank.ask()).session_id
        (first, *_, last) = [e for e in bank.house.seen.events if isinstance(e, Opened)]
        assert (first.fallback_trips, last.fallback_trips) == (0, 1)
        opened = bank.house.journal(session)[0]
        assert isinstance(opened, Opened)
        assert opened.fallback_trips == 1, "it is read back with the session"

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
