"""A running gateway under load: openings, reads of state, and what an opening costs it.

Sessions are opened by hand (MANUAL) in a workflow of the doctor's own, so that no component is
called; each is cancelled and deleted again. Should the doctor die, their own deadline ends them.
"""

import asyncio
import itertools
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from acp_spec.model.errors import AcpFailure
from gateway.cli.measure.metrics_page import Figures, figures
from gateway.cli.measure.raw_load import Answers, Bounds, Place, closed_loop, place_of
from gateway.cli.remote import Gateway

WORKFLOW: Final = "acp-doctor"
VERSION: Final = "1.0.0"
SOURCE: Final = f"""\
workflow: {WORKFLOW}
version: {VERSION}
steps:
  - name: nothing
    role: execute
    component: acp-doctor
    action: acp.doctor.nothing
output: nothing.output
"""
CONNECTIONS: Final = 64
READERS: Final = 4
CLEAN_UP_S: Final = 30.0
LIVES_MS: Final = 120_000
"""Longer than the whole probe; after that a forgotten session ends by itself."""


class Api(msgspec.Struct, frozen=True, kw_only=True):
    """What the gateway did. Demands are its own CPU and its own syncs, as its metrics count them.

    `sessions_per_sync`: openings that shared one group commit.
    """

    opens_per_s: float
    open_p50_ms: float
    open_p99_ms: float
    reads_per_s: float
    read_p95_ms: float
    read_p99_ms: float
    open_cpu_us: float
    cpu_busy: float
    sync_ms: float
    sessions_per_sync: float
    loop_lag_rest_ms: float
    opened: int
    left: int


class ApiUnmeasured(Exception):
    """The gateway cannot be measured; the message says why."""


def probe_api(gateway: Gateway, url: str, *, token: str, sessions: int, seconds: float) -> Api:
    """Open at most so many sessions for at most so long, read them, remove them."""
    try:
        gateway.tell(msgspec.Struct, "put_workflow", WORKFLOW, VERSION, body=SOURCE)
        rest = figures(gateway.metrics())
    except AcpFailure as failure:
        raise ApiUnmeasured(failure.error.message) from None
    place = place_of(url, token=token)
    opened, ids = _open(place, sessions=sessions, seconds=seconds)
    try:
        after_opening = figures(gateway.metrics())
        if not opened.only(200, 201):
            raise ApiUnmeasured(f"openings were answered {_told(opened)}")
        reads = asyncio.run(_read(place, ids, seconds=seconds))
        if not reads.only(200):
            raise ApiUnmeasured(f"reads were answered {_told(reads)}")
    finally:
        left = asyncio.run(_remove(place, ids))
    return _api(opened, reads, before=rest, after=after_opening, left=left)


def _open(place: Place, *, sessions: int, seconds: float) -> tuple[Answers, list[str]]:
    body = msgspec.json.encode(
        {
            "workflow": f"{WORKFLOW}@{VERSION}",
            "mode": "MANUAL",
            "input": 1,
            "deadline_ms": LIVES_MS,
        }
    )
    request = place.request("POST", "/v1/sessions", body=body)
    bounds = Bounds(connections=CONNECTIONS, requests=sessions, seconds=seconds, keep_bodies=True)
    answers = asyncio.run(closed_loop(place, lambda _: request, bounds=bounds))
    return answers, list(_ids(answers.bodies))


def _ids(bodies: Sequence[bytes]) -> "itertools.chain[str]":
    class Named(msgspec.Struct):
        session_id: str = ""

    named = (msgspec.json.decode(body, type=Named).session_id for body in bodies)
    return itertools.chain(one for one in named if one)


async def _read(place: Place, ids: Sequence[str], *, seconds: float) -> Answers:
    requests = [place.request("GET", f"/v1/sessions/{one}") for one in ids]
    bounds = Bounds(connections=READERS, requests=len(ids) * 4, seconds=seconds)
    return await closed_loop(place, lambda n: requests[n % len(requests)], bounds=bounds)


async def _remove(place: Place, ids: Sequence[str]) -> int:
    """Cancel, then delete; how many could not be removed (their deadline ends them)."""

    def each(method: str, tail: str) -> Callable[[int], bytes]:
        return lambda n: place.request(method, f"/v1/sessions/{ids[n]}{tail}")

    bounds = Bounds(connections=READERS * 4, requests=len(ids), seconds=CLEAN_UP_S)
    await closed_loop(place, each("POST", "/cancel"), bounds=bounds)
    removed = await closed_loop(place, each("DELETE", ""), bounds=bounds)
    return len(ids) - removed.statuses.get(204, 0)


def _api(opened: Answers, reads: Answers, *, before: Figures, after: Figures, left: int) -> Api:
    used = after.since(before)
    syncs = max(1.0, used.flushes)
    return Api(
        opens_per_s=opened.per_s,
        open_p50_ms=opened.share_ms(0.5),
        open_p99_ms=opened.share_ms(0.99),
        reads_per_s=reads.per_s,
        read_p95_ms=reads.share_ms(0.95),
        read_p99_ms=reads.share_ms(0.99),
        open_cpu_us=used.cpu_s * 1e6 / opened.count,
        cpu_busy=used.cpu_s / opened.seconds,
        sync_ms=used.flush_s * 1000 / syncs,
        sessions_per_sync=opened.count / syncs,
        loop_lag_rest_ms=before.loop_lag_s * 1000,
        opened=opened.count,
        left=left,
    )


def _told(answers: Answers) -> str:
    statuses = ", ".join(f"{count} x {status}" for status, count in answers.statuses.items())
    broken = f"{answers.broken} connections broke" if answers.broken else ""
    return " and ".join(part for part in (statuses, broken) if part) or "not at all"
