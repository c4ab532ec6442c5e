"""What pages of the dashboard wait for: the overview and a page of sessions, until they are JSON.

Server time over TCP to a records child of its own, from the question to the JSON, a day's window
over all sessions: 2 % delivered again, as many at a newer version. HTTP itself (0.2 ms) is not in.
"""

import asyncio
import statistics
import time
from collections.abc import Awaitable, Callable

import msgspec

from gateway.runtime.clock import ManualClock
from gateway.runtime.dashboard.dashboard import Dashboard, DashboardParts
from gateway.runtime.dashboard.open_sessions import OpenSessions
from gateway.runtime.dashboard.variance import Computed, VarianceAsked
from gateway.runtime.principal import LOCAL
from gateway.runtime.records import Records, RunningChild
from gateway.stores.memory import MemoryStore
from gateway.stores.records.endpoint import Endpoint
from gateway.stores.records.reach import Limits
from gateway.stores.records.store import client_of
from gateway.telemetry.masking import DEFAULT

ASKED = 11
DAY_MS = 86_400_000
BEGAN_MS = 1_793_491_200_000
MADE = """
INSERT INTO sessions (session_id, opened_at, ended_at, duration_ms, tenant, workflow, status,
    succeeded, fell_back, error_reason, attempts, calls, call_actions, call_components,
    call_versions, call_roles, call_reused, call_waits_ms, call_errors, call_steps, call_ms,
    took_part, blamed, reward_names, reward_values, sequence, row_hash)
SELECT 'S' || leftPad(toString(number), 25, '0'),
    toDateTime64('2026-11-01 00:00:00', 3, 'UTC') + number * 80000 / {count} AS opened,
    opened + toInt64(cityHash64(number, 1) % 5000) / 1000, cityHash64(number, 1) % 5000, 'default',
    'flow.' || toString(number % 20) || '@1.0.' || toString(number % 3),
    if(number % 9 > 0, 'SUCCEEDED', 'FAILED'), number % 9 > 0, number % 18 = 0,
    if(number % 9 = 0, 'REASON_' || toString(number % 4), ''), 4, 4,
    arrayMap(n -> 'action.' || toString(cityHash64(number, n) % 12), range(4)),
    arrayMap(n -> 'component.' || toString(cityHash64(number, n) % 30), range(4)) AS served,
    ['1.0', '1.1', '1.0', '1.0'], ['PLAN', 'EXECUTE', 'EXECUTE', 'REFLECT'],
    [false, false, false, false],
    arrayMap(n -> toInt64(cityHash64(n, number, 3) % 90), range(4)),
    arrayMap(n -> if(cityHash64(number, n, 5) % 20 = 0, 'TIMEOUT', ''), range(4)),
    ['plan', 'act', 'act', 'reflect'],
    arrayMap(n -> toInt64(cityHash64(n, number) % 900), range(4)),
    arrayDistinct(served), if(number % 18 = 0, [served[1]], []), ['helpful'],
    [toFloat64(number % 5)], {sequence}, number
FROM numbers({count}) WHERE {which}
"""


class _There:
    """A child that runs already."""

    pid = 0

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._over = asyncio.Event()

    async def ready(self) -> Endpoint:
        return self._endpoint

    async def wait(self) -> int:
        await self._over.wait()
        return 0

    def stop(self) -> None:
        self._over.set()

    def kill(self) -> None:
        self._over.set()


def dashboard(endpoint: Endpoint, sessions: int) -> dict[str, float]:
    """Medians in milliseconds, the first answer of each not counted."""
    client = client_of(endpoint)
    for sequence, which in ((1, "1"), (1, "number % 50 = 7"), (2, "number % 50 = 9")):
        client.command(MADE.format(count=sessions, sequence=sequence, which=which))
    client.close()
    return asyncio.run(_asked(endpoint))


async def _asked(endpoint: Endpoint) -> dict[str, float]:
    async def launch() -> RunningChild:
        return _There(endpoint)

    async def compute(asked: VarianceAsked) -> Computed:
        return Computed(reason="not here")

    records = Records(launch, cluster=lambda: None, most=Limits, on_start=lambda: None)
    board = Dashboard(
        DashboardParts(
            records=records,
            sessions=_Nobody(),
            open_now=OpenSessions(MemoryStore(), lambda session_id: None),
            components=tuple,
            targets=tuple,
            compute=compute,
            masker=DEFAULT,
            clock=ManualClock(BEGAN_MS + DAY_MS),
        )
    )
    filters = {"component": "component.3", "error": "TIMEOUT", "after": "S" + "0" * 20 + "90000"}
    try:
        return {
            "overview_ms": await _median(
                lambda: board.overview(LOCAL, window_ms=DAY_MS, workflow="")
            ),
            "sessions_page_ms": await _median(lambda: board.sessions(LOCAL, {}, limit=50)),
            "filtered_page_ms": await _median(lambda: board.sessions(LOCAL, filters, limit=50)),
        }
    finally:
        await board.close()
        await records.close()


async def _median(ask: Callable[[], Awaitable[msgspec.Struct]]) -> float:
    took = []
    for _ in range(ASKED):
        begun = time.perf_counter()
        msgspec.json.encode(await ask())
        took.append((time.perf_counter() - begun) * 1000)
    return statistics.median(took[1:])


class _Nobody:
    async def trajectory(self, session_id: str, principal: object) -> bytes:
        raise AssertionError("no session is asked for")
