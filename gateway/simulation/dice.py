"""Chance that hangs on names: the same seed and name give the same numbers, whatever else happens.

So a scenario can be made smaller: leaving out a session changes nothing of the others. Hashes, no
shared stream; `PYTHONHASHSEED` has no part in it.
"""

from collections.abc import Sequence
from hashlib import blake2b
from typing import TypeVar

T = TypeVar("T")
_WORD = 4
_WORDS = 16
_SCALE = 1.0 / (1 << 32)


class Dice:
    """Draws in a row, of one name. Cheap: one hash for every sixteen draws."""

    __slots__ = ("_block", "_count", "_name", "_used")

    def __init__(self, *name: object) -> None:
        self._name = "/".join(map(str, name)).encode()
        self._count = 0
        self._used = _WORDS
        self._block = b""

    def random(self) -> float:
        """A number in [0, 1)."""
        if self._used == _WORDS:
            self._block = blake2b(self._name, digest_size=64, salt=b"%d" % self._count).digest()
            self._count += 1
            self._used = 0
        start = self._used * _WORD
        self._used += 1
        return int.from_bytes(self._block[start : start + _WORD], "big") * _SCALE

    def below(self, count: int) -> int:
        """A whole number in [0, count)."""
        return int(self.random() * count)

    def between(self, low: int, high: int) -> int:
        """A whole number from `low` to `high`, both included."""
        return low + int(self.random() * (high - low + 1))

    def happens(self, chance: float) -> bool:
        return self.random() < chance

    def pick(self, choices: Sequence[T]) -> T:
        return choices[int(self.random() * len(choices))]

    def weighed(self, choices: Sequence[tuple[float, T]], default: T) -> T:
        """One of them by its share of 1; what is left of 1 is `default`."""
        at = self.random()
        for share, choice in choices:
            at -= share
            if at < 0:
                return choice
        return default

    def latency_s(self, median_s: float) -> float:
        """A long-tailed time: half of them below the median, one in a hundred over ten times it."""
        at = self.random()
        return median_s * (0.4 + at) if at < 0.9 else median_s * (1.3 + 100.0 * (at - 0.9))
