"""What an attempt may spend: nothing while its target fails, lest levels repeat for each other."""

import asyncio

from gateway.engine.tests.stage import ONE_ACTION, failed, gave
from gateway.runtime.tests.house import House
from gateway.runtime.tests.virtual_time import run

READING = ONE_ACTION % "read"


def test_a_healthy_target_is_lent_a_retry() -> None:
    async def story() -> None:
        house = House()
        await house.ended(await house.open(READING))
        assert house.targets.connection.sent[-1].context.retry_budget == 1

    run(story())


def test_a_target_that_fails_is_lent_nothing_until_it_answers_again() -> None:
    """45 attempts for 15 requests: the levels behind went on repeating during an outage."""

    async def story() -> None:
        house = House()
        connection = house.targets.connection
        connection.lines["read"] = failed()
        for _ in range(30):
            await house.ended(await house.open(READING))
        assert connection.sent[0].context.retry_budget == 1
        assert connection.sent[-1].context.retry_budget == 0
        connection.lines["read"] = gave(1)
        await asyncio.sleep(120)  # the breaker is open, too
        for _ in range(200):
            await house.ended(await house.open(READING))
        assert connection.sent[-1].context.retry_budget == 1

    run(story())
