"""Many worlds of one seed, over one or more processes, and the figures of all of them.

Worlds are numbered; a process takes every n-th. What came of a world is the same whoever lived it,
so the figures and the digest of a campaign are too.
"""

import contextlib
import functools
import gc
import multiprocessing
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait

from acp_spec.model.card import Card
from gateway.engine.workflow_file import parse_stored, parse_workflow
from gateway.simulation import faults
from gateway.simulation.books import Violation
from gateway.simulation.exchanging import Exchange, exchanged
from gateway.simulation.house import MakeHouse
from gateway.simulation.scenario import SESSIONS, Lived, Scenario
from gateway.simulation.world import World

WORLDS_AT_ONCE = 8
"""Worlds between two reports of a process: about a second."""
CARDS_KEPT = 1_024

Keep = Callable[[list[bytes]], None]
"""Takes the trajectories of a world, as lines."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What is to be simulated. `seconds` 0: until `sessions` have been opened."""

    seed: int
    sessions: int
    seconds: float = 0.0
    workers: int = 2
    recovery: Mapping[str, object] = field(default_factory=dict)

    def scenario(self, world: int) -> Scenario:
        return Scenario(seed=self.seed, world=world, recovery=self.recovery)

    @property
    def worlds(self) -> int:
        return max(1, -(-self.sessions // SESSIONS))


@dataclass(slots=True)
class Sum:
    """The figures of many worlds; sums of sums are sums."""

    worlds: int = 0
    sessions: int = 0
    faulty: int = 0
    lives: int = 0
    digest: int = 0
    met: Counter[str] = field(default_factory=Counter)
    ends: Counter[str] = field(default_factory=Counter)
    calls: Counter[int] = field(default_factory=Counter)
    broken: list[tuple[Scenario, Violation]] = field(default_factory=list)

    def add(self, lived: Lived) -> None:
        self.worlds += 1
        self.sessions += lived.sessions
        self.faulty += lived.faulty
        self.lives += lived.lives
        self.digest ^= hash((lived.scenario.world, lived.digest))
        self.met += lived.met
        self.ends += lived.ends
        self.calls += Counter(lived.calls)
        self.broken += [(lived.scenario, one) for one in lived.violations]

    def join(self, other: "Sum") -> None:
        self.worlds += other.worlds
        self.sessions += other.sessions
        self.faulty += other.faulty
        self.lives += other.lives
        self.digest ^= other.digest
        self.met += other.met
        self.ends += other.ends
        self.calls += other.calls
        self.broken += other.broken

    @property
    def calls_median(self) -> int:
        """Calls of the session in the middle."""
        seen, half = 0, self.sessions / 2
        for calls in sorted(self.calls):
            seen += self.calls[calls]
            if seen >= half:
                return calls
        return 0

    def share(self, kind: str) -> float:
        return round(self.met[kind] / max(1, self.sessions), 4)


def figures(total: Sum, order: Order, *, seconds: float) -> dict[str, object]:
    """The last line of a simulation."""
    return {
        "sessions": total.sessions,
        "seed": order.seed,
        "violations": len(total.broken),
        "sessions_per_s": round(total.sessions / seconds) if seconds else 0,
        "calls_median": total.calls_median,
        "fault_share": round(total.faulty / max(1, total.sessions), 4),
        "fault_kinds": {kind: total.share(kind) for kind in faults.KINDS},
        "worlds": total.worlds,
        "lives": total.lives,
        "digest": f"{total.digest & 0xFFFFFFFFFFFFFFFF:016x}",
    }


def _remembered(name: str, reader: Callable[[bytes], object]) -> Exchange:
    known = functools.lru_cache(maxsize=1_024)(reader)
    return Exchange(place=f"gateway.runtime.workflows:{name}", make=lambda before: known)


def _remembered_of_card(place: str) -> Exchange:
    """By the object, which is kept so long: some cards hold what cannot be hashed."""
    known: dict[int, tuple[Card, object]] = {}

    def make(before: Callable[[Card], object]) -> Callable[[Card], object]:
        def of(card: Card) -> object:
            found = known.get(id(card))
            if found is None:
                if len(known) >= CARDS_KEPT:
                    known.clear()
                found = known[id(card)] = card, before(card)
            return found[1]

        return of

    return Exchange(place=place, make=make)


REMEMBERED = (
    _remembered("parse_workflow", parse_workflow),
    _remembered("parse_stored", parse_stored),
    _remembered_of_card("gateway.runtime.admission:card_problems"),
    _remembered_of_card("gateway.runtime.registry:card_digest"),
)
"""The same few files and cards are stored in world after world; reading a file takes as long as ten
sessions."""


def lived(scenario: Scenario, make: MakeHouse) -> Lived:
    """One world, from its beginning to its end."""
    with contextlib.ExitStack() as stack:
        for one in REMEMBERED:
            stack.enter_context(exchanged(one))
        try:
            return World(scenario, make).live()
        except Exception as fault:
            # Nobody finds it again without this: the world's name is lost with its process.
            fault.add_note(f"in world {scenario.world} of seed {scenario.seed}")
            raise


def sums(
    order: Order, make: MakeHouse, *, first: int = 0, keep: Keep | None = None
) -> Iterator[Sum]:
    """Every n-th world from `first` on, a few at a time; stops at the first broken law."""
    begin = time.monotonic()
    gc.collect()
    gc.freeze()
    gc.disable()
    world = first
    while not order.seconds or time.monotonic() - begin < order.seconds:
        total = Sum()
        for _ in range(WORLDS_AT_ONCE):
            if not order.seconds and world >= order.worlds:
                break
            found = lived(order.scenario(world), make)
            if keep is not None:
                keep(found.lines)
            total.add(found)
            gc.collect()  # small and at hand: eight worlds at once cost a twentieth more
            world += order.workers
            if found.violations:
                break
        yield total
        if total.broken or not total.worlds:
            break
    gc.enable()
    gc.unfreeze()


def campaign(
    order: Order, make: MakeHouse, *, heard: Callable[[Sum], None], keep: Keep | None = None
) -> Sum:
    """All of it; `heard` is told now and then how far it is."""
    total = Sum()
    for part in _parts(order, make, keep=keep):
        total.join(part)
        heard(total)
        if part.broken:
            break
    return total


def _parts(order: Order, make: MakeHouse, *, keep: Keep | None) -> Iterator[Sum]:
    if order.workers == 1:
        yield from sums(order, make, keep=keep)
        return
    context = multiprocessing.get_context("fork")
    workers = []
    for first in range(order.workers):
        ours, theirs = context.Pipe(duplex=False)
        worker = context.Process(
            target=_work, args=(order, make), kwargs={"first": first, "pipe": theirs}, daemon=True
        )
        worker.start()
        theirs.close()
        workers.append((worker, ours))
    try:
        yield from _heard([ours for _, ours in workers])
        for worker, _ in workers:
            worker.join()
            assert worker.exitcode == 0, "a process of the simulation failed, as told above"
    finally:
        for worker, _ in workers:
            worker.terminate()
            worker.join()


def _heard(pipes: list[Connection]) -> Iterator[Sum]:
    while pipes:
        for pipe in wait(pipes):
            assert isinstance(pipe, Connection)
            try:
                yield pipe.recv()
            except EOFError:
                pipes.remove(pipe)


def _work(order: Order, make: MakeHouse, *, first: int, pipe: Connection) -> None:
    """In a process of its own."""
    for total in sums(order, make, first=first):
        pipe.send(total)
    pipe.close()
