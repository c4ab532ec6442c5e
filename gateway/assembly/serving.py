"""Starting and stopping one gateway: ready once it serves, gone once its promises are kept.

A first SIGTERM or SIGINT drains: no new attempts, calls in flight may end within the grace, event
streams end. A second one stops at once; nothing acknowledged is lost, the journal has it.
"""

import asyncio
import contextlib
import gc
import os
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

import msgspec
import uvloop

from acp_spec.model.errors import AcpFailure
from acp_spec.sdk.cli import Exit
from gateway.assembly.building import Gateway, build
from gateway.assembly.masking import masker_of
from gateway.config.records import RecordsStart
from gateway.config.settings import Settings
from gateway.runtime.embedding import ModelUnusable
from gateway.runtime.loop_lag import LoopLag
from gateway.runtime.restart import open_sessions, resume_all
from gateway.stores.errors import (
    DirectoryUnusable,
    StoreBusy,
    StoreCorrupt,
    StoreError,
    StoreTooNew,
)
from gateway.telemetry.logs import configure_logs, get_log
from gateway.transports.attach_server import AttachHandler
from gateway.transports.grpc_server import GrpcServer
from gateway.transports.http_server import HttpServer

EXIT_OK, EXIT_UNAVAILABLE = 0, 5
EXIT_OF_REFUSED_START: dict[type[StoreError], Exit] = {
    DirectoryUnusable: Exit.USAGE,
    StoreBusy: Exit.REFUSED,
    StoreCorrupt: Exit.REFUSED,
    StoreTooNew: Exit.REFUSED,
}
"""Why the data directory lets no gateway start; what is not here failed: FAILED."""
SECOND_SIGNAL_EXIT = 130
COLLECT_AFTER = 10_000
"""Objects made before the collector looks. States and events are trees (`gc=False`: it skips them),
so there is little to find; looking after every 700 took 7 % of a session, 90 ms at a time."""

log = get_log("gateway")


def serve(settings: Settings) -> int:
    """Serve until told to stop; the process's exit code."""
    configure_logs(settings.log.level.value, sys.stderr, masker=masker_of(settings))
    try:
        gateway = build(settings)
    except StoreError as problem:
        print(f"cannot start: {problem}", file=sys.stderr)  # noqa: T201
        return EXIT_OF_REFUSED_START.get(type(problem), Exit.FAILED)
    except ModelUnusable as problem:
        print(f"cannot start: {problem}", file=sys.stderr)  # noqa: T201
        return Exit.USAGE
    try:
        return uvloop.run(_run(gateway))
    except StoreError as problem:
        print(f"cannot go on: {problem}", file=sys.stderr)  # noqa: T201
        return EXIT_UNAVAILABLE
    finally:
        _close_store(gateway)


def _close_store(gateway: Gateway) -> None:
    """Nothing promised is lost by what fails here: all of it was on disk when it was promised."""
    try:
        gateway.store.close()
    except StoreError as problem:
        log.error("store_not_closed", cause=problem)


async def _run(gateway: Gateway) -> int:
    asyncio.get_running_loop().set_exception_handler(_survive(gateway))
    try:
        http = HttpServer(gateway.services, gateway.gate, settings=gateway.settings)
        grpc = GrpcServer(
            gateway.services,
            gateway.gate,
            settings=gateway.settings,
            extra=(AttachHandler(gateway.hub, gateway.gate),),
        )
        gateway.contexts.public_url = gateway.settings.http.public_url or http.url
        await grpc.start()
    except OSError as problem:
        print(f"cannot listen: {problem}", file=sys.stderr)  # noqa: T201
        await gateway.committer.close()
        return EXIT_UNAVAILABLE
    stop = _on_signals()
    tasks = [
        asyncio.create_task(http.serve(), name="http"),
        asyncio.create_task(gateway.outbox.run(), name="outbox"),
    ]
    rolling = asyncio.create_task(gateway.rolling.rollouts.run(), name="rollouts")
    gateway.prober.start()
    lag = _watch_the_process(gateway)
    gateway.services.drills.start()
    gateway.rewarding.start()
    _start_records(gateway)
    await http.started()
    await recover(gateway)
    gateway.services.archive.start()
    await grpc.set_ready(True)
    if gateway.settings.auth_required and not len(gateway.services.tokens):
        log.warning(
            "no_tokens", hint="nobody can call: acp tokens create --scope admin --data-dir DIR"
        )
    _spare_the_collector()
    _say_ready(http, grpc)
    await _until_stopped(stop, tasks)
    rolling.cancel()
    lag.close()
    await _drain(gateway, http, grpc=grpc)
    await close(gateway, tasks)
    return EXIT_OK if gateway.committer.failed is None else EXIT_UNAVAILABLE


