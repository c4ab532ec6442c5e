"""Crowds of troubled sessions in one gateway: small queues, small memory, cancels at any moment.

Whatever happens every session ends, every permit is closed, and every journal keeps the laws.
"""

import asyncio
import random

import msgspec
import pytest

from gateway.engine import replay
from gateway.engine.events import AttemptEnded, AttemptStarted
from gateway.engine.states import SessionState
from gateway.engine.step import begin, step
from gateway.engine.tests import laws
from gateway.engine.tests.casting import Said
from gateway.engine.tests.stage import (
    FOUR_CALLS,
    ONE_ACTION,
    accepted,
    by_seed,
    failed,
    gave,
    goal,
    judged,
    planned,
)
from gateway.governance.parameters import Override, Parameters
from gateway.governance.rules import BreakerRules, RateRules, RetryTokenRules
from gateway.runtime.connection import Outgoing
from gateway.runtime.principal import Principal
from gateway.runtime.tests.fake_components import name_of
from gateway.runtime.tests.house import CARDS, House, slots
from gateway.runtime.tests.virtual_time import run

TENANTS = tuple(
    Principal(tenant=name, scopes=frozenset(("admin",)), subject=name) for name in ("a", "b")
)
ACTIONS = ("read", "pay", "book", "put", "grow")
SEEDS = [*range(2), *(pytest.param(seed, marks=pytest.mark.long) for seed in range(2, 12))]
TIMER_SEED = 6
"""Here a rate's timer was set for less than the clock can tell, for ever."""
LINES: tuple[Said | None, ...] = (
    gave({"done": 1}),
    gave({"done": 2}),
    gave({"done": 3}),
    failed(),
    failed(after_ms=700),
    None,
    Said(response=b'{"output":1}', after_ms=5_400),
    accepted(80),
)


PACED = RateRules(per_second=40, burst=2)
SMALL = slots(2, queue=3, waiting=40)
TOUCHY = msgspec.structs.replace(
    SMALL,
    breaker=BreakerRules(
        failures_in_a_row=2, open_ms=30, max_open_ms=200, probe_patience_ms=300, max_waiting=5
    ),
    retry_tokens=RetryTokenRules(max_tokens=6, token_ratio=0.5),
    components={
        card.name: Override(
            actions={a.name: RateRules(per_second=40, burst=2) for a in card.actions}
        )
        for card in CARDS
    },
)
"""Breakers that open at the second failure, few retry tokens, and a rate for every action."""


def component(seed: int, outgoing: Outgoing) -> Said | None:
    """What a component says is a hash of who is asked."""
    context = outgoing.context
    name = name_of(outgoing)
    at = by_seed(seed, context.call_id, context.attempt)
    if name == "plan":
        count = 1 + int(at * 5)
        chosen = [ACTIONS[int(by_seed(seed, context.call_id, n) * 5)] for n in range(count)]
        needs = [[] if n % 2 == 0 else [f"g{n - 1}"] for n in range(count)]
        return planned(*(goal(f"g{n}", chosen[n], depends_on=needs[n]) for n in range(count)))
    if name == "judge":
        return judged("ACCEPT" if at < 0.8 else "REPLAN", output=1)
    if name == "remember":
        return Said(response=b'{"stored":1}')
    line = LINES[int(at * len(LINES))]
    return gave(1) if name != "grow" and line is LINES[-1] else line


def keep_laws(house: House, session: str) -> None:
    events = house.journal(session)
    state: SessionState | None = None
    for event in events:
        if state is None:
            state, _ = begin(house.state(session).workflow, events[0])  # type: ignore[arg-type]
            continue
        after, _ = step(state, event)
        laws.check_event(state, event, after)
        state = after
    found = replay.check(events, house.state(session).workflow)
    assert found.same, found.difference
    assert state == house.state(session), "memory and journal tell the same"
    started = [(e.call_id, e.attempt) for e in events if isinstance(e, AttemptStarted)]
    ended = [(e.call_id, e.attempt) for e in events if isinstance(e, AttemptEnded)]
    assert sorted(started) == sorted(ended)


async def crowded(house: House, seed: int, count: int) -> list[str]:
    """Sessions that come one after the other; some are cancelled at some moment."""
    dice = random.Random(seed)
    for name in ("plan", "judge", "remember", *ACTIONS):
        house.targets.connection.lines[name] = lambda outgoing: component(seed, outgoing)
    opened = []
    for _ in range(count):
        text = FOUR_CALLS if dice.random() < 0.5 else ONE_ACTION % dice.choice(ACTIONS)
        session = await house.open(text, principal=dice.choice(TENANTS), deadline_ms=20_000)
        opened.append(session)
        if dice.random() < 0.25:
            loop = asyncio.get_running_loop()
            loop.call_later(dice.random() * 3, cancel, house, session)
        await asyncio.sleep(dice.random() * 0.05)
    return opened


def cancel(house: House, session: str) -> None:
    live = house.sessions.find(session)
    assert live is not None
    who = next(t for t in TENANTS if t.tenant == live.state.opened.tenant)
    asyncio.ensure_future(house.service.cancel(session, who))  # noqa: RUF006 - awaited by time


async def ended(house: House, session: str) -> None:
    for _ in range(4_000):
        if house.state(session).terminal:
            return
        await asyncio.sleep(0.1)
    raise AssertionError(f"{session} never ends")


@pytest.mark.parametrize("rules", [SMALL, TOUCHY], ids=["small", "touchy"])
@pytest.mark.parametrize("seed", [*SEEDS, pytest.param(TIMER_SEED, id="timer")])
def test_in_a_crowd_every_session_ends_and_nothing_is_left_behind(
    seed: int, rules: Parameters
) -> None:
    async def story() -> None:
        house = House(parameters=rules, live_limit=4)
        opened = await crowded(house, seed, 40)
        for session in opened:
            await ended(house, session)
        await asyncio.sleep(10)
        for session in opened:
            keep_laws(house, session)
        house.check_permits()
        assert house.driver.open_sessions == 0
        assert not house.driver.timers._handles

    run(story())


@pytest.mark.parametrize("seed", SEEDS)
def test_a_crowd_whose_gateway_dies_in_the_middle_comes_to_its_end_in_the_next(seed: int) -> None:
    async def story() -> None:
        house = House(parameters=SMALL, live_limit=4)
        opened = await crowded(house, seed, 25)
        again = House(parameters=SMALL, live_limit=4, store=house.store, seed=99)
        house.committer.put = lambda table, key, value: None  # type: ignore[method-assign]
        house.committer.delete = lambda table, key: None  # type: ignore[method-assign]
        house.committer.append = lambda *record, events: None  # type: ignore[method-assign]
        for name, line in house.targets.connection.lines.items():
            again.targets.connection.lines[name] = line
        assert await again.resume() == 0
        for session in opened:
            await ended(again, session)
        await asyncio.sleep(10)
        for session in opened:
            keep_laws(again, session)
        again.check_permits()
        assert again.driver.open_sessions == 0

    run(story())
