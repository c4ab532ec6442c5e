"""One life of a gateway inside a simulation: the same `build`, over simulated ground.

The only difference to `acp serve` is what is handed in, and that nobody listens on a socket.
"""

import asyncio
import contextlib
import functools
from pathlib import Path

from gateway.assembly.building import Gateway, build
from gateway.assembly.outside import Outside
from gateway.assembly.serving import close, recover
from gateway.config.settings import (
    GraceSettings,
    LeaseSettings,
    LimitSettings,
    QueueLimits,
    QueueSettings,
    RetrySettings,
    Settings,
)
from gateway.runtime.registry import Registry
from gateway.runtime.rollouts import Rollouts
from gateway.runtime.service import SessionService
from gateway.runtime.workflows import Workflows
from gateway.simulation.house import Ground

VARIANTS = 8
DRAIN_S = 2.0


def make_house(ground: Ground) -> "SimulatedHouse":
    """A life on this ground."""
    outside = Outside(
        clock=ground.clock,
        chance=ground.chance,
        dialer=ground.dialer,
        worker=ground.worker,
        trajectories=ground.trajectories,
        observers=(ground.watcher,),
    )
    settings = settings_of(ground.variant % VARIANTS)
    return SimulatedHouse(build(settings, store=ground.store, outside=outside))


@functools.lru_cache(VARIANTS)
def settings_of(variant: int) -> Settings:
    """Small limits, so that a few sessions reach them: what they are differs by variant."""
    tight = variant % 2 == 0
    return Settings(
        data_dir=Path("nowhere"),
        limits=LimitSettings(
            live_sessions={0: 4, 5: 12}.get(variant, 1_000),
            max_open_sessions=14 if variant == 3 else 1_000,
            target_max_queued=3 if variant == 5 else 64,
            queues=QueueSettings(
                plan=QueueLimits(concurrency=3 if tight else 16, max_queued=64),
                tool=QueueLimits(
                    concurrency=6 if tight else 64, max_queued=4 if variant == 6 else 256
                ),
                llm=QueueLimits(concurrency=2 if tight else 8, max_queued=64),
            ),
        ),
        grace=GraceSettings(
            cancel_grace_ms=(300, 1_000)[variant % 2],
            pin_grace_ms=(200, 800)[variant % 2],
            attach_grace_ms=(0, 400)[variant // 2 % 2],
        ),
        retry=RetrySettings(
            session_budget=8 if variant == 7 else (2, 4, 8, 1)[variant % 4],
            backoff_base_ms=40,
            hedge_share=1.0 if variant == 7 else 0.0,
            hedge_after_ms=20,
        ),
        leases=LeaseSettings(probe_interval_ms=1_000, probe_timeout_ms=300),
    )


class SimulatedHouse:
    """`simulation.house.House` over the real thing."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._outbox: asyncio.Task[None] | None = None
        self._rolling: asyncio.Task[None] | None = None

    @property
    def sessions(self) -> SessionService:
        return self._gateway.sessions

    @property
    def registry(self) -> Registry:
        return self._gateway.registry

    @property
    def workflows(self) -> Workflows:
        workflows = self._gateway.services.workflows
        assert isinstance(workflows, Workflows), "the assembly puts the real ones there"
        return workflows

    @property
    def rollouts(self) -> Rollouts:
        return self._gateway.rolling.rollouts

    async def start(self) -> None:
        gateway = self._gateway
        gateway.contexts.public_url = "http://gateway"
        self._outbox = asyncio.get_running_loop().create_task(gateway.outbox.run())
        self._rolling = asyncio.get_running_loop().create_task(self.rollouts.run())
        gateway.prober.start()
        await recover(gateway)

    async def stop(self) -> None:
        gateway = self._gateway
        gateway.sessions.close()
        gateway.executors.admitting.stopped = True
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(DRAIN_S):
                await gateway.executors.idle()
        assert self._outbox is not None, "what is stopped was started"
        assert self._rolling is not None, "what is stopped was started"
        self._rolling.cancel()
        await close(gateway, [self._outbox])

    def lag(self) -> int:
        return self._gateway.outbox.lag

    def beside(self) -> int:
        twins = self._gateway.twins
        return twins.running + twins.waiting

    def held(self) -> tuple[str, ...]:
        executors = self._gateway.executors
        flying = (f"{executors.inflight} in flight",) if executors.inflight else ()
        return (*flying, *executors.admitting.held)
