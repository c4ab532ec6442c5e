"""The rows of the bench: each sets up what it needs, measures once, and gives samples.

A row starts gateways of its own, so that no row sees what another one left behind.
"""

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from cost_split import cost_split
from figures import Sample
from fill_store import fill
from pinned import Bed, cpu_s, gateway, rss_mb
from traffic import (
    direct_calls,
    four_calls,
    manual_steps,
    open_keyed,
    open_many,
    read_states,
    stored_ids,
)

NO_SYNC = {"ACP_JOURNAL_SYNC": "false"}
# 30 seconds of openings leave more of them open than a gateway takes by default.
MANY_OPEN = {"ACP_LIMITS_MAX_OPEN_SESSIONS": "1000000"}
SETTLE_S = 1.0
SETTLE_S_MAX = 180.0
IDLE_CPU_S = 0.03


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How much a row measures. `seconds` is one measurement, `opens_s` that of the openings."""

    seconds: float = 8.0
    opens_s: float = 30.0
    open_sessions: int = 5_000
    few_stored: int = 1_000
    many_stored: int = 100_000
    environ: dict[str, str] = field(default_factory=dict)


QUICK = Size(seconds=1.0, opens_s=1.0, open_sessions=100, few_stored=20, many_stored=200)


@dataclass(frozen=True, slots=True)
class Stage:
    """What outlives the rounds: the sizes, and a directory for what is dear to make."""

    size: Size
    directory: Path


def openings(stage: Stage) -> Iterator[Sample]:
    with gateway("http", environ={**MANY_OPEN, **stage.size.environ}) as bed:
        used = cpu_s(bed.pid)
        measured = open_keyed(bed, connections=64, seconds=stage.size.opens_s)
        used = cpu_s(bed.pid) - used
        name = "open, 64 connections"
        yield Sample(f"{name}: rate", measured.per_second, "1/s")
        yield Sample(f"{name}: p50", measured.percentile(0.5), "ms")
        yield Sample(f"{name}: p99", measured.percentile(0.99), "ms")
        yield Sample(f"{name}: gateway CPU", used * 1e6 / len(measured.latencies_ms), "us")


def _four_calls(transport: str, *in_flight: int) -> "Row":
    def row(stage: Stage) -> Iterator[Sample]:
        with gateway(transport, environ=stage.size.environ) as bed:
            four_calls(bed, connections=20, seconds=stage.size.seconds / 8)
            for connections in in_flight:
                yield from _at(bed, transport, connections=connections, stage=stage)

    return row


def _at(bed: Bed, transport: str, *, connections: int, stage: Stage) -> Iterator[Sample]:
    used = cpu_s(bed.pid)
    measured = four_calls(bed, connections=connections, seconds=stage.size.seconds)
    used = cpu_s(bed.pid) - used
    how_many = "one at a time" if connections == 1 else f"{connections} in flight"
    name = f"four calls, {transport}, {how_many}"
    if connections > 1:
        yield Sample(f"{name}: rate", measured.per_second, "1/s")
    yield Sample(f"{name}: p50", measured.percentile(0.5), "ms")
    yield Sample(f"{name}: p99", measured.percentile(0.99), "ms")
    yield Sample(f"{name}: gateway CPU", used * 1e6 / len(measured.latencies_ms), "us")


def manual_step(stage: Stage) -> Iterator[Sample]:
    with gateway("http", environ={**stage.size.environ, **NO_SYNC}) as bed:
        seconds = stage.size.seconds / 2
        stepped = manual_steps(bed, seconds=seconds).percentile(0.5)
        direct = direct_calls(bed, seconds=seconds).percentile(0.5)
        name = "manual step, without the sync"
        yield Sample(f"{name}: p50", stepped, "ms")
        yield Sample(f"{name}: p50 of the call direct", direct, "ms")
        yield Sample(f"{name}: added p50", stepped - direct, "ms")


def many_open(stage: Stage) -> Iterator[Sample]:
    with gateway("http", environ=stage.size.environ) as bed:
        ids = open_many(bed, stage.size.open_sessions)
        measured = read_states(bed, ids, seconds=stage.size.seconds)
        name = f"{stage.size.open_sessions:,} sessions open"
        yield Sample(f"{name}: memory", rss_mb(bed.pid), "MB")
        yield Sample(f"{name}: state read p95", measured.percentile(0.95), "ms")


def many_stored(stage: Stage) -> Iterator[Sample]:
    """The many are made once and stay; the few are made anew, since each run stores more."""
    size = stage.size
    many = stage.directory / "many"
    if not many.exists():
        _store(many, size.many_stored, stage=stage)
    with tempfile.TemporaryDirectory() as few:
        _store(Path(few), size.few_stored, stage=stage)
        rates = [_rate_over(place, stage) for place in (Path(few), many)]
    name = f"{size.few_stored:,} to {size.many_stored:,} stored sessions"
    yield Sample(f"{size.few_stored:,} stored sessions: rate", rates[0], "1/s")
    yield Sample(f"{size.many_stored:,} stored sessions: rate", rates[1], "1/s")
    yield Sample(f"{name}: rate kept", 100 * rates[1] / rates[0], "%")


def _store(directory: Path, sessions: int, *, stage: Stage) -> None:
    with gateway("http", directory=directory, environ=stage.size.environ) as bed:
        four_calls(bed, connections=4, sessions=4)
        like = stored_ids(bed, 1)[0]
    fill(directory, sessions, like=like)


def _rate_over(directory: Path, stage: Stage) -> float:
    with gateway("http", directory=directory, environ=stage.size.environ) as bed:
        _settle(bed)
        four_calls(bed, connections=20, seconds=stage.size.seconds / 8)
        return four_calls(bed, connections=20, seconds=stage.size.seconds).per_second


def _settle(bed: Bed) -> None:
    """Wait until the store has compacted what was just filled into it."""
    until = time.monotonic() + SETTLE_S_MAX
    used = IDLE_CPU_S
    while used >= IDLE_CPU_S and time.monotonic() < until:
        before = cpu_s(bed.pid)
        time.sleep(SETTLE_S)
        used = cpu_s(bed.pid) - before


def idle(stage: Stage) -> Iterator[Sample]:
    with gateway(environ=stage.size.environ) as bed:
        time.sleep(SETTLE_S)
        yield Sample("idle gateway: memory", rss_mb(bed.pid), "MB")
        yield Sample("idle gateway: ready after", bed.ready_s, "s")


def costs(stage: Stage) -> Iterator[Sample]:
    return cost_split(stage.size.seconds, environ=stage.size.environ)


Row = Callable[[Stage], Iterator[Sample]]

ROWS: dict[str, Row] = {
    "open": openings,
    "http": _four_calls("http", 20, 64, 1),
    "attach": _four_calls("attach", 20, 64),
    "grpc": _four_calls("grpc", 20, 64),
    "manual": manual_step,
    "many-open": many_open,
    "many-stored": many_stored,
    "idle": idle,
    "costs": costs,
}


@contextmanager
def stage(size: Size) -> Iterator[Stage]:
    with tempfile.TemporaryDirectory() as directory:
        yield Stage(size, Path(directory))
