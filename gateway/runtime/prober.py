"""Asks components that send no heartbeat how they are, and lets leases end.

Each instance is asked once per interval, at a moment hashed from its id, so that a thousand of them
are not asked at once; few questions run at a time. A probe reads health, and now and then the card:
a program that was replaced in place by another version gets no calls. Who is in doubt is asked at
the next tick. It never calls.
"""

import asyncio
import contextlib
from typing import Final

import msgspec

from acp_spec.model.card import Health
from acp_spec.model.enums import HealthStatus, Transport
from acp_spec.model.errors import AcpFailure, Code
from acp_spec.model.ids import unit_interval
from gateway.runtime.clock import Clock
from gateway.runtime.connection import Connection
from gateway.runtime.lasting import Failed, broken_off, lasting, uncounted
from gateway.runtime.registry import Registry
from gateway.telemetry.logs import get_log

log = get_log("gateway.prober")

# A heartbeat may come late or be lost once before the gateway asks by itself.
SILENT_INTERVALS: Final = 2.0
# A component without a health route answers, and that is what was asked.
_ALIVE_CODES: Final = frozenset({Code.UNIMPLEMENTED, Code.NOT_FOUND})
_ALIVE: Final = Health(status=HealthStatus.SERVING)
DOUBTED_MAX: Final = 1_000
"""More are not in doubt at once; whoever is left out is told of again by its next answer."""


class ProberLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Times of the prober, and how many questions run at once."""

    interval_ms: int = 5_000
    timeout_ms: int = 1_000
    card_every_ms: int = 10_000  # how long a version that replaced another in place goes unseen
    doubted_every_ms: int = 1_000  # how often an instance whose answers cast doubt is looked at
    tick_ms: int = 250  # how exactly moments and leases are kept
    concurrency: int = 16  # each question is a socket and a task


class Prober:
    """`start` it on the loop, `close` it before the registry."""

    def __init__(
        self,
        registry: Registry,
        clock: Clock,
        *,
        limits: ProberLimits = ProberLimits(),
        failed: Failed = uncounted,
    ) -> None:
        self._failed = failed
        self._registry = registry
        self._clock = clock
        self._limits = limits
        self._next: dict[str, float] = {}
        self._cards: dict[str, float] = {}
        self._asking: dict[str, asyncio.Task[None]] = {}
        self._doubted: set[str] = set()
        self._settled: dict[str, float] = {}
        self._loop_task: asyncio.Task[None] | None = None

    def start(self) -> None:
        every_s = self._limits.tick_ms / 1000
        looks = lasting(self.tick, every_s=every_s, loop="prober", failed=self._failed)
        self._loop_task = asyncio.get_running_loop().create_task(looks)

    async def close(self) -> None:
        await broken_off(*self._asking.values(), *([self._loop_task] if self._loop_task else []))

    def doubt(self, component_id: str) -> None:
        """Look at its card at the next tick: its answers state that it is another version."""
        if len(self._doubted) < DOUBTED_MAX:
            self._doubted.add(component_id)

    def tick(self) -> None:
        """Begin the questions that are due; end the leases that are over."""
        self._registry.sweep()
        now = self._clock.monotonic_ms()
        silent = self._registry.silent(self._limits.interval_ms * SILENT_INTERVALS)
        self._next = {key: self._next.get(key, self._first(key, now)) for key, _ in silent}
        self._cards = {key: at for key, at in self._cards.items() if key in self._next}
        for component_id, connection in silent:
            room = len(self._asking) < self._limits.concurrency
            if now >= self._next[component_id] and component_id not in self._asking and room:
                self._next[component_id] = now + self._limits.interval_ms
                self._ask(component_id, connection)
        self._ask_doubted(now)

    def _ask_doubted(self, now: float) -> None:
        """Also of those that send heartbeats. One that was looked at a moment ago is left alone."""
        self._settled = {key: at for key, at in self._settled.items() if now < at}
        for component_id in sorted(self._doubted):
            if component_id in self._asking or len(self._asking) >= self._limits.concurrency:
                continue
            self._doubted.discard(component_id)
            instance = self._registry.instance(component_id)
            if instance is None or component_id in self._settled:
                continue
            if self._registry.get(component_id).transport is Transport.ATTACH:
                continue  # it shows its card whenever it dials
            self._settled[component_id] = now + self._limits.doubted_every_ms
            self._cards.pop(component_id, None)
            self._ask(component_id, instance.connection)

    def _first(self, component_id: str, now: float) -> float:
        """The first question's moment: spread over one interval, the same after each start."""
        return now + self._limits.interval_ms * unit_interval("probe", component_id)

    def _ask(self, component_id: str, connection: Connection) -> None:
        task = asyncio.get_running_loop().create_task(self._probe(component_id, connection))
        self._asking[component_id] = task
        task.add_done_callback(lambda _: self._asking.pop(component_id, None))

    async def _probe(self, component_id: str, connection: Connection) -> None:
        try:
            health: Health | None = await connection.health(self._limits.timeout_ms)
        except AcpFailure as failure:
            health = _ALIVE if failure.error.code in _ALIVE_CODES else None
        if health is None:
            self._cards.pop(component_id, None)  # whoever comes back may be another version
        else:
            await self._look(component_id, connection)
        self._registry.probed(component_id, health)

    async def _look(self, component_id: str, connection: Connection) -> None:
        """Read the card again, now and then: a program that was replaced in place says nothing."""
        now = self._clock.monotonic_ms()
        if now < self._cards.get(component_id, now):
            return
        self._cards[component_id] = now + self._limits.card_every_ms
        with contextlib.suppress(AcpFailure):  # that it cannot be read says nothing of its version
            card = await connection.describe(self._limits.timeout_ms)
            if self._registry.shown(component_id, card):
                state = self._registry.get(component_id).state
                log.warning(
                    "version_replaced", component_id=component_id, found=card.version, state=state
                )
