"""The process around an attached component: loop, signals, one JSON ready line, the exit status.

SIGTERM drains; a second signal stops at once. A gateway that refuses the instance for good ends the
process with status 1 and the reason, so that whoever supervises it sees it.
"""

import asyncio
import json
import logging
import os
import signal
import sys

import uvloop

from acp_spec.sdk.attach import Attachment, Dialling, Refused
from acp_spec.sdk.component import Component
from acp_spec.sdk.own_token import own_token
from acp_spec.sdk.serving import DRAIN_S_DEFAULT

log = logging.getLogger(__name__)


def attach(
    component: Component,
    target: str | None = None,
    *,
    token: str | None = None,
    instance_id: str | None = None,
) -> None:
    """Stay attached until SIGTERM or SIGINT. What is not given comes from the environment:
    ACP_ATTACH (127.0.0.1:8081), ACP_COMPONENT_TOKEN, ACP_INSTANCE, ACP_DRAIN_S.
    """
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    target = target or os.environ.get("ACP_ATTACH", "127.0.0.1:8081")
    token = token or own_token(os.environ)
    named = instance_id or os.environ.get("ACP_INSTANCE")
    dialling = Dialling(target=target, token=token)
    if named:
        dialling = Dialling(target=target, token=token, instance_id=named)
    drain_s = float(os.environ.get("ACP_DRAIN_S", DRAIN_S_DEFAULT))
    try:
        clean = uvloop.run(_until_signalled(component, dialling, drain_s=drain_s))
    except Refused as refused:
        raise SystemExit(f"the gateway at {target} refuses {component.name}: {refused}") from None
    if not clean:
        # A sync handler that ignores `call.cancelled` holds its thread; do not wait for it.
        sys.stdout.flush()
        os._exit(1)


async def _until_signalled(component: Component, dialling: Dialling, *, drain_s: float) -> bool:
    attachment = Attachment(component, dialling)
    signalled = _on_signals()
    running = asyncio.create_task(attachment.run())
    telling = asyncio.create_task(_say_ready(attachment, dialling.target))
    stopping = asyncio.create_task(signalled.wait())
    try:
        await asyncio.wait({running, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if running.done():
            await running
        log.info("leaving: no new calls, %.0f s for those that run", drain_s)
        clean = await attachment.drain(drain_s)
        await running
        return clean
    finally:
        for task in (telling, stopping):
            task.cancel()
        attachment.close()


def _on_signals() -> asyncio.Event:
    signalled = asyncio.Event()

    def heard() -> None:
        if signalled.is_set():
            os._exit(1)
        signalled.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, heard)
    return signalled


async def _say_ready(attachment: Attachment, target: str) -> None:
    await attachment.attached()
    ready = {
        "ready": True,
        "attached": target,
        "component_id": attachment.component_id,
        "pid": os.getpid(),
    }
    sys.stdout.write(json.dumps(ready) + "\n")
    sys.stdout.flush()
