"""The suite run against itself: for every MUST a peer that breaks it, and what then failed.

A row is whole when the MUST has a case, has a broken peer, exactly its checks fail and the failure
gives the stated reason. Rows are run in batches, two processes at a time.
"""

import asyncio
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context

from acp_spec.bindings.errors import error
from acp_spec.model.errors import AcpFailure, Reason
from conformance_tests.broken.houses import Batch, NotGreen, run_batch
from conformance_tests.broken.peers import Broken, peers_of
from conformance_tests.broken.verdicts import Caught
from conformance_tests.runner.library import library
from conformance_tests.runner.requirements import Party, Requirement, musts

PROCESSES = 2
BATCH_ROWS = 48
"""A gateway stores 20,000 workflow versions, and each row some 200."""
SEEN_WITHOUT_RESTART = frozenset({"GWY-020"})
"""Has a case that restarts and one that does not; its broken gateway is seen by the latter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One MUST for one party: its cases, its broken peer, and what became of it."""

    requirement: Requirement
    party: Party
    cases: tuple[str, ...]
    peer: Broken | None
    caught: Caught | None

    @property
    def whole(self) -> bool:
        return self.caught is not None and self.caught.for_its_reason

    @property
    def said(self) -> str:
        return self.caught.said if self.caught else "it has no broken peer"


@dataclass(frozen=True, slots=True, kw_only=True)
class Matrix:
    rows: tuple[Row, ...]

    @property
    def whole(self) -> bool:
        return all(row.whole for row in self.rows)

    def counts(self) -> dict[str, int]:
        """Five numbers that must be equal."""
        caught = [row.caught for row in self.rows if row.caught is not None]
        return {
            "must": len(self.rows),
            "with_case": sum(bool(row.cases) for row in self.rows),
            "with_broken_peer": sum(row.peer is not None for row in self.rows),
            "killed": sum(one.killed for one in caught),
            "killed_for_the_stated_reason": sum(one.for_its_reason for one in caught),
        }


def parties_of(kind: str) -> tuple[Party, ...]:
    """Raises AcpFailure for a kind that is none."""
    known: dict[str, tuple[Party, ...]] = {
        "component": (Party.COMPONENT,),
        "gateway": (Party.GATEWAY,),
        "all": (Party.COMPONENT, Party.GATEWAY),
    }
    if kind not in known:
        raise AcpFailure(error(Reason.INVALID_REQUEST, f"--kind is one of {sorted(known)}."))
    return known[kind]


def musts_of(party: Party) -> list[Requirement]:
    """What binds this party; an SDK's statements are rows of the component."""
    return musts(party) if party is Party.GATEWAY else musts(Party.COMPONENT, Party.SDK)


async def run_matrix(parties: Sequence[Party], *, only: tuple[str, ...] = ()) -> Matrix:
    """Every row. Raises AcpFailure when a correct peer is not all green, or for an unknown id."""
    every = [(p, one) for p in parties for one in musts_of(p)]
    unknown = set(only) - {one.id for _, one in every}
    if unknown:  # no rows are equal in all five numbers, and prove nothing
        said = f"--only {min(unknown)}: no MUST has that id; docs/conformance.md lists them"
        raise AcpFailure(error(Reason.INVALID_REQUEST, said))
    wanted = [(p, one) for p, one in every if not only or one.id in only]
    found: dict[tuple[Party, str], Caught] = {}
    loop = asyncio.get_running_loop()
    with ProcessPoolExecutor(PROCESSES, mp_context=get_context("spawn")) as pool:
        running = [
            loop.run_in_executor(pool, run_batch, batch)
            for party in parties
            for batch in batches(party, [one.id for p, one in wanted if p is party])
        ]
        try:
            for caught in await asyncio.gather(*running):
                found.update({(one.party, one.requirement): one for one in caught})
        except NotGreen as problem:
            raise AcpFailure(error(Reason.INTERNAL, str(problem))) from None
    return Matrix(rows=tuple(_row(party, one, found=found) for party, one in wanted))


def batches(party: Party, ids: Sequence[str]) -> Iterator[Batch]:
    """Requirements with a broken peer, in portions; those that need restarts by themselves."""
    peers = peers_of(party)
    apart = restarting() - SEEN_WITHOUT_RESTART if party is Party.GATEWAY else frozenset()
    side = [id_ for id_ in ids if id_ in peers and id_ not in apart]
    own = tuple(id_ for id_ in ids if id_ in peers and id_ in apart)
    if own:
        yield Batch(party=party, ids=own, restarting=True)
    count = -(-len(side) // BATCH_ROWS)
    yield from (Batch(party=party, ids=tuple(side[n::count])) for n in range(count))


def restarting() -> frozenset[str]:
    """Requirements of which a case restarts the gateway."""
    cases = library(Party.GATEWAY)
    return frozenset(case.requirement.id for case in cases if "restart" in case.needs)


def _row(party: Party, one: Requirement, *, found: dict[tuple[Party, str], Caught]) -> Row:
    kind = Party.GATEWAY if party is Party.GATEWAY else Party.SDK
    return Row(
        requirement=one,
        party=party,
        cases=cases_by_requirement(kind).get(one.id, ()),
        peer=peers_of(party).get(one.id),
        caught=found.get((party, one.id)),
    )


def cases_by_requirement(kind: Party) -> dict[str, tuple[str, ...]]:
    """Names of the cases of each requirement."""
    found: dict[str, list[str]] = {}
    for case in library(kind):
        found.setdefault(case.requirement.id, []).append(case.name)
    return {id_: tuple(names) for id_, names in found.items()}
