"""Rollouts of a gateway, wired: what they move, and the executor they stand before."""

from dataclasses import dataclass

from gateway.governance.backoff import Backoff
from gateway.runtime.driver import Driver
from gateway.runtime.executors import Executors
from gateway.runtime.registry import Registry
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


@dataclass(frozen=True, slots=True)
class Rolling:
    """The rollouts, and how sessions come to them."""

    rollouts: Rollouts
    traffic: RolloutTraffic

    def stand_before(self, driver: Driver, executors: Executors) -> Twins:
        """Take twins aside before they reach the executors."""
        twins = Twins(driver, executors)
        driver.executor = twins
        self.traffic.attach(driver, twins)
        return twins


def rolling_of(
    parts: RolloutParts, registry: Registry, *, workflows: Workflows, backoff: Backoff
) -> Rolling:
    """The rollouts that the store holds, ready to go on."""
    policies = PolicyVersions(parts.store, parts.durable)
    versions = Versions(ComponentVersions(registry), WorkflowVersions(workflows), policies=policies)
    rollouts = Rollouts(parts, versions)
    traffic = RolloutTraffic(
        rollouts, workflows, policies=policies, metrics=parts.metrics, backoff=backoff
    )
    return Rolling(rollouts, traffic)
