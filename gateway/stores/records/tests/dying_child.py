"""The records child, killed by its own hand: `python -m ...dying_child STEP NUMBER`.

STEP: `begin`, `begun` or `done` of the position; `insert`, `inserted` or `erase` of the store.
NUMBER: which time. It is the real child in everything else.
"""

import os
import signal
import sys
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from gateway.stores.records.child import main
from gateway.stores.records.position import PositionFile
from gateway.stores.records.store import RecordStore

P = ParamSpec("P")
R = TypeVar("R")


def _deadly(call: Callable[P, R], number: int, *, after: bool) -> Callable[P, R]:
    """The same call; the one of that number kills the process, before or after its work."""
    left = number

    def counted(*args: P.args, **kwargs: P.kwargs) -> R:
        nonlocal left
        left -= 1
        if left < 0 and not after:
            os.kill(os.getpid(), signal.SIGKILL)
        result = call(*args, **kwargs)
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    return counted


def _arm(step: str, number: int) -> None:
    if step == "begin":
        PositionFile.begin = _deadly(PositionFile.begin, number, after=False)  # type: ignore[method-assign]
    elif step == "begun":
        PositionFile.begin = _deadly(PositionFile.begin, number, after=True)  # type: ignore[method-assign]
    elif step == "done":
        PositionFile.done = _deadly(PositionFile.done, number, after=False)  # type: ignore[method-assign]
    elif step == "erase":
        RecordStore.erase = _deadly(RecordStore.erase, number, after=False)  # type: ignore[method-assign]
    else:
        after = step == "inserted"
        RecordStore.insert = _deadly(RecordStore.insert, number, after=after)  # type: ignore[method-assign]


if __name__ == "__main__":
    _arm(sys.argv[1], int(sys.argv[2]))
    sys.exit(main())
