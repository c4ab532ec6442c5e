"""Where broken peers are run: many beside each other in one process, over one correct house.

A component's house is a fresh SDK component per peer. A gateway's is one real `acp serve` a
batch, for it keeps what every run stores; rows beside each other may not restart it, so the cases
that do are run only where a row needs them, one row after the other.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from conformance_tests.broken.epoch import EPOCH
from conformance_tests.broken.gateway import BrokenGateway, before
from conformance_tests.broken.gateway_process import GatewayProcess, running_gateway
from conformance_tests.broken.http_layer import HttpLayer
from conformance_tests.broken.peer import TOKEN, BrokenPeer, attaching, serving
from conformance_tests.broken.peers import peers_of
from conformance_tests.broken.tcp_layer import before_port
from conformance_tests.broken.verdicts import Caught, judge, not_green
from conformance_tests.runner.component_suite import Options, run_component
from conformance_tests.runner.fixtures import Fixtures
from conformance_tests.runner.gateway_suite import Surroundings, run_gateway
from conformance_tests.runner.library import Case, library
from conformance_tests.runner.requirements import Party
from conformance_tests.runner.results import Outcome, Run
from conformance_tests.stage.actors import as_it_came
from conformance_tests.stage.attach_link import NOTHING

AT_ONCE = 2
"""Most of a run waits, so that two side by side keep one core busy and no clock late."""
ATTACH = "ATT-"
"""How the ids of attach's requirements begin."""
ATTACHED_AT_ONCE = 8
"""Runs over attach wait more: for streams that drop, and for silence."""
ASKED_AGAIN_MAX = 2
"""Cases of a correct peer that a crowd may keep from their time; more are no accident."""
AskCorrect: TypeAlias = Callable[[tuple[str, ...]], Awaitable[Run]]
"""The correct peer's run: of these cases, of all without any."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Requirements whose broken peers are run in one process."""

    party: Party
    ids: tuple[str, ...]
    restarting: bool = False


class NotGreen(Exception):
    """The correct peer fails its own suite: nothing that a matrix says would mean anything."""


def run_batch(batch: Batch) -> list[Caught]:
    """The broken peers of these requirements. Raises NotGreen. For a worker process."""
    if batch.party is Party.GATEWAY:
        return asyncio.run(gateway_batch(batch.ids, restarting=batch.restarting))
    return asyncio.run(component_batch(batch.ids))


async def component_batch(ids: Sequence[str]) -> list[Caught]:
    """Each peer on ports of its own. Raises NotGreen."""
    peers, free = peers_of(Party.COMPONENT), asyncio.Semaphore(AT_ONCE)
    attaching_free = asyncio.Semaphore(ATTACHED_AT_ONCE)
    chosen = [peer for id_ in ids if isinstance(peer := peers[id_], BrokenPeer)]
    if any(peer.attach is None for peer in chosen):
        await _must_be_green(lambda only: run_component_against(None, only=only))
    if any(peer.attach is not None for peer in chosen):
        await _must_be_green(lambda only: run_attached_against(None, only=only))

    async def one(id_: str) -> Caught:
        peer = peers[id_]
        assert isinstance(peer, BrokenPeer)
        if peer.attach is not None:
            async with attaching_free:
                return judge(Party.COMPONENT, peer, run=await run_attached_against(peer))
        async with free:
            return judge(Party.COMPONENT, peer, run=await run_component_against(peer))

    return list(await asyncio.gather(*(one(id_) for id_ in ids)))


async def run_component_against(peer: BrokenPeer | None, *, only: tuple[str, ...] = ()) -> Run:
    """The whole component suite against one peer over both bindings; None = the correct one."""
    async with serving(peer) as urls:
        fixtures = Fixtures(token=TOKEN, exposed=True)
        options = Options(targets=urls, kind=Party.SDK, fixtures=fixtures)
        return await run_component(options.limited(only or _cases_over({"http", "grpc"})))


async def run_attached_against(peer: BrokenPeer | None, *, only: tuple[str, ...] = ()) -> Run:
    """Every case that goes over attach, against one peer that attaches; None = the correct one."""
    options = Options(targets=(), kind=Party.SDK, attach_bind="127.0.0.1:0")
    options = options.limited(only or _cases_over({"attach"}))
    return await run_component(options, dial=lambda url: attaching(peer, url))


def _cases_over(bindings: set[str]) -> tuple[str, ...]:
    return tuple(case.id for case in library(Party.SDK) if bindings & set(case.over))


async def gateway_batch(ids: Sequence[str], *, restarting: bool) -> list[Caught]:
    """All on one gateway; with `restarting` one after the other. Raises NotGreen."""
    async with running_gateway() as (process, fixtures):
        house = House(process=process, fixtures=fixtures)
        await _must_be_green(lambda only: house.run_against(None, restarting=restarting, only=only))
        peers = peers_of(Party.GATEWAY)
        free = asyncio.Semaphore(1 if restarting else AT_ONCE)

        async def one(id_: str) -> Caught:
            peer = peers[id_]
            assert isinstance(peer, BrokenGateway)
            async with free:
                run = await house.run_against(peer, restarting=restarting)
            return judge(Party.GATEWAY, peer, run=run)

        return list(await asyncio.gather(*(one(id_) for id_ in ids)))


def _meets(peer: BrokenGateway | None, case: Case) -> bool:
    """Whether a case passes the layer that this peer is broken by.

    Components that attach reach the real gateway past all layers but `between`, which in turn only
    they meet: there a case would hold a correct gateway against itself once more per row.
    """
    over_attach = case.requirement.id.startswith(ATTACH)
    if peer is None or (peer.requirement.startswith(ATTACH) and peer.between is None):
        return True
    return over_attach is (peer.between is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class House:
    """One real gateway and who may come in."""

    process: GatewayProcess
    fixtures: Fixtures

    async def run_against(
        self, peer: BrokenGateway | None, *, restarting: bool, only: tuple[str, ...] = ()
    ) -> Run:
        """The gateway suite against one broken gateway; None = the gateway as it is."""
        cases = library(Party.GATEWAY)
        chosen = only or tuple(
            case.id
            for case in cases
            if (restarting or "restart" not in case.needs) and _meets(peer, case)
        )
        layer = None if peer is None or peer.stage is None else peer.stage()
        tcp = None if peer is None or peer.tcp is None else peer.tcp()
        async with (
            before(peer, self.process.http, grpc_url=self.process.grpc) as urls,
            before_port(self.process.grpc, tcp) as wire_url,
        ):
            around = Surroundings(
                restart=self._restart,
                layer=None if layer is None else lambda app: HttpLayer(app, layer),
                ear=as_it_came if peer is None or peer.ear is None else peer.ear(),
                attach_url=self.process.grpc,
                wire_url=wire_url,
                between=NOTHING if peer is None or peer.between is None else peer.between(),
            )
            options = Options(targets=urls, kind=Party.GATEWAY, fixtures=self.fixtures, only=chosen)
            return await run_gateway(options, around)

    async def _restart(self) -> None:
        await self.process.restart()
        EPOCH.number += 1


async def _must_be_green(ask: AskCorrect) -> None:
    """A case or two that the crowd kept from their time are asked once more, by themselves."""
    run = await ask(())
    late = {one.case for one in run.results if one.outcome is not Outcome.PASSED}
    if 0 < len(late) <= ASKED_AGAIN_MAX and not run.problems:
        run = await ask(tuple(late))
    problem = not_green(run)
    if problem:
        raise NotGreen(f"the correct {run.kind} is not all green: {problem}")
