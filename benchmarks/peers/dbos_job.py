"""The job on DBOS: a workflow of four asynchronous steps, its state in the given database."""

import asyncio
import os

from dbos import DBOS, DBOSConfig
from job import STEPS, Echo, measured, options

told = options()
echo = Echo(told.echo)


@DBOS.step()
async def step(name: str) -> str:
    return await echo.post()


@DBOS.workflow()
async def four(number: int) -> str:
    output = ""
    for name in STEPS:
        output = await step(name)
    return output


async def run() -> None:
    config: DBOSConfig = {
        "name": "bench",
        "system_database_url": told.engine,
        "sys_db_pool_size": 40,
        "log_level": "ERROR",
        "enable_otlp": False,
    }
    DBOS(config=config)
    DBOS.launch()
    await measured(four, told)
    os._exit(0)  # its threads would be waited for


if __name__ == "__main__":
    asyncio.run(run())
