"""The suite run against itself: for every MUST a peer that breaks it, and what then failed.

A row is whole when the MUST has a case, has a broken peer, exactly its checks fail (with those that
cannot but fail with it) and the failure gives the stated reason. A correct peer must be all green,
or nothing here would mean anything.
"""

import asyncio
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from acp_spec.bindings.errors import error
from acp_spec.model.errors import AcpFailure, Reason
from conformance_tests.broken import (
    call_peers,
    card_peers,
    error_peers,
    gateway_api,
    gateway_calls,
    gateway_context,
    gateway_record,
    gateway_session,
    gateway_wire,
    grpc_peers,
    key_peers,
    wire_peers,
)
from conformance_tests.broken.epoch import EPOCH
from conformance_tests.broken.gateway import BrokenGateway, before
from conformance_tests.broken.gateway_process import GatewayProcess, running_gateway
from conformance_tests.broken.http_layer import HttpLayer
from conformance_tests.broken.peer import TOKEN, BrokenPeer, serving
from conformance_tests.runner.component_suite import Options, run_component
from conformance_tests.runner.fixtures import Fixtures
from conformance_tests.runner.gateway_suite import Surroundings, run_gateway
from conformance_tests.runner.library import library
from conformance_tests.runner.requirements import Party, Requirement, musts
from conformance_tests.runner.results import Outcome, Result, Run, Verdict
from conformance_tests.stage.actors import as_it_came

PEERS_AT_ONCE = 3
"""Most of a run waits, so that three side by side keep one core busy and no clock late."""

SEEN_WITHOUT_RESTART = frozenset({"GWY-020"})
"""Has a case that restarts and one that does not; its broken gateway is seen by the latter."""

GATEWAYS = (
    *gateway_wire.GATEWAYS,
    *gateway_context.GATEWAYS,
    *gateway_calls.GATEWAYS,
    *gateway_api.GATEWAYS,
    *gateway_session.GATEWAYS,
    *gateway_record.GATEWAYS,
)
Broken: TypeAlias = BrokenPeer | BrokenGateway

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
    peer: Broken | None
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
    if Party.GATEWAY in parties:
        rows += await _gateway_rows(only)
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


async def _gateway_rows(only: tuple[str, ...]) -> list[Row]:
    async with running_gateway() as (process, fixtures):
        house = House(process=process, fixtures=fixtures)
        correct = await house.run_against(None, restarting=True)
        not_green = [f"{r.id}: {r.why}" for r in correct.results if r.outcome is not Outcome.PASSED]
        if correct.problems or not_green:
            said = f"The correct gateway is not all green: {not_green or correct.problems}"
            raise AcpFailure(error(Reason.INTERNAL, said))
        peers = {peer.requirement: peer for peer in GATEWAYS}
        cases = cases_by_requirement(Party.GATEWAY)
        free = asyncio.Semaphore(PEERS_AT_ONCE)

        async def judged(one: Requirement, *, restarting: bool) -> Row:
            peer = peers.get(one.id)
            row = Row(requirement=one, party=Party.GATEWAY, cases=cases.get(one.id, ()), peer=peer)
            if peer is None:
                return row
            async with free:
                run = await house.run_against(peer, restarting=restarting)
            return judge(row, peer, run=run)

        wanted = [m for m in musts(Party.GATEWAY) if not only or m.id in only]
        apart = {id_ for id_ in house.restarting if id_ not in SEEN_WITHOUT_RESTART}
        side = [judged(one, restarting=False) for one in wanted if one.id not in apart]
        rows = list(await asyncio.gather(*side))
        rows += [await judged(one, restarting=True) for one in wanted if one.id in apart]
        order = {one.id: number for number, one in enumerate(wanted)}
        return sorted(rows, key=lambda row: order[row.requirement.id])


@dataclass(frozen=True, slots=True, kw_only=True)
class House:
    """The one real gateway of a matrix; rows side by side may not restart it."""

    process: GatewayProcess
    fixtures: Fixtures

    @property
    def restarting(self) -> set[str]:
        return {case.requirement.id for case in library(Party.GATEWAY) if "restart" in case.needs}

    async def run_against(self, peer: BrokenGateway | None, *, restarting: bool) -> Run:
        """The gateway suite against one broken gateway; cases that restart it only when alone."""
        cases = library(Party.GATEWAY)
        chosen = tuple(c.id for c in cases if restarting or "restart" not in c.needs)
        layer = None if peer is None or peer.stage is None else peer.stage()
        around = Surroundings(
            restart=self._restart,
            layer=None if layer is None else lambda app: HttpLayer(app, layer),
            ear=as_it_came if peer is None or peer.ear is None else peer.ear(),
        )
        async with before(peer, self.process.http, grpc_url=self.process.grpc) as urls:
            options = Options(targets=urls, kind=Party.GATEWAY, fixtures=self.fixtures, only=chosen)
            return await run_gateway(options, around)

    async def _restart(self) -> None:
        await self.process.restart()
        EPOCH.number += 1


def cases_by_requirement(kind: Party) -> dict[str, tuple[str, ...]]:
    found: dict[str, list[str]] = {}
    for case in library(kind):
        found.setdefault(case.requirement.id, []).append(case.name)
    return {id_: tuple(names) for id_, names in found.items()}


def judge(row: Row, peer: Broken, *, run: Run) -> Row:
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
