"""What a gateway takes from its machine, in one place: time, chance, network, disk, threads.

Everything that is not a pure function of settings and events comes in here. A simulation hands in
its own (`assembly.simulated`); `acp serve` takes the machine's. Only `building` reads it.
"""

from dataclasses import dataclass, field

from gateway.runtime.clock import Chance, Clock, SystemChance, SystemClock
from gateway.runtime.driver import Observer
from gateway.runtime.registered import Dialer
from gateway.runtime.sync_thread import Worker
from gateway.stores.trajectory_log import TrajectoryLog


@dataclass(frozen=True, slots=True, kw_only=True)
class Outside:
    """None: as `acp serve` has it, made from the settings."""

    clock: Clock = field(default_factory=SystemClock)
    chance: Chance = field(default_factory=SystemChance)
    dialer: Dialer | None = None
    worker: Worker | None = None
    trajectories: TrajectoryLog | None = None
    observers: tuple[Observer, ...] = ()
    """Who sees every event right after it was applied, besides metrics and spans."""
