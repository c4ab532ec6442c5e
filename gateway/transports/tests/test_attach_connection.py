"""Whatever links do, every attempt is told once, a late answer at most once, and runs at most once.

A model of a component sits at the other end: it keeps what it got and what it answered, drops with
its link, and says in its hello what it really has.
"""

import asyncio
from collections import Counter
from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st

from acp_spec.codec import frames
from acp_spec.model.attach import Key
from acp_spec.model.calls import ExecuteResponse
from acp_spec.model.enums import Boundary, Effect, SideEffect
from acp_spec.model.payload import payload
from gateway.runtime.connection import Answer
from gateway.runtime.tests import virtual_time
from gateway.transports.attach_connection import AttachConnection, Promise
from gateway.transports.attach_link import Link
from gateway.transports.tests.attach_house import call, served_card

CREDITS = 3
OFTEN = ("send", "drain", "answer", "link") * 3
ACTIONS = (*OFTEN, "lose", "ack", "cut", "restart", "reset")


class Component:
    """What the other end is: `began` counts how often each attempt was begun, ever."""

    def __init__(self) -> None:
        self.began: Counter[Key] = Counter()
        self.working: dict[Key, None] = {}
        self.answered: dict[Key, None] = {}

    @property
    def known(self) -> frozenset[Key]:
        return frozenset((*self.working, *self.answered))

    def take(self, sent: list[bytes]) -> None:
        for frame in frames.read_gateway_calls(frames.gateway_calls(sent), max_bytes=1 << 20):
            if isinstance(frame, frames.Called) and frame.key not in self.known:
                self.began[frame.key] += 1
                self.working[frame.key] = None

    def free(self) -> int:
        return CREDITS - len(self.working)


class Play:
    """One connection, its component, and everything that was told to sinks."""

    def __init__(self) -> None:
        self.acks: list[Key] = []
        self.connection = AttachConnection(
            served_card(), max_response_bytes=1 << 20, acknowledge=self.acks.append
        )
        self.component = Component()
        self.link: Link | None = None
        self.told: dict[Key, list[tuple[Answer, bool]]] = {}
        self.links = 0

    def send(self) -> None:
        outgoing = call(f"c{len(self.told)}", effect=Effect.WRITE)
        told: list[tuple[Answer, bool]] = []
        self.told[outgoing.context.call_id, 1] = told
        self.connection.send(outgoing, lambda answer, late: told.append((answer, late)))

    def drain(self) -> None:
        """The link writes what it has; the component gets it."""
        if self.link is not None:
            self.component.take(self.link.calls.drain())

    def lose(self) -> None:
        """The link writes, and breaks before anything arrives."""
        if self.link is not None:
            self.link.calls.drain()
            self.cut()

    def answer(self) -> None:
        for key in list(self.component.working)[:1]:
            del self.component.working[key]
            self.component.answered[key] = None
            self._deliver([key], credits=1)

    def ack(self) -> None:
        for key in self.acks:
            self.component.answered.pop(key, None)
        self.acks.clear()

    def cut(self) -> None:
        if self.link is not None:
            self.link = None
            self.connection.unlinked()

    def link_up(self, *, same_process: bool = True) -> None:
        self.cut()
        self.links += 1
        self.link = Link(str(self.links))
        promise = Promise(known=self.component.known, same_process=same_process)
        self.connection.linked(self.link, promise)
        self._deliver(list(self.component.answered), credits=self.component.free())

    def restart(self) -> None:
        """The process dies with what it worked on; its answers were on disk."""
        self.component.working.clear()
        self.link_up(same_process=False)

    def reset(self) -> None:
        for key in list(self.told)[-1:]:
            self.connection.reset(*key)

    def _deliver(self, keys: list[Key], *, credits: int) -> None:
        if self.link is None:
            return
        said = ExecuteResponse(output=payload(b"1"), side_effect=SideEffect.PERFORMED)
        received: list[frames.FromComponent] = [frames.Answered(key, said) for key in keys]
        self.connection.receive([*received, frames.Granted(credits)])

    def end(self) -> None:
        """A last link; everything is written and answered."""
        self.link_up()
        for _ in range(2 * len(self.told) + 2):
            self.drain()
            while self.component.working:
                self.answer()

    def check(self) -> None:
        for key, told in self.told.items():
            assert [late for _, late in told][:1] == [False], f"{key} was never told"
            assert [late for _, late in told[1:]] in ([], [True]), f"{key}: {told}"
            assert self.component.began[key] <= 1, f"{key} was begun twice"
            if told[0][0].not_sent:
                assert self.component.began[key] == 0, f"{key} was begun, and called not sent"
        assert self.connection.waiting == 0


