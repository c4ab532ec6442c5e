"""A process of a store's own is not to outlive the gateway that began it."""

import ctypes
import signal
from typing import Final

_PR_SET_PDEATHSIG: Final = 1


def die_with_parent() -> None:
    """The kernel kills this process when its parent is gone, also when it is stopped itself."""
    libc = ctypes.CDLL(None, use_errno=True)
    if hasattr(libc, "prctl"):
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
