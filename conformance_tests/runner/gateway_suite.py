"""The run against a gateway: bring the stage, run every case on it, watch both sides, count.

Cases run side by side, each with names of its own; those that say `alone` (a restart) follow.
"""

import asyncio
import shlex
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from conformance_tests.broken.http_layer import App
from conformance_tests.raw.http1 import Unreachable
from conformance_tests.runner.answers import Exchange
from conformance_tests.runner.component_suite import Options, chosen
from conformance_tests.runner.expansion import Planned, plan
from conformance_tests.runner.gateway_peer import Call, GatewayPeer
from conformance_tests.runner.gateway_scenario import GatewayScenario, World, heard_exchanges
from conformance_tests.runner.gateway_subject import GatewaySubject
from conformance_tests.runner.results import Outcome, Result, Run, compare
from conformance_tests.runner.sweeping import sweep
from conformance_tests.runner.watching import watch
from conformance_tests.stage.actors import Ear, as_it_came
from conformance_tests.stage.attach_link import NOTHING, Between
from conformance_tests.stage.http_stage import HttpStage, serve_app

SIDE_BY_SIDE = 16
Restart = Callable[[], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What stands around the gateway in this run: a way to restart it, a layer before the stage."""

    restart: Restart | None = None
    layer: Callable[[App], App] | None = None
    ear: Ear = as_it_came
    attach_url: str = ""
    """Where its attach side is; else the gRPC address that was given."""
    wire_url: str = ""
    """Where raw bytes go; else the gRPC address that was given."""
    between: Between = NOTHING


async def run_gateway(options: Options, around: Surroundings | None = None) -> Run:
    """Run every case. Raises ValueError for a target that is no URL."""
    is_somebodys = around is None  # the matrix has gateways of its own, and throws them away
    around = around or Surroundings(restart=_restart_by(options.fixtures.restart))
    urls = {url.partition("://")[0][:4]: url for url in options.targets}
    if "http" not in urls:
        raise ValueError("a gateway is checked over its HTTP address: --target http://host:port")
    peer = GatewayPeer(urls["http"], urls.get("grpc", ""))
    subject = GatewaySubject(
        fixtures=options.fixtures,
        has_grpc="grpc" in urls,
        can_restart=around.restart is not None,
    )
    planned = plan(chosen(options), subject, bindings=["http"])
    stage = HttpStage()
    try:
        await _reach(peer)
        async with serve_app(around.layer(stage) if around.layer else stage) as stage_url:
            world = World(
                peer=peer,
                stage=stage,
                stage_url=stage_url,
                fixtures=options.fixtures,
                restart=around.restart,
                ear=around.ear,
                attach_url=around.attach_url or urls.get("grpc", ""),
                wire_url=around.wire_url or urls.get("grpc", ""),
                between=around.between,
            )
            results, log = await _scenarios(planned, world, subject=subject, seed=options.seed)
            if is_somebodys:
                await sweep(peer, world.keys, token=options.fixtures.tokens.admin)
    except Unreachable as problem:
        results = [e.result(Outcome.NOT_TESTED, reason=str(problem)) for e in planned]
        return _run(options, planned, results=results, problems=(str(problem),))
    finally:
        await peer.close()
    results += [
        watch(entry, log, subject=subject.as_component())
        for entry in planned
        if entry.settled is None and entry.case.watch is not None
    ]
    results += [e.result(e.settled, reason=e.reason) for e in planned if e.settled is not None]
    return _run(options, planned, results=results)


def _run(
    options: Options,
    planned: Sequence[Planned],
    *,
    results: list[Result],
    problems: tuple[str, ...] = (),
) -> Run:
    order = {entry.id: number for number, entry in enumerate(planned)}
    results.sort(key=lambda result: order.get(result.id, len(order)))
    return Run(
        target=" ".join(options.targets),
        kind=options.kind.value,
        seed=options.seed,
        results=tuple(results),
        problems=(*problems, *compare([entry.id for entry in planned], results)),
    )


async def _reach(peer: GatewayPeer) -> None:
    answer = await peer.call(Call(do="live"))
    if not answer.ok:
        raise Unreachable(f"{peer.url}/healthz answered {answer.said}")


def _restart_by(command: str) -> Restart | None:
    """The owner's command; it returns once the gateway is ready again."""
    if not command:
        return None

    async def restart() -> None:
        process = await asyncio.create_subprocess_exec(*shlex.split(command))
        if await process.wait():
            raise Unreachable(f"the restart command {command!r} failed")

    return restart


async def _scenarios(
    planned: Sequence[Planned], world: World, *, subject: GatewaySubject, seed: int
) -> tuple[list[Result], list[Exchange]]:
    log: list[Exchange] = []
    free = asyncio.Semaphore(SIDE_BY_SIDE)

    async def one(entry: Planned) -> Result:
        scenario = GatewayScenario(entry, world, subject=subject, seed=seed)
        async with free:
            try:
                result = await scenario.run()
            finally:
                await scenario.close()
        log.extend(scenario.log)
        log.extend(heard_exchanges(scenario))
        return result

    running = [e for e in planned if e.settled is None and e.case.watch is None]
    results = list(await asyncio.gather(*(one(e) for e in running if not e.case.alone)))
    results += [await one(entry) for entry in running if entry.case.alone]
    return results, log
