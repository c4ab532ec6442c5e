"""Twins in virtual time: nothing that writes leaves them, and they stand behind everybody."""

import asyncio

import msgspec
import pytest

from acp_spec.model.enums import SessionStatus
from acp_spec.model.session import RolloutMark
from gateway.engine.events import AttemptStarted, Opened
from gateway.engine.measures import sample, work_ms
from gateway.engine.recording import recording
from gateway.engine.states import SessionState
from gateway.engine.tests.casting import Said
from gateway.engine.tests.stage import FOUR_CALLS, ONE_ACTION, TOOLS, failed, gave, goal, planned
from gateway.engine.trajectories import trajectory
from gateway.governance.rules import HedgeRules
from gateway.runtime.principal import LOCAL
from gateway.runtime.rollout_traffic import guarded, twin_id
from gateway.runtime.tests.house import PARAMETERS, House, slots
from gateway.runtime.tests.test_crowds import SEEDS, SMALL, crowded, ended
from gateway.runtime.tests.virtual_time import run
from gateway.runtime.twins import PATIENCE_S, TwinEnd, TwinLimits, Twins, TwinWish

WRITES = frozenset({"pay", "book", "put", "grow"})
FIRST = TwinLimits()


def twins_of(house: House, limits: TwinLimits = FIRST) -> Twins:
    twins = Twins(house.driver, house.executors, limits=limits)
    house.driver.executor = twins
    return twins


def wish(house: House, session: str, name: str = "r") -> TwinWish:
    """The twin of a session that has ended, on the same versions."""
    primary = house.state(session)
    opened = msgspec.structs.replace(
        primary.opened,
        at_ms=house.clock.now_ms(),
        session_id=twin_id(session, name),
        twin_of=session,
        session_key="",
    )
    assert primary.workflow is not None
    record = recording(trajectory(primary))
    pins, catalog = primary.opened.pins, house.targets.catalog()
    return TwinWish(
        opened=opened, workflow=primary.workflow, record=guarded(record, pins, catalog=catalog)
    )


async def twin_of(house: House, twins: Twins, session: str, name: str = "r") -> TwinEnd | None:
    """Run it to its end."""
    found: asyncio.Future[TwinEnd | None] = asyncio.get_running_loop().create_future()
    twins.offer(lambda: wish(house, session, name), found.set_result)
    return await found


def sent_by(house: House, session: str) -> list[str]:
    """What left the gateway for this session: actions and steps."""
    return [
        msgspec.json.decode(bytes(one.body)).get("action", one.context.step)
        for one in house.targets.connection.sent
        if one.context.session_id == session
    ]


def test_a_twin_on_the_same_versions_ends_as_its_session_did() -> None:
    async def story() -> None:
        house = House()
        twins = twins_of(house)
        lines = house.targets.connection.lines
        lines["plan"] = planned(
            goal("a", "read"), goal("b", "pay"), goal("c", "book", depends_on=["b"])
        )
        lines["pay"] = Said(response=b'{"output":{"paid":1}}', after_ms=300)
        session = await house.open(FOUR_CALLS)
        view = await house.ended(session)
        end = await twin_of(house, twins, session)
        assert end is not None
        assert (end.state.status, end.uncovered) == (view.status, ())
        assert bytes(end.state.output) == bytes(view.output)
        assert sorted(sent_by(house, end.state.session_id)) == ["judge", "plan", "read"]
        assert work_ms(end.state) == work_ms(house.state(session))
        house.check_permits()

    run(story())


@pytest.mark.parametrize("seed", SEEDS)
def test_in_a_crowd_no_twin_sends_a_write_and_all_of_them_end(seed: int) -> None:
    async def story() -> None:
        house = House(parameters=SMALL, live_limit=4)
        twins = twins_of(house)
        opened = await crowded(house, seed, 30)
        for session in opened:
            await ended(house, session)
        told: list[TwinEnd | None] = []
        begun = [one for one in opened if house.state(one).status is not SessionStatus.CANCELLED]
        for session in begun:
            twins.offer(lambda session=session: wish(house, session), told.append)  # type: ignore[misc]
        await asyncio.sleep(600)
        assert len(told) == len(begun)
        for end in told:
            if end is not None:
                assert not WRITES & set(sent_by(house, end.state.session_id))
        assert any(end is not None for end in told)
        assert (twins.running, twins.waiting) == (0, 0)
        house.check_permits()
        assert house.driver.open_sessions == 0

    run(story())


