"""The run against a component: read the card, plan, ask, watch, count.

Scenarios run side by side (most of them wait); those that say `alone` follow one by one.
"""

import asyncio
from collections.abc import Awaitable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace

from conformance_tests.messages.tree import Tree
from conformance_tests.raw.attach_end import AttachEnd
from conformance_tests.raw.http1 import Unreachable
from conformance_tests.runner.answers import Exchange
from conformance_tests.runner.attach_orders import OrderedPeer
from conformance_tests.runner.dialling import Dial, told
from conformance_tests.runner.expansion import Planned, plan
from conformance_tests.runner.fixtures import Fixtures
from conformance_tests.runner.library import Case, library
from conformance_tests.runner.peers import Ask, Peer, peer_at
from conformance_tests.runner.requirements import Party
from conformance_tests.runner.results import Outcome, Result, Run, compare
from conformance_tests.runner.scenario import Scenario
from conformance_tests.runner.subject import Subject
from conformance_tests.runner.watching import watch

SIDE_BY_SIDE = 8
"""Scenarios at once: enough that waiting ones cost nothing, few enough for a small component."""

COMES_WITHIN_S = 60.0
"""Until a component that attaches has started and dialled; others answer or refuse at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the caller of the suite chose."""

    targets: tuple[str, ...]
    kind: Party = Party.COMPONENT
    fixtures: Fixtures = field(default_factory=Fixtures)
    allow_side_effects: bool = False
    seed: int = 1
    attach_bind: str = ""
    """Where a component that attaches dials in; the suite plays the gateway's side there."""
    only: tuple[str, ...] = ()
    """Requirement or case ids; empty = all. A filtered run says so in its report."""

    @property
    def target(self) -> str:
        """Whom the report names."""
        return " ".join(
            (*self.targets, *([f"attach {self.attach_bind}"] if self.attach_bind else []))
        )

    def attached_at(self, bind: str) -> "Options":
        """The same, with a component that dials in there."""
        return replace(self, attach_bind=bind)

    def limited(self, only: tuple[str, ...]) -> "Options":
        """The same, for some requirements or cases."""
        return replace(self, only=only)


async def run_component(options: Options, *, dial: Dial = told) -> Run:
    """Run every case; `dial` sees to it that a component that attaches does.

    Raises ValueError for a target that is no URL, OSError for an address that cannot be bound.
    """
    library(options.kind)  # read before anything waits for a heartbeat
    peers = {p.binding: p for p in (_peer(url, options) for url in options.targets)}
    async with AsyncExitStack() as open_:
        for peer in peers.values():
            open_.push_async_callback(peer.close)
        if options.attach_bind:
            end = AttachEnd(options.attach_bind)
            await end.start()
            attached = OrderedPeer(end)
            open_.push_async_callback(attached.close)
            gone = await open_.enter_async_context(dial(end.url))
            if gone is not None:
                watching = asyncio.ensure_future(_heed(gone, end))
                open_.callback(watching.cancel)
            peers[attached.binding] = attached
        return await _run(peers, options)


async def _heed(gone: Awaitable[str], end: AttachEnd) -> None:
    end.nobody_comes(await gone)


def _peer(url: str, options: Options) -> Peer:
    return peer_at(url, token=options.fixtures.token)


def chosen(options: Options) -> list[Case]:
    """The cases of this run."""
    cases = library(options.kind)
    if not options.only:
        return list(cases)
    return [case for case in cases if {case.id, case.requirement.id} & set(options.only)]


async def _run(peers: dict[str, Peer], options: Options) -> Run:
    cases = chosen(options)
    try:
        cards = {binding: await _card(peer) for binding, peer in peers.items()}
    except Unreachable as problem:
        return _unreachable(cases, options, problem=str(problem))
    subject = Subject(cards, options.fixtures, allow_side_effects=options.allow_side_effects)
    planned = plan(cases, subject, bindings=list(peers))
    results, log = await _scenarios(planned, peers, subject=subject, seed=options.seed)
    results += [
        watch(entry, log, subject=subject)
        for entry in planned
        if entry.settled is None and entry.case.watch is not None
    ]
    results += [e.result(e.settled, reason=e.reason) for e in planned if e.settled is not None]
    order = {entry.id: number for number, entry in enumerate(planned)}
    results.sort(key=lambda result: order.get(result.id, len(order)))
    return Run(
        target=options.target,
        kind=options.kind.value,
        seed=options.seed,
        results=tuple(results),
        problems=tuple(compare([entry.id for entry in planned], results)),
    )


async def _card(peer: Peer) -> Tree:
    answer = await peer.ask(Ask(do="describe", timeout_s=COMES_WITHIN_S))
    if not answer.ok or answer.tree is None:
        raise Unreachable(f"{peer.url} does not describe itself: {answer.said}")
    return answer.tree


def _unreachable(cases: Sequence[Case], options: Options, *, problem: str) -> Run:
    planned = [Planned(case=case, binding="") for case in cases]
    results = tuple(entry.result(Outcome.NOT_TESTED, reason=problem) for entry in planned)
    return Run(
        target=options.target,
        kind=options.kind.value,
        seed=options.seed,
        results=results,
        problems=(problem,),
    )


async def _scenarios(
    planned: Sequence[Planned], peers: dict[str, Peer], *, subject: Subject, seed: int
) -> tuple[list[Result], list[Exchange]]:
    log: list[Exchange] = []
    free = asyncio.Semaphore(SIDE_BY_SIDE)

    async def one(entry: Planned) -> Result:
        scenario = Scenario(entry, peers[entry.binding], subject=subject, seed=seed)
        async with free:
            result = await scenario.run()
        log.extend(scenario.log)
        return result

    running = [e for e in planned if e.settled is None and e.case.watch is None]
    results = list(await asyncio.gather(*(one(e) for e in running if not e.case.alone)))
    results += [await one(entry) for entry in running if entry.case.alone]
    return results, log
