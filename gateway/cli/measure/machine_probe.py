"""The machine itself: CPUs that may be used, memory, open files, and how late its timers are."""

import asyncio
import os
import resource
from pathlib import Path
from typing import Final

import msgspec

from gateway.cli.measure.disk_probe import percentile

TICKS: Final = 300
TICK_S: Final = 0.001


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """What this machine gives this process. `timer_late_p99_ms`: how late a 1 ms timer comes."""

    cpus: float
    load_1m: float
    memory_total_mb: int
    memory_available_mb: int
    open_files_max: int
    timer_late_p99_ms: float


def probe_machine() -> Machine:
    told = _memory_kb()
    return Machine(
        cpus=_cpus(),
        load_1m=round(os.getloadavg()[0], 2),
        memory_total_mb=told.get("MemTotal", 0) // 1024,
        memory_available_mb=told.get("MemAvailable", 0) // 1024,
        open_files_max=resource.getrlimit(resource.RLIMIT_NOFILE)[0],
        timer_late_p99_ms=round(asyncio.run(_timer_late_p99_ms()), 3),
    )


def _cpus() -> float:
    """CPUs this process may run on, less where a control group gives it a share only."""
    cpus = float(len(os.sched_getaffinity(0)))
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
    except (OSError, ValueError):
        return cpus
    return cpus if quota == "max" else min(cpus, int(quota) / int(period))


def _memory_kb() -> dict[str, int]:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return {}
    return {line.partition(":")[0]: int(line.split()[1]) for line in lines}


async def _timer_late_p99_ms() -> float:
    loop = asyncio.get_running_loop()
    late_ms: list[float] = []
    for _ in range(TICKS):
        due = loop.time() + TICK_S
        await asyncio.sleep(TICK_S)
        late_ms.append((loop.time() - due) * 1000)
    return percentile(late_ms, 0.99)
