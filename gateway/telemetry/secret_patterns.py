"""Patterns that an operator adds for secrets: checked before they run on what strangers send. Pure.

A pattern may take a bounded number of steps at each character, whatever it meets. So repetitions
have an end and stand over single characters, and what would be tried in every combination is
refused; the possessive form (`{1,9}+`), which never goes back, always may. What is allowed is a
small part of Python's `re`, read here: what this does not know, it refuses.
"""

import re
from typing import Final, NamedTuple

PATTERN_CHARACTERS_MAX: Final = 1_000
DEPTH_MAX: Final = 16
STEPS_MAX: Final = 4_000
"""At one character. Text that comes near it at every one is made to; other text takes a few."""

IGNORE_CASE: Final = "(?i)"
GROUPS: Final = ("(?:", "(?P<secret>")

_KIND: Final = re.compile(r"[a-z][a-z_]{0,39}")
_MARK: Final = re.compile(r"\\[bB]|[\^$]")
_CHARACTER: Final = re.compile(
    r"\\[^A-Za-z0-9]|\\[dDsSwWnrt]|\[\^?\]?(?:[^\]\\\[]|\\[^A-Za-z0-9]|\\[dDsSwWnrt])*+\]|[^\\\[\](){}*+?|^$]"
)
_REPEAT: Final = re.compile(r"(?:\{([0-9]{1,4})(?:(,)([0-9]{1,4}))?\}|(\?))(\+?)")


class _Characters(NamedTuple):
    """One character, or so many of a kind."""

    least: int
    most: int
    never_goes_back: bool

    def steps(self, after: int) -> int:
        """Steps at most, where what follows takes `after`."""
        tries = 1 if self.never_goes_back else self.most - self.least + 1
        return self.most + tries * after

    def shortest(self) -> int:
        """Characters at least."""
        return self.least


class _Group(NamedTuple):
    """One of several, or none of them."""

    ways: tuple[tuple["_Part", ...], ...]
    is_optional: bool

    def steps(self, after: int) -> int:
        """Steps at most, where what follows takes `after`."""
        return sum(_steps(way, after) for way in self.ways) + self.is_optional * after

    def shortest(self) -> int:
        """Characters at least."""
        return 0 if self.is_optional else min(sum(p.shortest() for p in way) for way in self.ways)


_Part = _Characters | _Group


def checked(kind: str, pattern: str) -> str:
    """The pattern, if it may be used. Raises ValueError, which says what is wrong with it."""
    if not _KIND.fullmatch(kind):
        raise ValueError(f"{kind!r} is no kind: small letters and _, such as staff_number")
    if len(pattern) > PATTERN_CHARACTERS_MAX:
        raise ValueError(f"{kind}: a pattern has at most {PATTERN_CHARACTERS_MAX} characters")
    try:
        re.compile(pattern, re.ASCII)
        whole = _Reader(pattern.removeprefix(IGNORE_CASE)).whole()
    except (re.error, ValueError) as problem:
        raise ValueError(f"{kind}: {problem}") from None
    if whole.shortest() == 0:
        raise ValueError(f"{kind}: it needs no character at all, so it would match everywhere")
    steps = whole.steps(1)
    if steps > STEPS_MAX:
        raise ValueError(
            f"{kind}: may take {steps} steps at each character, over {STEPS_MAX}: make its"
            " repetitions shorter, or such that they never go back, as in [a-z]{1,99}+"
        )
    return pattern


def _steps(way: tuple[_Part, ...], after: int) -> int:
    for part in reversed(way):
        after = min(part.steps(after), 10 * STEPS_MAX)
    return after


class _Reader:
    """A pattern from left to right. Raises ValueError at what is not allowed."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._at = 0

    def whole(self) -> _Group:
        """All of it."""
        whole = _Group(self._ways(0), is_optional=False)
        if self._at < len(self._pattern):
            raise self._refused()
        return whole

    def _ways(self, depth: int) -> tuple[tuple[_Part, ...], ...]:
        if depth > DEPTH_MAX:
            raise ValueError(f"groups in groups, over {DEPTH_MAX} deep")
        ways: list[tuple[_Part, ...]] = [self._way(depth)]
        while self._takes("|"):
            ways.append(self._way(depth))
        return tuple(ways)

    def _way(self, depth: int) -> tuple[_Part, ...]:
        parts: list[_Part] = []
        while self._at < len(self._pattern) and self._pattern[self._at] not in "|)":
            mark = _MARK.match(self._pattern, self._at)
            if mark is not None:
                self._at = mark.end()
                continue
            parts.append(self._group(depth) or self._characters())
        return tuple(parts)

    def _group(self, depth: int) -> _Group | None:
        if not any(self._takes(opening) for opening in GROUPS):
            return None
        ways = self._ways(depth + 1)
        if not self._takes(")"):
            raise self._refused()
        return _Group(ways, self._takes("?"))

    def _characters(self) -> _Characters:
        found = _CHARACTER.match(self._pattern, self._at)
        if found is None:
            raise self._refused()
        self._at = found.end()
        repeat = _REPEAT.match(self._pattern, self._at)
        if repeat is None:
            return _Characters(1, 1, never_goes_back=False)
        self._at = repeat.end()
        least = 0 if repeat[4] else int(repeat[1])
        most = 1 if repeat[4] else int(repeat[3] or repeat[1])
        return _Characters(least, most, never_goes_back=bool(repeat[5]))

    def _takes(self, text: str) -> bool:
        if not self._pattern.startswith(text, self._at):
            return False
        self._at += len(text)
        return True

    def _refused(self) -> ValueError:
        rest = self._pattern[self._at : self._at + 12]
        return ValueError(
            f"{rest!r} (character {self._at + 1}) is not allowed: characters, classes such as"
            " [a-z0-9], \\d \\w \\s \\b ^ $, (?:a|b), (?P<secret>...) and repetitions with an end"
            " of one character, {8,64}"
        )
