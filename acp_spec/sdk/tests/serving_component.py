"""The component that the tests of `serving` start as a process of its own."""

import asyncio
import threading

from acp_spec.sdk.call import Call
from acp_spec.sdk.component import Component

component = Component("process", "1.0.0")


@component.action("wait")
async def wait(arguments: object, call: Call) -> object:
    call.progress(message="started")
    await call.cancelled
    return "stopped"


@component.action("finish")
async def finish(arguments: dict[str, float], call: Call) -> object:
    call.progress(message="started")
    await asyncio.sleep(float(arguments["seconds"]))
    return "finished"


@component.action("stuck")
def stuck(arguments: object, call: Call) -> object:
    call.progress(message="started")
    threading.Event().wait(600)  # a sync handler that hears nothing
    return None


if __name__ == "__main__":
    component.run()
