"""Rollouts of a gateway, wired: what they move, and the executor they stand before."""

from dataclasses import dataclass, field

from gateway.assembly.watching import watch_rollouts
from gateway.runtime.driver import Driver
from gateway.runtime.erasing import Erasing
from gateway.runtime.executors import Executors
from gateway.runtime.opening import Openings
from gateway.runtime.registry import Registry
from gateway.runtime.replays import Replays
from gateway.runtime.rollout_traffic import RolloutTraffic
from gateway.runtime.rollout_versions import (
    ComponentVersions,
    PolicyVersions,
    Versions,
    WorkflowVersions,
)
from gateway.runtime.rollouts import RolloutParts, Rollouts
from gateway.runtime.twins import Twins
from gateway.runtime.workflows import Workflows


@dataclass(slots=True)
class Rolling:
    """The rollouts, and how sessions come to them."""

    rollouts: Rollouts
    traffic: RolloutTraffic
    replays: Replays = field(init=False)

    def stand_before(
        self, driver: Driver, executors: Executors, *, openings: Openings, erasing: Erasing
    ) -> Twins:
        """Have a say at openings, and take twins aside before they reach the executors."""
        twins = Twins(driver, executors)
        driver.executor = twins
        openings.traffic = self.traffic
        self.traffic.backoff = openings.backoff
        self.traffic.attach(driver, twins)
        self.replays = Replays(driver, openings, twins, erasing.erase_twin)
        return twins


def rolling_of(parts: RolloutParts, registry: Registry, *, workflows: Workflows) -> Rolling:
    """The rollouts that the store holds, ready to go on."""
    policies = PolicyVersions(parts.store, parts.durable)
    versions = Versions(ComponentVersions(registry), WorkflowVersions(workflows), policies=policies)
    rollouts = Rollouts(parts, versions)
    watch_rollouts(parts.metrics, rollouts)
    traffic = RolloutTraffic(rollouts, workflows, policies=policies, metrics=parts.metrics)
    return Rolling(rollouts, traffic)
