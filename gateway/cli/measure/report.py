"""The whole measurement: every probe in turn, the claims, and what saturates first."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import msgspec

from acp_spec.model.errors import AcpFailure
from acp_spec.model.gateway_calls import ComponentPage
from gateway.cli.measure.api_probe import Api, ApiUnmeasured, probe_api
from gateway.cli.measure.capacity import Saturation, saturations
from gateway.cli.measure.claims import (
    SESSIONS_PER_S,
    Claim,
    Verdict,
    api_claims,
    at_least,
    disk_claims,
    machine_claims,
    unmeasured,
    way_claims,
)
from gateway.cli.measure.disk_probe import Disk, probe_disk
from gateway.cli.measure.machine_probe import Machine, probe_machine
from gateway.cli.measure.metrics_page import figures
from gateway.cli.measure.model import resources
from gateway.cli.measure.network_probe import Way, probe_ways
from gateway.cli.remote import Gateway
from gateway.config.settings import Settings

GONE: Final = frozenset({"EXPIRED", "UNREACHABLE"})


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What is measured, and for how long at most."""

    target: str
    token: str
    data_dir: Path
    settings: Settings
    sessions: int
    seconds: float


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """Everything. `first`: what saturates first; None when nothing could be measured."""

    seen_from: str
    target: str
    machine: Machine
    disk: Disk | None
    api: Api | None
    ways: list[Way]
    claims: list[Claim]
    capacity: list[Saturation]
    first: Saturation | None

    @property
    def holds(self) -> bool:
        return not any(claim.verdict is Verdict.FAILS for claim in self.claims)


def measure(asked: Asked, say: Callable[[str], None]) -> Measured:
    """Run all probes; `say` tells which one runs. Every one ends by itself."""
    claims: list[Claim] = []
    say("the machine")
    machine = probe_machine()
    claims += machine_claims(machine, asked.settings)
    say("the disk")
    disk = _disk(asked, claims)
    say("the gateway and its components")
    ways, api = _gateway(asked, claims, say=say)
    used = list(resources(api, disk, ways=ways, settings=asked.settings))
    capacity = saturations(used, promised_per_s=SESSIONS_PER_S)
    claims.append(_sessions(capacity, api))
    return Measured(
        seen_from="here, where this command runs; `service_ms` is what the gateway itself saw",
        target=asked.target,
        machine=machine,
        disk=disk,
        api=api,
        ways=ways,
        claims=claims,
        capacity=capacity,
        first=capacity[0] if capacity else None,
    )


def _disk(asked: Asked, claims: list[Claim]) -> Disk | None:
    try:
        disk = probe_disk(_existing(asked.data_dir), seconds=asked.seconds)
    except OSError as problem:
        claims.append(unmeasured("the disk of the data directory", str(problem)))
        return None
    claims += disk_claims(disk)
    return disk


def _existing(folder: Path) -> Path:
    """The folder, or the nearest one above it that exists: looking makes none."""
    whole = folder.absolute()
    return next(one for one in (whole, *whole.parents) if one.is_dir())


def _gateway(
    asked: Asked, claims: list[Claim], *, say: Callable[[str], None]
) -> tuple[list[Way], Api | None]:
    ways: list[Way] = []
    with Gateway(asked.target, asked.token) as gateway:
        try:
            registered = gateway.ask(ComponentPage, "list_components").components
            ways = probe_ways(
                (one for one in registered if one.state not in GONE), figures(gateway.metrics())
            )
            claims += way_claims(ways, asked.settings)
            say("the gateway under load")
            api = probe_api(
                gateway,
                asked.target,
                token=asked.token,
                sessions=asked.sessions,
                seconds=asked.seconds,
            )
        except (AcpFailure, ApiUnmeasured) as problem:
            told = problem.error.message if isinstance(problem, AcpFailure) else str(problem)
            claims.append(unmeasured(f"the gateway at {asked.target}", told))
            return ways, None
    claims += api_claims(api)
    return ways, api


def _sessions(capacity: list[Saturation], api: Api | None) -> Claim:
    """The promised sessions a second, by the model: the doctor runs none."""
    claim = "four-call sessions, by the model"
    if api is None or not capacity:
        return unmeasured(claim, "no gateway was measured, so nothing is known of its cost")
    first = capacity[0]
    return at_least(
        claim,
        SESSIONS_PER_S,
        measured=first.sessions_per_s_max,
        unit="1/s",
        advice=f"more of what saturates first: {first.resource}",
    )


def details(measured: Measured) -> Iterator[tuple[str, str]]:
    """What was measured, line by line: also what no claim stands on."""
    machine, disk, api = measured.machine, measured.disk, measured.api
    yield "CPUs", f"{machine.cpus:g}, load {machine.load_1m:g}"
    yield "memory", f"{machine.memory_available_mb:,} of {machine.memory_total_mb:,} MB available"
    yield "a 1 ms timer here, p99", f"{machine.timer_late_p99_ms:.2f} ms late"
    if disk is not None:
        yield "disk syncs", f"{disk.syncs_per_s:,.0f}/s, p99 {disk.sync_p99_ms:.1f} ms"
        past = "past the page cache" if disk.direct else "through the page cache"
        yield "disk IOPS", f"{disk.writes_per_s:,.0f} synced 4 KiB writes/s, 8 at once, {past}"
        yield "disk, one long write", f"{disk.written_mb_per_s:,.0f} MB/s"
    if api is not None:
        yield "openings", f"{api.opens_per_s:,.0f}/s of {api.opened}, {api.open_cpu_us:.0f} us CPU"
        yield "openings that shared a sync", f"{api.sessions_per_sync:.1f}, {api.sync_ms:.1f} ms"
        yield "state reads", f"{api.reads_per_s:,.0f}/s, p99 {api.read_p99_ms:.1f} ms"
    for way in measured.ways:
        seen = f", the gateway saw {way.service_ms:.1f} ms a call" if way.service_ms else ""
        trip = f"connect {way.connect_p50_ms:.2f} ms, round trip {way.round_trip_p50_ms:.2f} ms"
        yield way.component, (way.problem or (trip if way.url else "attached")) + seen


def loaded_settings(config: Path | None, data_dir: Path | None) -> Settings:
    """What `acp serve` would run with here. Raises SettingsError."""
    from gateway.config.load import load_settings

    flags: dict[str, object] = {"data_dir": data_dir}
    return load_settings(environ=os.environ, file=config, flags=flags).settings
