"""Each component in Python, as the process that the launcher starts: it serves, and says who
it is.
"""

import asyncio
from collections.abc import Callable

import pytest

from acp_spec import HttpComponentClient
from acp_spec.model.card import Card, Health
from acp_spec.model.enums import HealthStatus, Role
from reference_components.launcher import Running

ROLES = {
    "echo": set(Role),
    "counter": {Role.EXECUTOR},
    "slow": {Role.EXECUTOR},
    "flaky": {Role.EXECUTOR},
    "scratchpad": {Role.EXECUTOR},
    "hotline-planner": {Role.PLANNER},
    "hotline-memory": {Role.OBSERVER},
    "hotline-reflector": {Role.REFLECTOR},
}


@pytest.mark.parametrize("name", sorted(ROLES))
def test_it_serves_under_its_name_with_its_roles_and_stops_cleanly(
    start: Callable[[str], Running], name: str
) -> None:
    running = start(name)

    async def story() -> None:
        async with HttpComponentClient(running.url) as client:
            card = await client.describe()
            assert isinstance(card, Card)
            assert card.name == name
            assert set(card.roles) == ROLES[name]
            health = await client.health()
            assert isinstance(health, Health)
            assert health.status is HealthStatus.SERVING

    asyncio.run(story())
    assert running.stop() == 0