@given(st.lists(st.sampled_from(ACTIONS), min_size=8, max_size=60))
@settings(max_examples=150)
def test_every_attempt_is_told_once_and_begun_at_most_once(actions: list[str]) -> None:
    async def story() -> None:
        play = Play()
        steps: dict[str, Callable[[], None]] = {
            "send": play.send,
            "drain": play.drain,
            "lose": play.lose,
            "answer": play.answer,
            "ack": play.ack,
            "cut": play.cut,
            "link": play.link_up,
            "restart": play.restart,
            "reset": play.reset,
        }
        for action in actions:
            steps[action]()
            await asyncio.sleep(0)
        play.end()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        play.end()
        await asyncio.sleep(0)
        play.check()
        await play.connection.close()

    asyncio.run(story())


def test_an_instance_that_is_given_up_ends_all_its_attempts_and_takes_no_more() -> None:
    async def story() -> None:
        play = Play()
        play.link_up()
        for _ in range(CREDITS + 1):
            play.send()
        play.drain()
        play.connection.give_up("it left")
        play.send()
        await asyncio.sleep(0)
        sides = [told[0][0].side_effect for told in play.told.values()]
        assert sides == [SideEffect.UNKNOWN] * CREDITS + [SideEffect.NONE] * 2

    asyncio.run(story())


def test_a_gateway_that_stops_forsakes_attempts_without_a_word() -> None:
    async def story() -> None:
        play = Play()
        play.link_up()
        play.send()
        play.drain()
        play.connection.forsake()
        await play.connection.close()
        await asyncio.sleep(0)
        assert list(play.told.values()) == [[]]

    asyncio.run(story())


def test_time_without_a_credit_is_no_service_time() -> None:
    async def story() -> None:
        play = Play()
        play.link_up()
        for _ in range(CREDITS + 1):
            play.send()
        play.drain()
        await asyncio.sleep(2)
        play.answer()
        play.drain()  # the fourth is written two seconds after it was given to the connection
        await asyncio.sleep(0.5)
        while play.component.working:
            play.answer()
        served = [told[0][0].service_ms for told in play.told.values()]
        assert served == [2_000, 2_500, 2_500, 500]

    virtual_time.run(story())


def test_whoever_never_gets_a_credit_timed_out_in_the_gateways_own_queue() -> None:
    async def story() -> None:
        play = Play()
        play.link_up()
        for _ in range(CREDITS + 1):
            play.send()
        play.drain()
        await asyncio.sleep(6)
        last = play.told["c3", 1][0][0]
        assert last.not_sent
        assert last.service_ms is None
        assert last.error is not None
        assert last.error.boundary is Boundary.GATEWAY

    virtual_time.run(story())


def test_an_adopted_attempt_is_measured_from_its_adoption() -> None:
    async def story() -> None:
        play = Play()
        told: list[Answer] = []
        play.component.working["old", 1] = None
        play.connection.adopt(call("old"), lambda answer, late: told.append(answer))
        play.link_up()
        await asyncio.sleep(0.25)
        said = ExecuteResponse(output=payload(b"1"), side_effect=SideEffect.PERFORMED)
        play.connection.receive([frames.Answered(("old", 1), said)])
        assert [answer.service_ms for answer in told] == [250]

    virtual_time.run(story())
