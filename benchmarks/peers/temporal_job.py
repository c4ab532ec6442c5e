"""The job on the Temporal dev server: one workflow, four local activities in one workflow task.

Local activities are its fastest way here (an ordinary one is a round trip of some 50 ms each); the
worker runs beside the client, without the sandbox, which only costs.
"""

import asyncio
import os
import uuid
from datetime import timedelta

from job import STEPS, Echo, measured, options
from temporalio import activity, workflow
from temporalio.client import Client
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

QUEUE = "bench"
PATIENCE = timedelta(seconds=60)


@workflow.defn
class Four:
    """Four steps in a row."""

    @workflow.run
    async def run(self, number: int) -> str:
        output = ""
        for step in STEPS:
            output = await workflow.execute_local_activity(
                "step", step, start_to_close_timeout=PATIENCE, result_type=str
            )
        return output


async def run() -> None:
    told = options()
    echo = Echo(told.echo)
    client = await _connected(told.engine)
    run_id = uuid.uuid4().hex

    @activity.defn(name="step")
    async def step(name: str) -> str:
        return await echo.post()

    async def job(number: int) -> str:
        return await client.execute_workflow(
            Four.run, number, id=f"{run_id}-{number}", task_queue=QUEUE
        )

    async with Worker(
        client,
        task_queue=QUEUE,
        workflows=[Four],
        activities=[step],
        workflow_runner=UnsandboxedWorkflowRunner(),
        max_concurrent_workflow_tasks=100,
        max_concurrent_local_activities=400,
    ):
        await measured(job, told)
        # temporalio 1.35 may crash when the interpreter ends, after all work is done.
        os._exit(0)


async def _connected(place: str) -> Client:
    for _ in range(100):
        try:
            return await Client.connect(place)
        except RuntimeError:
            await asyncio.sleep(0.2)
    raise SystemExit(f"no Temporal server at {place}")


if __name__ == "__main__":
    asyncio.run(run())
