"""One process per store: a lock file that its holder's death opens, however it died.

A start waits for a predecessor that is still dying. Never waits for ever, and says who holds it.
"""

import fcntl
import os
import time
from pathlib import Path
from typing import Final

LOCK_FILE: Final = "lock"
_LOOK_AGAIN_S: Final = 0.05


class StoreHeld(Exception):
    """Another process has this store open."""


def hold(directory: Path, *, wait_s: float) -> int:
    """The lock's descriptor, held until it is closed or this process ends. Raises StoreHeld."""
    directory.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(directory / LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    give_up_at = time.monotonic() + wait_s
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= give_up_at:
                holder = os.pread(descriptor, 20, 0).decode(errors="replace").strip()
                os.close(descriptor)
                raise StoreHeld(f"process {holder or '?'} holds {directory}") from None
            time.sleep(_LOOK_AGAIN_S)
        else:
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, str(os.getpid()).encode(), 0)
            return descriptor