def test_each_attempt_is_answered_as_it_was_and_a_retry_takes_its_time() -> None:
    async def story() -> None:
        house = House()
        twins = twins_of(house)
        answers = iter([failed(after_ms=40), gave({"done": 1})])
        house.targets.connection.lines["put"] = lambda outgoing: next(answers)
        session = await house.open(ONE_ACTION % "put")
        await house.ended(session)
        end = await twin_of(house, twins, session)
        assert end is not None
        (call,) = end.state.calls.values()
        assert [bool(one.ended and one.ended.error) for one in call.attempts] == [True, False]
        assert end.state.status is SessionStatus.SUCCEEDED
        assert sent_by(house, end.state.session_id) == []

    run(story())


# ---- behind everybody --------------------------------------------------------------------------


LONG = (ONE_ACTION % "peek").replace("action: peek,", "action: peek, timeout_ms: 25000,")


def busy(house: House) -> None:
    """The next call takes very long."""
    house.targets.connection.lines["peek"] = Said(response=b'{"output":1}', after_ms=20_000)


def test_a_twin_does_not_begin_while_somebody_waits_and_is_dropped_at_last() -> None:
    async def story() -> None:
        house = House(parameters=slots(1))
        twins = twins_of(house)
        session = await house.open(ONE_ACTION % "read")
        await house.ended(session)
        busy(house)
        callers = [await house.open(LONG) for _ in range(2)]
        await asyncio.sleep(0.1)
        assert house.admitting.is_busy
        before = house.clock.monotonic_ms()
        assert await twin_of(house, twins, session) is None
        waited_s = (house.clock.monotonic_ms() - before) / 1000
        assert PATIENCE_S <= waited_s < PATIENCE_S + 0.5
        assert house.sessions.find(twin_id(session, "r")) is None
        for caller in callers:
            await house.ended(caller)

    run(story())


def test_a_twin_under_way_takes_no_slot_that_a_caller_could_want() -> None:
    """Of two slots it takes one while the other is free, else it waits and gives up at last."""

    async def story() -> None:
        house = House(parameters=slots(2))
        twins = twins_of(house)
        session = await house.open(FOUR_CALLS)
        await house.ended(session)
        busy(house)
        held = await house.open(LONG)
        await asyncio.sleep(0.1)
        assert await twin_of(house, twins, session) is None
        assert "read" not in sent_by(house, twin_id(session, "r"))
        assert house.state(twin_id(session, "r")).status is SessionStatus.CANCELLED
        await house.ended(held)
        assert await twin_of(house, twins, session, "again") is not None
        house.check_permits()

    run(story())


def test_so_many_run_so_many_wait_and_more_are_dropped_at_once() -> None:
    async def story() -> None:
        house = House()
        twins = twins_of(house, TwinLimits(concurrency=2, max_queued=3))
        house.targets.connection.lines["read"] = Said(response=b'{"output":1}', after_ms=100)
        session = await house.open(ONE_ACTION % "read")
        await house.ended(session)
        told: list[TwinEnd | None] = []
        for number in range(8):
            name = f"r{number}"
            twins.offer(lambda name=name: wish(house, session, name), told.append)  # type: ignore[misc]
        assert len(told) == 5
        await asyncio.sleep(0.05)
        assert twins.running == 2
        await asyncio.sleep(1)
        assert [end is None for end in told] == [True] * 5 + [False] * 3
        house.check_permits()

    run(story())


# ---- ends --------------------------------------------------------------------------------------


def test_what_a_restart_finds_open_is_dropped_and_not_counted_as_open() -> None:
    async def story() -> None:
        house = House()
        twins = twins_of(house)
        session = await house.open(ONE_ACTION % "read")
        await house.ended(session)
        house.targets.connection.lines["read"] = None
        twins.offer(lambda: wish(house, session), lambda end: None)
        await asyncio.sleep(0.2)
        await twins.close()
        await house.committer.close()
        later = House(store=house.store, targets=house.targets)
        (dropped,) = twins_of(later).drop_leftovers(later.store)
        assert dropped.session_id == twin_id(session, "r")
        await later.committer.synced()
        assert later.state(dropped.session_id).status is SessionStatus.CANCELLED
        assert later.driver.open_sessions == 0
        assert await later.resume() == 0

    run(story())


def test_deleting_a_session_ends_and_deletes_its_twin() -> None:
    async def story() -> None:
        house = House()
        twins = twins_of(house)
        session = await house.open(ONE_ACTION % "read")
        await house.ended(session)
        live = house.sessions.find(session)
        assert live is not None
        live.state = with_mark(live.state, twin_id(session, "r"))
        house.targets.connection.lines["read"] = None
        told: list[TwinEnd | None] = []
        twins.offer(lambda: wish(house, session), told.append)
        await asyncio.sleep(0.2)
        await house.erasing.erase(live, LOCAL)
        await asyncio.sleep(0.2)
        assert told == [None]
        assert house.driver.find(twin_id(session, "r")) is None
        await asyncio.sleep(10)
        house.check_permits()

    run(story())


