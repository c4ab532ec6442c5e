"""Time and chance as ports: whoever needs them takes a `Clock` or a `Chance`, so tests decide both.

Wall time goes on events and to people; only monotonic time measures how long something took.
"""

import os
import random
import time
from typing import Protocol


class Clock(Protocol):
    def now_ms(self) -> int:
        """Wall clock, milliseconds since the epoch (UTC). May jump."""

    def monotonic_ms(self) -> float:
        """Never jumps back; its zero means nothing."""


class Chance(Protocol):
    def random_64(self) -> int:
        """64 random bits, for ids."""

    def random_bytes(self, count: int) -> bytes:
        """Bytes fit for secrets (keys, tokens)."""


class SystemClock:
    """The machine's clocks."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> float:
        return time.monotonic() * 1000.0


class ManualClock:
    """A clock that a test moves."""

    def __init__(self, now_ms: int = 1_700_000_000_000) -> None:
        self._now_ms = now_ms
        self._elapsed_ms = 0.0

    def now_ms(self) -> int:
        return self._now_ms

    def monotonic_ms(self) -> float:
        return self._elapsed_ms

    def advance(self, ms: int) -> None:
        """Let `ms` pass on both clocks."""
        assert ms >= 0, "time that passes is never negative; use jump_to for the wall clock"
        self._now_ms += ms
        self._elapsed_ms += ms

    def jump_to(self, now_ms: int) -> None:
        """Set the wall clock alone, also backwards, as an administrator or NTP may."""
        self._now_ms = now_ms


class SystemChance:
    """The operating system's generator. Bits for ids come in blocks: one call per 64 ids."""

    _BLOCK = 512

    def __init__(self) -> None:
        self._block = b""
        self._used = 0

    def random_64(self) -> int:
        if self._used >= len(self._block):
            self._block, self._used = os.urandom(self._BLOCK), 0
        start = self._used
        self._used = start + 8
        return int.from_bytes(self._block[start : start + 8], "big")

    def random_bytes(self, count: int) -> bytes:
        return os.urandom(count)


class SeededChance:
    """Chance that repeats itself: for tests and simulations, never for secrets."""

    def __init__(self, seed: int = 0) -> None:
        self._random = random.Random(seed)

    def random_64(self) -> int:
        return self._random.getrandbits(64)

    def random_bytes(self, count: int) -> bytes:
        return self._random.randbytes(count)
