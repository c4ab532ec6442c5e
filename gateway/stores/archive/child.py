"""One pass of the archive as a process: `python -m gateway.stores.archive.child`.

Reads its order from standard input, tells what it does on standard output and ends. Packing takes
cores and pyarrow takes memory, so both are here, at the lowest priority, and only for as long as
there is something to do. The kernel ends it with its parent.
"""

import os
import sys
from pathlib import Path
from typing import Final

import msgspec

from gateway.stores.archive.archiving import Archiving
from gateway.stores.archive.cold_tier import ColdTier
from gateway.stores.archive.manifest import ManifestUnreadable
from gateway.stores.archive.object_store import ExtraMissing, open_store
from gateway.stores.archive.order import ArchiveOrder, Said, Trouble
from gateway.stores.dying import die_with_parent
from gateway.stores.records.lock import StoreHeld, hold

EXIT_OK, EXIT_FAILED, EXIT_HELD, EXIT_NO_EXTRA = 0, 1, 6, 7
SCRATCH: Final = "scratch"


def main() -> int:
    """The process's exit code."""
    _give_way()
    line = sys.stdin.buffer.readline()
    if not line:
        return EXIT_OK  # the parent was gone before it said anything
    order = msgspec.json.decode(line, type=ArchiveOrder)
    work = Path(order.work_dir)
    try:
        lock = hold(work, wait_s=order.lock_wait_s)
    except StoreHeld as problem:
        tell(Trouble(what=f"another pass is under way: {problem}"))
        return EXIT_HELD
    try:
        return _run(order, work / SCRATCH)
    finally:
        os.close(lock)


def _run(order: ArchiveOrder, scratch: Path) -> int:
    for left in scratch.glob("*"):  # of a pass that was killed
        left.unlink()
    try:
        store = open_store(order.url, order.options)
        cold = ColdTier(store, order.gateway_id, work=scratch)
        Archiving(order, cold, tell=tell, agree=_agreed).run()
    except ExtraMissing as problem:
        tell(Trouble(what=str(problem)))
        return EXIT_NO_EXTRA
    except (OSError, ManifestUnreadable) as problem:
        tell(Trouble(what=str(problem)))
        return EXIT_FAILED
    return EXIT_OK


def tell(what: Said) -> None:
    """One line on standard output."""
    sys.stdout.buffer.write(msgspec.json.encode(what) + b"\n")
    sys.stdout.buffer.flush()


def _agreed() -> bool:
    """Once the parent has dealt with what it was told; False when it is gone."""
    return bool(sys.stdin.buffer.readline())


def _give_way() -> None:
    """Last in line for the processor, and dead with the parent."""
    os.nice(19)
    die_with_parent()


if __name__ == "__main__":
    sys.exit(main())