def with_mark(state: SessionState, twin: str) -> SessionState:
    """The state as it is when a rollout had chosen the session for a twin."""
    mark = RolloutMark(rollout="r", stage="CANARY", arm="BASELINE", twin=twin)
    opened: Opened = msgspec.structs.replace(state.opened, rollouts=(mark,))
    return msgspec.structs.replace(state, opened=opened)


# ---- what a session is counted as --------------------------------------------------------------


def test_time_is_counted_without_the_gateways_queue_and_overlaps_once() -> None:
    async def story() -> None:
        house = House(parameters=slots(1))
        lines = house.targets.connection.lines
        lines["plan"] = planned(goal("a", "read"), goal("b", "read"))
        lines["read"] = Said(response=b'{"output":1}', after_ms=100)
        queued = await house.open(FOUR_CALLS)
        await house.ended(queued)
        wide = House()
        wide.targets.connection.lines.update(lines)
        at_once = await wide.open(FOUR_CALLS)
        await wide.ended(at_once)
        rest = sum(spans(house.state(queued), "plan", "remember", "judge"))
        assert work_ms(house.state(queued)) == rest + 200
        assert work_ms(wide.state(at_once)) == rest + 100
        found = sample(wide.state(at_once))
        assert (found.succeeded, found.fell_back, found.reward) == (True, False, None)

    run(story())


def spans(state: SessionState, *steps: str) -> list[int]:
    """How long the one call of each step took."""
    return [
        one.ended.at_ms - one.started.at_ms
        for call in state.calls.values()
        if call.created.step in steps
        for one in call.attempts
        if one.started is not None and one.ended is not None
    ]


def test_the_reward_is_what_the_last_reflector_gave() -> None:
    async def story() -> None:
        house = House()
        house.targets.connection.lines["judge"] = Said(
            response=b'{"verdict":"ACCEPT","rewards":[{"name":"right","value":1},'
            b'{"name":"kind","value":0.5}]}'
        )
        session = await house.open(FOUR_CALLS)
        await house.ended(session)
        state = house.state(session)
        assert sample(state).reward == 0.75
        assert sample(state, reward="kind").reward == 0.5
        assert sample(state, reward="none").reward is None

    run(story())


def test_a_recorded_attempt_says_which_call_answered_it() -> None:
    async def story() -> None:
        house = House()
        twins = twins_of(house)
        session = await house.open(ONE_ACTION % "pay")
        await house.ended(session)
        end = await twin_of(house, twins, session)
        assert end is not None
        started = [e for e in house.journal(end.state.session_id) if isinstance(e, AttemptStarted)]
        (primary,) = house.state(session).calls
        assert [one.instance for one in started] == [f"record:{primary}"]

    run(story())


def test_a_fault_of_ours_drops_a_twin_and_whoever_waits_for_it_is_told() -> None:
    """A replay whose making raised was never answered."""

    async def story() -> None:
        house = House()
        twins = twins_of(house)
        told: asyncio.Future[TwinEnd | None] = asyncio.get_running_loop().create_future()

        def make() -> TwinWish | None:
            raise RuntimeError("a fault of ours")

        twins.offer(make, told.set_result)
        assert await told is None
        session = await house.open(FOUR_CALLS)
        await house.ended(session)
        assert await twin_of(house, twins, session) is not None

    run(story())


def test_a_twin_sends_nothing_twice_however_slow_it_is() -> None:
    """A hedge of a twin would be load that no caller asked for."""

    async def story() -> None:
        always = HedgeRules(share=1.0, after_ms=50)
        house = House(parameters=msgspec.structs.replace(PARAMETERS, hedge=always))
        house.targets.add(TOOLS, instance="tools-1.0.0-2")
        twins = twins_of(house)
        lines = house.targets.connection.lines
        lines["read"] = Said(response=b'{"output":1}', after_ms=500)
        session = await house.open(ONE_ACTION % "read")
        await house.ended(session)
        assert sent_by(house, session) == ["read", "read"], "a caller's slow call is hedged"
        end = await twin_of(house, twins, session)
        assert end is not None
        assert end.state.status is SessionStatus.SUCCEEDED
        assert sent_by(house, end.state.session_id) == ["read"]

    run(story())
