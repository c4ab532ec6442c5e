"""The way to each registered component, from where the doctor runs: connect, then ask its health.

The gateway may stand elsewhere. What it sees itself (sent to answered, network and work together)
is in its metrics, and is told beside this. A component that attached has no address to try.
"""

import asyncio
import time
from collections.abc import Iterable
from typing import Final

import msgspec

from acp_spec.model.enums import Transport
from acp_spec.model.session import Component
from gateway.cli.measure.disk_probe import percentile
from gateway.cli.measure.metrics_page import Figures
from gateway.cli.measure.raw_load import Place, connect, place_of, read_answer

CONNECTS: Final = 5
ASKS: Final = 20
COMPONENT_S: Final = 3.0
"""For all that is asked of one component; they are asked side by side."""


class Way(msgspec.Struct, frozen=True, kw_only=True):
    """To one instance. 0 = not measured; `problem` says why where something should have been."""

    component: str
    component_id: str
    url: str
    connect_p50_ms: float = 0.0
    round_trip_p50_ms: float = 0.0
    round_trip_p99_ms: float = 0.0
    service_ms: float = 0.0
    """Mean of what the gateway itself saw of this component's calls."""
    max_concurrency: int = 0
    max_rate_per_s: float = 0.0
    problem: str = ""


def probe_ways(components: Iterable[Component], seen: Figures) -> list[Way]:
    """Every registered instance that is not gone, all at once."""

    async def story() -> list[Way]:
        return await asyncio.gather(*(_way(one, seen) for one in components))

    return asyncio.run(story())


async def _way(component: Component, seen: Figures) -> Way:
    way = _unmeasured(component, seen)
    if not component.url:
        return way
    place = place_of(component.url)
    try:
        async with asyncio.timeout(COMPONENT_S):
            connects_ms = [await _connect_ms(place) for _ in range(CONNECTS)]
            trips_ms = (
                await _health_ms(place) if component.transport is Transport.HTTP else connects_ms
            )
    except (OSError, TimeoutError, ValueError, asyncio.IncompleteReadError) as problem:
        why = str(problem) or f"no answer in {COMPONENT_S:g} s"
        return msgspec.structs.replace(way, problem=why)
    return msgspec.structs.replace(
        way,
        connect_p50_ms=percentile(connects_ms, 0.5),
        round_trip_p50_ms=percentile(trips_ms, 0.5),
        round_trip_p99_ms=percentile(trips_ms, 0.99),
    )


def _unmeasured(component: Component, seen: Figures) -> Way:
    card = component.card
    service = seen.services.get(card.name)
    mean_ms = 1000 * service.seconds / service.calls if service and service.calls else 0.0
    return Way(
        component=f"{card.name}@{card.version}",
        component_id=component.component_id,
        url=component.url,
        service_ms=mean_ms,
        max_concurrency=card.limits.max_concurrency,
        max_rate_per_s=card.limits.max_rate_per_s,
    )


async def _connect_ms(place: Place) -> float:
    begin = time.perf_counter()
    _, writer = await connect(place)
    took_ms = (time.perf_counter() - begin) * 1000
    writer.close()
    return took_ms


async def _health_ms(place: Place) -> list[float]:
    """Round trips on one connection; any status is an answer, also one that asks for a token."""
    times_ms: list[float] = []
    reader, writer = await connect(place)
    request = place.request("GET", "/acp/v1/health")
    try:
        for _ in range(ASKS):
            begin = time.perf_counter()
            writer.write(request)
            await read_answer(reader)
            times_ms.append((time.perf_counter() - begin) * 1000)
    finally:
        writer.close()
    return times_ms
