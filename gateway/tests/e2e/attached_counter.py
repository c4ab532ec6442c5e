"""A component process that attaches: `python -m gateway.tests.e2e.attached_counter GATEWAY FOLDER`.

`counted.once` (NONE) writes a row to FOLDER/effects before it works, then waits for FOLDER/gate.
"""

import asyncio
import os
import sys
from pathlib import Path

from acp_spec import Call, Component, Effect, FileOutcomes, Idempotency
from acp_spec.model.card import Limits


def make(folder: Path) -> Component:
    component = Component(
        "counted",
        "1.0.0",
        limits=Limits(max_concurrency=64),
        outcomes=FileOutcomes(folder / "outcomes.db"),
    )
    effects = os.open(folder / "effects", os.O_APPEND | os.O_CREAT | os.O_WRONLY)

    async def count(call: Call) -> dict[str, str]:
        os.write(effects, f"{call.context.call_id} {call.context.attempt}\n".encode())
        os.fsync(effects)
        while not (folder / "gate").exists():  # noqa: ASYNC110  # another process opens it
            await asyncio.sleep(0.005)
        return {"call_id": call.context.call_id}

    @component.action("counted.once", effect=Effect.WRITE, idempotency=Idempotency.NONE)
    async def once(arguments: object, call: Call) -> dict[str, str]:
        return await count(call)

    @component.action("counted.keyed", effect=Effect.WRITE, idempotency=Idempotency.BY_KEY)
    async def keyed(arguments: object, call: Call) -> dict[str, str]:
        return await count(call)

    return component


if __name__ == "__main__":
    make(Path(sys.argv[2])).attach(sys.argv[1], instance_id="the one")
