"""What this system is said to do, held against what was measured.

A claim that could not be measured is told as such and is no failure: silence is not a no.
"""

import enum
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from gateway.cli.measure.api_probe import Api
from gateway.cli.measure.capacity import number
from gateway.cli.measure.disk_probe import Disk
from gateway.cli.measure.machine_probe import Machine
from gateway.cli.measure.network_probe import Way
from gateway.config.settings import Settings

OPENS_PER_S: Final = 5_000.0
OPEN_P50_MS: Final = 10.0
OPEN_P99_MS: Final = 30.0
SESSIONS_PER_S: Final = 600.0
STATE_P95_MS: Final = 5.0
ARCHIVE_MB_PER_S: Final = 10 * 1024 * 1024 * 1024 / 1e6 / 3600
"""10 GB an hour (R06)."""
WRITTEN_TIMES: Final = 3.0
"""Each archived byte is written to the journal, once more when that is compacted, and exported."""
OPEN_SESSIONS: Final = 5_000
OPEN_SESSIONS_MB: Final = 600
LONE_SESSION_MS: Final = 6.0
LONE_SYNCS: Final = 2
"""Syncs that a session waits for when it is alone: its opening overlaps the first call."""
LOOP_LAG_MS: Final = 5.0
GENERATOR_BUSY: Final = 0.9
"""Under this share of a core used by the gateway, what asked was the limit, not the gateway."""


class Verdict(enum.Enum):
    HOLDS = "holds"
    FAILS = "fails"
    UNMEASURED = "not measured"


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    verdict: Verdict
    claim: str
    wanted: str
    measured: str
    advice: str = ""


def at_least(claim: str, wanted: float, *, measured: float, unit: str, advice: str) -> Claim:
    holds = measured >= wanted
    told = f"{number(measured)} {unit}"
    return _claim(claim, f">= {number(wanted)} {unit}", measured=told, holds=holds, advice=advice)


def at_most(claim: str, wanted: float, *, measured: float, unit: str, advice: str) -> Claim:
    holds = measured <= wanted
    told = f"{number(measured)} {unit}"
    return _claim(claim, f"<= {number(wanted)} {unit}", measured=told, holds=holds, advice=advice)


def _claim(claim: str, wanted: str, *, measured: str, holds: bool, advice: str) -> Claim:
    verdict = Verdict.HOLDS if holds else Verdict.FAILS
    told = "" if holds else advice
    return Claim(verdict=verdict, claim=claim, wanted=wanted, measured=measured, advice=told)


def unmeasured(claim: str, why: str) -> Claim:
    return Claim(verdict=Verdict.UNMEASURED, claim=claim, wanted="", measured=why)


def machine_claims(machine: Machine, settings: Settings) -> Iterator[Claim]:
    yield at_least(
        f"memory for {OPEN_SESSIONS:,} open sessions",
        OPEN_SESSIONS_MB,
        measured=machine.memory_available_mb,
        unit="MB",
        advice="give the machine more memory, or open fewer sessions at once",
    )
    yield at_least(
        "limits.max_open_sessions",
        OPEN_SESSIONS,
        measured=settings.limits.max_open_sessions,
        unit="sessions",
        advice="raise ACP_LIMITS_MAX_OPEN_SESSIONS",
    )
    yield at_least(
        "open files for connections and the journal",
        settings.limits.queues.tool.concurrency + 512,
        measured=machine.open_files_max,
        unit="files",
        advice="raise the limit (ulimit -n, LimitNOFILE=)",
    )


def disk_claims(disk: Disk) -> Iterator[Claim]:
    yield at_most(
        "a sync, so that a lone session takes under 6 ms",
        LONE_SESSION_MS / LONE_SYNCS,
        measured=disk.sync_p50_ms,
        unit="ms",
        advice="put the data directory on a local SSD",
    )
    yield at_least(
        "10 GB/h of archive, each byte written three times",
        ARCHIVE_MB_PER_S * WRITTEN_TIMES,
        measured=disk.written_mb_per_s,
        unit="MB/s",
        advice="put the data directory on a faster disk",
    )


def api_claims(api: Api) -> Iterator[Claim]:
    yield _opens(api)
    yield _opening_time(
        api, "an opening under load, median", wanted_ms=OPEN_P50_MS, measured_ms=api.open_p50_ms
    )
    yield _opening_time(
        api, "an opening under load, p99", wanted_ms=OPEN_P99_MS, measured_ms=api.open_p99_ms
    )
    yield at_most(
        "95% of state reads",
        STATE_P95_MS,
        measured=api.read_p95_ms,
        unit="ms",
        advice="the loop is held by something else: see its lag",
    )
    yield at_most(
        "the loop's lag before the load",
        LOOP_LAG_MS,
        measured=api.loop_lag_rest_ms,
        unit="ms",
        advice="other work shares this core: give the gateway one of its own",
    )


def _opens(api: Api) -> Claim:
    """Where the generator gave out first, the gateway's own cost of an opening decides."""
    advice = "a faster core: openings are one loop's work"
    by_cost = 1e6 / api.open_cpu_us if api.open_cpu_us else 0.0
    if not _generator_gave_out(api):
        return at_least(
            "openings", OPENS_PER_S, measured=api.opens_per_s, unit="1/s", advice=advice
        )
    claim = at_least(
        "openings, by their cost", OPENS_PER_S, measured=by_cost, unit="1/s", advice=advice
    )
    seen = (
        f"{claim.measured}: 1 / {api.open_cpu_us:.0f} us; {api.opens_per_s:,.0f} were asked for"
        f" a second and left {1 - api.cpu_busy:.0%} of its core idle"
    )
    return msgspec.structs.replace(claim, measured=seen)


def _opening_time(api: Api, claim: str, *, wanted_ms: float, measured_ms: float) -> Claim:
    """With N in flight an answer takes N / rate, whoever limits the rate: where that was who asked,
    a long time says nothing of the gateway."""
    found = at_most(
        claim,
        wanted_ms,
        measured=measured_ms,
        unit="ms",
        advice="the disk's sync or the loop's lag: see both below",
    )
    if found.verdict is Verdict.FAILS and _generator_gave_out(api):
        why = f"{found.measured}, but what asked was the limit: ask from another machine"
        return unmeasured(claim, why)
    return found


def _generator_gave_out(api: Api) -> bool:
    return api.opens_per_s < OPENS_PER_S and 0 < api.cpu_busy < GENERATOR_BUSY


def way_claims(ways: Iterable[Way], settings: Settings) -> Iterator[Claim]:
    connect_ms = settings.outbound.connect_timeout_ms
    probe_ms = settings.leases.probe_timeout_ms
    for way in ways:
        if way.problem:
            claim = f"a way to {way.component} at {way.url}"
            advice = "is it running, and reachable from here?"
            yield _claim(claim, "an answer", measured=way.problem, holds=False, advice=advice)
        elif way.url:
            yield at_most(
                f"connecting to {way.component}",
                connect_ms,
                measured=way.connect_p50_ms,
                unit="ms",
                advice="nearer, or a larger outbound.connect_timeout_ms",
            )
            yield at_most(
                f"a round trip to {way.component}, p99",
                probe_ms,
                measured=way.round_trip_p99_ms,
                unit="ms",
                advice="nearer, or a larger leases.probe_timeout_ms",
            )
        else:
            yield unmeasured(f"a way to {way.component}", "it attached: it has no address")
