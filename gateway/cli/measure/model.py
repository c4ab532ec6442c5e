"""From what was measured to the resources that a four-call session uses, one row each."""

from collections.abc import Iterable, Iterator
from typing import Final

from gateway.cli.measure.api_probe import CONNECTIONS, Api
from gateway.cli.measure.capacity import Resource
from gateway.cli.measure.disk_probe import Disk
from gateway.cli.measure.network_probe import Way
from gateway.config.settings import Settings

SESSION_PER_OPEN: Final = 1014 / 141
"""CPU of a four-call session over that of an opening: `make bench` on a quiet machine, both by
the gateway's own clock (docs/decisions/speed.md). The doctor calls no component, so it scales.
"""
SYNCS_PER_SESSION: Final = 3.0
"""Opening, one write before it is sent, end."""
TOOL_CALLS_PER_SESSION: Final = 3.0
"""Execute, observe and reflect queue as tools; a plan has a queue of its own."""
SESSION_BYTES: Final = 15_000 * 3
"""A session of four calls keeps 15 KB, written three times (journal, compaction, export)."""


def resources(
    api: Api | None, disk: Disk | None, *, ways: Iterable[Way], settings: Settings
) -> Iterator[Resource]:
    """Only what was measured; a resource nobody knows a number of is left out, not guessed."""
    if api is not None and api.open_cpu_us:
        yield Resource(
            name="gateway CPU (its one loop)",
            unit="CPU s",
            capacity_per_s=1.0,
            demand=api.open_cpu_us * SESSION_PER_OPEN / 1e6,
            how=f"one core; {api.open_cpu_us:.0f} us an opening, measured, times"
            f" {SESSION_PER_OPEN:.1f}",
        )
    if disk is not None:
        sync_ms = api.sync_ms if api is not None and api.sync_ms else disk.sync_p50_ms
        yield Resource(
            name="disk syncs",
            unit="promises",
            capacity_per_s=CONNECTIONS * 1000 / sync_ms,
            demand=SYNCS_PER_SESSION,
            how=f"a group commit takes {sync_ms:.2f} ms and serves all {CONNECTIONS} in flight",
        )
        yield Resource(
            name="disk writes",
            unit="MB",
            capacity_per_s=disk.written_mb_per_s,
            demand=SESSION_BYTES / 1e6,
            how="one long write, measured; 15 KB a session, written three times",
        )
    seen = list(ways)
    yield from _components(seen, settings)
    yield from _queue(seen, settings)


def _queue(ways: Iterable[Way], settings: Settings) -> Iterator[Resource]:
    """The gateway's own bound on calls of tools at once; the slowest component fills it most."""
    slowest_ms = max((way.service_ms or way.round_trip_p50_ms for way in ways), default=0.0)
    if slowest_ms:
        at_once = settings.limits.queues.tool.concurrency
        yield Resource(
            name="tool queue",
            unit="calls",
            capacity_per_s=at_once * 1000 / slowest_ms,
            demand=TOOL_CALLS_PER_SESSION,
            how=f"limits.queues.tool.concurrency {at_once}; the slowest takes {slowest_ms:.2f} ms",
        )


def _components(ways: Iterable[Way], settings: Settings) -> Iterator[Resource]:
    """Replicas add up; each component is taken to be called once a session."""
    slots: dict[str, float] = {}
    rates: dict[str, float] = {}
    service_ms: dict[str, float] = {}
    for way in ways:
        took_ms = way.service_ms or way.round_trip_p50_ms
        if way.problem or not took_ms:
            continue
        concurrency = way.max_concurrency or settings.limits.target_concurrency
        rate = concurrency * 1000 / took_ms
        rate = min(rate, way.max_rate_per_s) if way.max_rate_per_s else rate
        slots[way.component] = slots.get(way.component, 0.0) + concurrency
        rates[way.component] = rates.get(way.component, 0.0) + rate
        service_ms[way.component] = max(took_ms, service_ms.get(way.component, 0.0))
    for name, rate in rates.items():
        yield Resource(
            name=f"component {name}",
            unit="calls",
            capacity_per_s=rate,
            demand=1.0,
            how=f"{slots[name]:.0f} at once, {service_ms[name]:.2f} ms each; one call a session",
        )
