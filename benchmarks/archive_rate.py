"""How fast the archive packs: MB of raw JSON lines a second, wall and CPU, as a gateway runs it.

A pass in a process of its own moves files that are written here through the trajectory log: packs
both forms, puts them into a directory, reads them back and compares. Waiting for the disk counts.
"""

import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from gateway.stores.archive.order import ArchiveOrder, Moved, Said
from gateway.stores.trajectory_log import BATCH_LINES_MAX, TrajectoryLog

RAW_MB = 256
FILE_BYTES = 64 << 20
MB = 1e6


def archive_rate(line: Callable[[int, int], bytes]) -> dict[str, float]:
    """`line(number, now_ms)` makes trajectories."""
    now_ms = time.time_ns() // 1_000_000
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(folder / "log", line, now_ms=now_ms)
        order = ArchiveOrder(
            log_dir=str(folder / "log"),
            records_dir=str(folder / "records"),
            work_dir=str(folder / "work"),
            url=str(folder / "archive"),
            gateway_id="bench",
            now_ms=now_ms,
            hot_days=0,
        )
        before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-m", "gateway.stores.archive.child"],
            input=msgspec.json.encode(order) + b"\n",
            stdout=subprocess.PIPE,
            check=True,
        )
        wall_s = time.perf_counter() - begun
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    said = [msgspec.json.decode(one, type=Said) for one in done.stdout.splitlines()]
    moved = [one for one in said if isinstance(one, Moved)]
    raw = sum(one.raw_bytes for one in moved)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {
        "archive_mb_per_s": raw / MB / wall_s,
        "archive_mb_per_cpu_s": raw / MB / cpu_s,
        "archive_stored_share": sum(one.stored_bytes for one in moved) / raw,
        "archive_peak_mb": after.ru_maxrss / 1024,
    }


def write(folder: Path, line: Callable[[int, int], bytes], *, now_ms: int) -> None:
    folder.mkdir(parents=True)
    log = TrajectoryLog(folder, rotate_bytes=FILE_BYTES, rotate_ms=3_600_000)
    number = written = 0
    while written < RAW_MB * MB + FILE_BYTES:  # the newest file stays
        lines = [line(number + n, now_ms) for n in range(BATCH_LINES_MAX)]
        log.append(lines, now_ms)
        number += BATCH_LINES_MAX
        written += sum(map(len, lines))
    log.close()
