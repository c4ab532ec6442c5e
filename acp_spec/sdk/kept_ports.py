"""Ports for programs that are stopped and started again at one place, or that are not there at all.

A port that was free a moment ago may be given to somebody else while nobody listens there: the
system gives out thousands a minute where many servers are tested. These lie below all that a system
gives out by itself, and are held against each other by the UDP port of the same number.
"""

import random
import socket
from collections.abc import Iterator
from types import TracebackType
from typing import Final, Self

LOOPBACK: Final = "127.0.0.1"
GIVEN: Final = range(20_000, 30_000)
"""Linux gives out 32768 and above by itself, other systems 49152 and above."""


class KeptPorts:
    """`take()` gives one that nobody else is given until `close()`, or the end of the process."""

    def __init__(self) -> None:
        self._held: list[socket.socket] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def take(self) -> int:
        """A port of loopback where nobody listens. Raises OSError when there is none left."""
        for port in _from_anywhere():
            holding = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            if _is_ours(holding, port):
                self._held.append(holding)
                return port
            holding.close()
        raise OSError(f"every port of {LOOPBACK} from {GIVEN.start} to {GIVEN.stop - 1} is taken")

    def close(self) -> None:
        while self._held:
            self._held.pop().close()


def _from_anywhere() -> Iterator[int]:
    """All of them, from a place that is another one for each who asks."""
    start = random.randrange(len(GIVEN))
    return (GIVEN[(start + step) % len(GIVEN)] for step in range(len(GIVEN)))


def _is_ours(holding: socket.socket, port: int) -> bool:
    """Whether nobody else holds the port, and nobody listens there."""
    try:
        holding.bind((LOOPBACK, port))
        with socket.socket() as trial:
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            trial.bind((LOOPBACK, port))
    except OSError:
        return False
    return True
