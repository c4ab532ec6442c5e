"""The variance of contributions by a process of its own: `acp insight contribution` over the log.

The same code as a person runs, at the lowest priority, so that sessions do not notice it. It reads
trajectories that are synced; what it says is bounded in time, and it is killed when nobody waits.
"""

import asyncio
import contextlib
import os
import sys
from pathlib import Path
from typing import Final

import msgspec

from acp_spec.model.times import MS_PER_DAY, rfc3339
from gateway.runtime.dashboard.variance import Compute, Computed, VarianceAsked

WITHIN_S: Final = 120.0
NICENESS: Final = 15
EXIT_TOLD: Final = frozenset({0, 8})
TOO_LONG: Final = f"it took over {WITHIN_S:.0f} s: run acp insight contribution, which has no limit"
IN_ARCHIVE: Final = (
    "the windows reach back over archive.hot_days ({days}), and older trajectories may be in the"
    " archive: choose a shorter window, or acp insight contribution --from records"
)
ALONE: Final = "fewer than two components took part in both windows"


class _Said(msgspec.Struct, frozen=True):
    variance: float | None = None
    refused: str = ""


class _Failure(msgspec.Struct, frozen=True):
    message: str = ""


class _Failed(msgspec.Struct, frozen=True):
    error: _Failure = _Failure()


def contributions_of(data_dir: Path, *, hot_days: int | None = None) -> Compute:
    """Computes over the trajectories of this directory, where older ones than `hot_days` may be
    gone; None: all of them are there."""

    async def compute(asked: VarianceAsked) -> Computed:
        if hot_days is not None and asked.to_ms - asked.from_ms > hot_days * MS_PER_DAY:
            return Computed(reason=IN_ARCHIVE.format(days=hot_days))
        process = await asyncio.create_subprocess_exec(
            *_command(data_dir, asked),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        try:
            with contextlib.suppress(OSError):  # it may be over already
                os.setpriority(os.PRIO_PROCESS, process.pid, NICENESS)
            async with asyncio.timeout(WITHIN_S):
                said, complained = await process.communicate()
        except TimeoutError:
            return Computed(reason=TOO_LONG)
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        assert process.returncode is not None
        return _read(process.returncode, said, complained=complained)

    return compute


def _command(data_dir: Path, asked: VarianceAsked) -> tuple[str, ...]:
    middle = rfc3339(asked.middle_ms)
    return (
        *(sys.executable, "-m", "gateway", "insight", "contribution", "--json"),
        f"--from={data_dir.absolute()}",
        f"--workflow={asked.workflow}",
        f"--tenant={asked.tenant}",
        f"--baseline=since={rfc3339(asked.from_ms)},until={middle}",
        f"--new=since={middle},until={rfc3339(asked.to_ms)}",
    )


def _read(code: int, said: bytes, *, complained: bytes) -> Computed:
    """What the command printed, or what it complained of."""
    try:
        if code in EXIT_TOLD:
            found = msgspec.json.decode(said, type=_Said)
            is_told = found.variance is not None
            return Computed(found.variance, "" if is_told else found.refused or ALONE)
        failed = msgspec.json.decode(complained.strip().splitlines()[-1], type=_Failed)
        return Computed(reason=failed.error.message)
    except (msgspec.DecodeError, IndexError):
        return Computed(reason=f"acp insight contribution ended with {code}")
