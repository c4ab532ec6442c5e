"""Why no traffic should come: what a failed or damaged store says to those who ask."""

import re

from gateway.runtime.outbox import Outbox
from gateway.stores.errors import StoreCorrupt, StoreError
from gateway.telemetry.logs import get_log

log = get_log("gateway")


def store_failed(problem: StoreError, unready: set[str], *, data_dir: str) -> None:
    """Nothing is acknowledged any more; a restart is the way out, once the disk is well."""
    log.error("store_failed", cause=problem)
    said = re.sub(re.escape(data_dir) + r"[^\s:,)]*", "the data directory", str(problem))
    unready.add(f"the store failed: {said}; mend the disk, then restart the gateway")


def store_damaged(problem: StoreCorrupt, unready: set[str]) -> None:
    """What stands in the damaged place cannot be read; a person has to restore or to salvage it."""
    log.error("store_damaged", cause=problem)
    unready.add("the store is damaged: its log says where; restore a backup, or salvage it")


def reasons(unready: set[str], outbox: Outbox) -> tuple[str, ...]:
    """Why no traffic should come. No file names: everybody may ask."""
    if outbox.is_stuck:
        stuck = "trajectories cannot be written: the log says why; sessions go on, their rows wait"
        return tuple(sorted({*unready, stuck}))
    return tuple(sorted(unready))
