"""The disk under the data directory: syncs, small writes at random places, one long write.

Files are made in the directory, removed again, and bounded in size and time.
"""

import mmap
import os
import random
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import msgspec

BLOCK_BYTES: Final = 4096
FILE_BYTES: Final = 64 * 1024 * 1024
PIECE_BYTES: Final = 1024 * 1024
DEPTH: Final = 8
"""Writes in flight: what a disk needs to show its rate, as a journal and its compactions give."""
SYNCS_MAX: Final = 2_000


class Disk(msgspec.Struct, frozen=True, kw_only=True):
    """What the disk did. `direct`: small writes went past the page cache."""

    syncs_per_s: float
    sync_p50_ms: float
    sync_p99_ms: float
    writes_per_s: float
    direct: bool
    written_mb_per_s: float


def probe_disk(folder: Path, *, seconds: float) -> Disk:
    """Three probes, each for at most `seconds`. Raises OSError where nothing can be written."""
    times_ms = _syncs(folder, seconds=seconds)
    with tempfile.NamedTemporaryFile(dir=folder, prefix="acp-doctor-") as file:
        rate = _long_write(file.fileno(), seconds=seconds)
        writes, direct = _random_writes(Path(file.name), seconds=seconds)
    return Disk(
        syncs_per_s=1000 * len(times_ms) / sum(times_ms),
        sync_p50_ms=percentile(times_ms, 0.5),
        sync_p99_ms=percentile(times_ms, 0.99),
        writes_per_s=writes,
        direct=direct,
        written_mb_per_s=rate,
    )


def percentile(values: list[float], share: float) -> float:
    """The value that this share of them does not exceed; 0 of none."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0


def _syncs(folder: Path, *, seconds: float) -> list[float]:
    """Milliseconds of each append of a block and its sync, one after the other."""
    times_ms: list[float] = []
    until = time.perf_counter() + seconds
    with tempfile.TemporaryFile(dir=folder) as file:
        while not times_ms or (time.perf_counter() < until and len(times_ms) < SYNCS_MAX):
            begin = time.perf_counter()
            os.write(file.fileno(), b"x" * BLOCK_BYTES)
            os.fdatasync(file.fileno())
            times_ms.append((time.perf_counter() - begin) * 1000)
    return times_ms


def _long_write(descriptor: int, *, seconds: float) -> float:
    """MB a second of one sequential write, the sync at its end included."""
    piece = os.urandom(PIECE_BYTES)
    begin = time.perf_counter()
    written = 0
    while written < FILE_BYTES and (time.perf_counter() - begin < seconds or not written):
        written += os.write(descriptor, piece)
    os.fdatasync(descriptor)
    return written / 1e6 / (time.perf_counter() - begin)


def _random_writes(path: Path, *, seconds: float) -> tuple[float, bool]:
    """Blocks a second at random places, several at a time; and whether past the page cache."""
    flags = os.O_WRONLY | os.O_DSYNC
    direct = True
    try:
        descriptor = os.open(path, flags | os.O_DIRECT)
    except OSError:  # a file system in memory has no way past its cache
        descriptor, direct = os.open(path, flags), False
    blocks = max(1, path.stat().st_size // BLOCK_BYTES)
    until = time.perf_counter() + seconds

    def write(seed: int) -> int:
        chance = random.Random(seed)
        done = 0
        with mmap.mmap(-1, BLOCK_BYTES) as block:  # aligned, as writes past the cache must be
            while time.perf_counter() < until:
                os.pwrite(descriptor, block, chance.randrange(blocks) * BLOCK_BYTES)
                done += 1
        return done

    begin = time.perf_counter()
    try:
        with ThreadPoolExecutor(DEPTH) as pool:
            done = sum(pool.map(write, range(DEPTH)))
    finally:
        os.close(descriptor)
    return done / (time.perf_counter() - begin), direct
