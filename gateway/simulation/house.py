"""What a simulation needs of a gateway: the port that the assembly fills with the real one.

Nothing of the gateway is rebuilt here: a `House` is one life of it, wired as `acp serve` wires it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from gateway.runtime.clock import Chance, Clock
from gateway.runtime.driver import Observer
from gateway.runtime.registered import Dialer
from gateway.runtime.registry import Registry
from gateway.runtime.rollouts import Rollouts
from gateway.runtime.service import SessionService
from gateway.runtime.sync_thread import Worker
from gateway.runtime.workflows import Workflows
from gateway.stores.ports import Store
from gateway.stores.trajectory_log import TrajectoryLog


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """What a life stands on, all of it simulated."""

    store: Store
    clock: Clock
    chance: Chance
    dialer: Dialer
    worker: Worker
    trajectories: TrajectoryLog
    watcher: Observer
    variant: int
    """Which of the settings there are this gateway runs with."""


class House(Protocol):
    """One life of a gateway."""

    @property
    def sessions(self) -> SessionService: ...

    @property
    def registry(self) -> Registry: ...

    @property
    def workflows(self) -> Workflows: ...

    @property
    def rollouts(self) -> Rollouts: ...

    async def start(self) -> None:
        """Recover what an earlier life left, then serve."""

    async def stop(self) -> None:
        """As SIGTERM does it: drain, then close."""

    def lag(self) -> int:
        """Trajectories that are not delivered yet."""

    def beside(self) -> int:
        """Twins of sessions that run, or wait for their turn."""

    def held(self) -> tuple[str, ...]:
        """What is still held by attempts: permits, places in queues, waits."""


MakeHouse = Callable[[Ground], House]