def _start_records(gateway: Gateway) -> None:
    """With the gateway if that was asked for; without the extra, the log says what to install."""
    if gateway.settings.records.start is not RecordsStart.WITH_GATEWAY:
        return
    try:
        gateway.services.records.start()
    except AcpFailure as problem:
        log.error("records_not_started", why=problem.error.message)


def _survive(gateway: Gateway) -> Callable[[asyncio.AbstractEventLoop, dict[str, Any]], None]:
    """What a callback of ours raised is a fault of ours: logged and counted, the loop lives on."""

    def heard(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        cause = context.get("exception")
        gateway.metrics.loop_failed("event loop")
        log.error("loop_survived", cause=cause, what=str(context.get("message", "")))

    return heard


def _watch_the_process(gateway: Gateway) -> LoopLag:
    """What `acp doctor --measure` divides by: CPU time used, and how late the loop is."""
    lag = LoopLag()
    lag.start()
    metrics = gateway.metrics
    metrics.watch("process_cpu_seconds", "CPU time used by this process", read=time.process_time)
    metrics.watch("loop_lag_seconds", "Worst delay of the loop, 5 s", read=lag.worst_s)
    return lag


def _on_signals() -> asyncio.Event:
    """Set by the first signal; the second one ends the process."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()

    def heard() -> None:
        if stop.is_set():
            os._exit(SECOND_SIGNAL_EXIT)
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, heard)
    return stop


async def recover(gateway: Gateway) -> None:
    """Finish deletions, then bring every open session back to work."""
    try:
        await gateway.erasing.finish()
    except OSError as problem:  # a full disk: its row stays, the next start tries again
        log.error("deletion_unfinished", cause=problem)
    for row in gateway.registry.unreadable:
        log.warning("registration_unreadable", row=row)
    for twin in gateway.twins.drop_leftovers(gateway.store):
        gateway.rolling.traffic.leftover(twin)
    waiting = open_sessions(gateway.store)
    unreadable = await resume_all(gateway.driver, waiting, keep=gateway.orphans.keep)
    if waiting:
        log.info("recovered", sessions=len(waiting), unreadable=unreadable)
    gateway.hub.open()
    gateway.unready.discard("recovering sessions")


def _spare_the_collector() -> None:
    """What was made until now stays for good: it need not be looked at again and again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(COLLECT_AFTER, 10, 10)


def _say_ready(http: HttpServer, grpc: GrpcServer) -> None:
    line = {"ready": True, "http": http.url, "grpc": grpc.address, "pid": os.getpid()}
    sys.stdout.write(msgspec.json.encode(line).decode() + "\n")
    sys.stdout.flush()


async def _until_stopped(stop: asyncio.Event, tasks: list[asyncio.Task[None]]) -> None:
    """Wait for a signal, or for a server that ended by itself."""
    told = asyncio.create_task(stop.wait())
    await asyncio.wait([told, tasks[0]], return_when=asyncio.FIRST_COMPLETED)
    told.cancel()


async def _drain(gateway: Gateway, http: HttpServer, *, grpc: GrpcServer) -> None:
    """Say so, begin nothing, let calls in flight end; only then stop listening.

    Until then `/readyz` is a 503 that says why, and call-backs of operations still have somebody.
    """
    gateway.unready.add("shutting down")
    gateway.sessions.close()
    gateway.executors.admitting.stopped = True
    grace_s = gateway.settings.grace.drain_grace_ms / 1000
    await grpc.drain()
    gateway.hub.drain(gateway.settings.grace.drain_grace_ms)
    http.app.streams.close_all()
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(grace_s):
            await gateway.executors.idle()
    http.drain()
    gateway.hub.close()
    await grpc.stop(min(1.0, grace_s))
    http.stop()


async def close(gateway: Gateway, tasks: list[asyncio.Task[None]]) -> None:
    """Stop the parts in the order in which they need each other."""
    gateway.orphans.close()
    gateway.driver.timers.close()
    await gateway.services.evidences.close()
    await gateway.twins.close()
    await gateway.executors.close()
    await gateway.prober.close()
    await gateway.services.drills.close()
    await gateway.rewarding.close()
    await gateway.services.dashboard.close()
    await gateway.services.records.close()
    await gateway.services.archive.close()
    gateway.outbox.stop()
    await asyncio.gather(*tasks, return_exceptions=True)
    await gateway.registry.close()
    await asyncio.sleep(0)  # what closing broke off has been told by now: it is still journaled
    await gateway.committer.close()
    await asyncio.to_thread(gateway.spans.close)
    log.info("stopped")
