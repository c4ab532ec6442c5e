"""The suite run against itself: for every MUST a peer that breaks it, and what then failed.

A row is whole when the MUST has a case, has a broken peer, exactly its checks fail (with those that
cannot but fail with it) and the failure gives the stated reason. A correct peer must be all green,
or nothing here would mean anything.
"""

import asyncio
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from acp_spec.bindings.errors import error
from acp_spec.model.errors import AcpFailure, Reason
from conformance_tests.broken import (
    call_peers,
    card_peers,
    error_peers,
    grpc_peers,
    key_peers,
    wire_peers,
)
from conformance_tests.broken.peer import TOKEN, BrokenPeer, serving
from conformance_tests.runner.component_suite import Options, run_component
from conformance_tests.runner.fixtures import Fixtures
from conformance_tests.runner.library import library
from conformance_tests.runner.requirements import Party, Requirement, musts
from conformance_tests.runner.results import Outcome, Result, Run, Verdict

PEERS_AT_ONCE = 3
"""Most of a run waits, so that three side by side keep one core busy and no clock late."""

COMPONENT_PEERS = (
    *wire_peers.PEERS,
    *grpc_peers.PEERS,
    *call_peers.PEERS,
    *card_peers.PEERS,
    *key_peers.PEERS,
    *error_peers.PEERS,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One MUST for one party: its cases, its broken peer, and what became of it."""

    requirement: Requirement
    party: Party
    cases: tuple[str, ...]
    peer: BrokenPeer | None
    killed: bool = False
    for_its_reason: bool = False
    said: str = ""

    @property
    def whole(self) -> bool:
        return self.for_its_reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Matrix:
    rows: tuple[Row, ...]

    @property
    def whole(self) -> bool:
        return all(row.whole for row in self.rows)

    def counts(self) -> dict[str, int]:
        """Five numbers that must be equal."""
        return {
            "must": len(self.rows),
            "with_case": sum(bool(row.cases) for row in self.rows),
            "with_broken_peer": sum(row.peer is not None for row in self.rows),
            "killed": sum(row.killed for row in self.rows),
            "killed_for_the_stated_reason": sum(row.for_its_reason for row in self.rows),
        }


def parties_of(kind: str) -> tuple[Party, ...]:
    """Raises AcpFailure for a kind that is none."""
    known: dict[str, tuple[Party, ...]] = {
        "component": (Party.COMPONENT,),
        "gateway": (Party.GATEWAY,),
    }
    known["all"] = (Party.COMPONENT, Party.GATEWAY)
    if kind not in known:
        raise AcpFailure(error(Reason.INVALID_REQUEST, f"--kind is one of {sorted(known)}."))
    return known[kind]


async def run_matrix(parties: Sequence[Party], *, only: tuple[str, ...] = ()) -> Matrix:
    """Every row. Raises AcpFailure when the correct peer is not all green."""
    rows: list[Row] = []
    if Party.COMPONENT in parties:
        rows += await _component_rows(only)
    return Matrix(rows=tuple(rows))


async def _component_rows(only: tuple[str, ...]) -> list[Row]:
    correct = await run_against(None)
    not_green = [r.id for r in correct.results if r.outcome is not Outcome.PASSED]
    if correct.problems or not_green:
        said = f"The correct component is not all green: {not_green or correct.problems}"
        raise AcpFailure(error(Reason.INTERNAL, said))
    peers = {peer.requirement: peer for peer in COMPONENT_PEERS}
    cases = cases_by_requirement(Party.SDK)
    free = asyncio.Semaphore(PEERS_AT_ONCE)

    async def judged(one: Requirement) -> Row:
        peer = peers.get(one.id)
        row = Row(requirement=one, party=Party.COMPONENT, cases=cases.get(one.id, ()), peer=peer)
        async with free:
            return row if peer is None else judge(row, peer, run=await run_against(peer))

    wanted = [m for m in musts(Party.COMPONENT, Party.SDK) if not only or m.id in only]
    return list(await asyncio.gather(*(judged(one) for one in wanted)))


async def run_against(peer: BrokenPeer | None) -> Run:
    """The whole component suite against one peer over both bindings."""
    async with serving(peer) as urls:
        return await run_component(
            Options(targets=urls, kind=Party.SDK, fixtures=Fixtures(token=TOKEN, exposed=True))
        )


def cases_by_requirement(kind: Party) -> dict[str, tuple[str, ...]]:
    found: dict[str, list[str]] = {}
    for case in library(kind):
        found.setdefault(case.requirement.id, []).append(case.name)
    return {id_: tuple(names) for id_, names in found.items()}


def judge(row: Row, peer: BrokenPeer, *, run: Run) -> Row:
    """What the run says about this row."""
    failures = [r for r in run.results if r.verdict is Verdict.FAILURE]
    failed = {result.requirement.id for result in failures}
    foreign = sorted(failed - {peer.requirement} - set(peer.fails_with))
    said = " / ".join(_shown(failures, peer.requirement)) or "nothing failed"
    if foreign or run.problems:
        others = [f"{r.id}: {r.why}" for r in failures if r.requirement.id in foreign]
        said = f"others failed too: {'; '.join([*others, *run.problems])[:600]}"
    missing = [id_ for id_ in peer.fails_with if id_ not in failed]
    if missing:
        said = f"{missing} is said to fail with it and does not"
    killed = peer.requirement in failed and not foreign and not run.problems and not missing
    whys = [result.why for result in failures if result.requirement.id == peer.requirement]
    for_its_reason = killed and all(re.search(peer.because, why) for why in whys)
    return Row(
        requirement=row.requirement,
        party=row.party,
        cases=row.cases,
        peer=peer,
        killed=killed,
        for_its_reason=for_its_reason,
        said=said,
    )


def _shown(failures: Iterable[Result], requirement: str) -> list[str]:
    return [r.why[:200] for r in failures if r.requirement.id == requirement][:3]
