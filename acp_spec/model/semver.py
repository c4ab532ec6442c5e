"""Semantic versions 2.0.0 and the ranges in `name@range`: which versions a step may use.

A range is comparators separated by blanks, all of which must hold: `^1.2`, `~1.2.3`, `>=1.2`, `<2`,
`1.2.3` (exactly that), `1.2`, `1.x` and `*`. A pre-release (2.0.0-rc.1) is chosen only by a range
that names a pre-release of the same major.minor.patch: nobody gets one unasked.
"""

import functools
import re
from dataclasses import dataclass
from typing import Final

_NUMBER: Final = r"0|[1-9][0-9]{0,8}"
_PRE_PART: Final = rf"(?:{_NUMBER}|[0-9]*[A-Za-z-][0-9A-Za-z-]*)"
_TAIL: Final = rf"(?:-({_PRE_PART}(?:\.{_PRE_PART})*))?(?:\+([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?"
_VERSION: Final = re.compile(rf"({_NUMBER})\.({_NUMBER})\.({_NUMBER}){_TAIL}")
_COMPARATOR: Final = re.compile(
    rf"(\^|~|>=|<=|>|<|=)?({_NUMBER}|[xX*])(?:\.({_NUMBER}|[xX*]))?(?:\.({_NUMBER}|[xX*]))?{_TAIL}"
)
_LENGTH_MAX: Final = 128


class VersionError(ValueError):
    """Text that is not a version, or not a range of versions."""


@functools.total_ordering
@dataclass(frozen=True, slots=True)
class Version:
    """One version. Order is precedence: build metadata is text only and never compared."""

    major: int
    minor: int = 0
    patch: int = 0
    pre: tuple[str, ...] = ()
    build: str = ""

    @property
    def core(self) -> tuple[int, int, int]:
        return self.major, self.minor, self.patch

    def __str__(self) -> str:
        pre = "-" + ".".join(self.pre) if self.pre else ""
        return f"{self.major}.{self.minor}.{self.patch}{pre}{'+' if self.build else ''}{self.build}"

    def __lt__(self, other: "Version") -> bool:
        return self._precedence() < other._precedence()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Version) and self._precedence() == other._precedence()

    def __hash__(self) -> int:
        return hash(self._precedence())

    def _precedence(self) -> tuple[tuple[int, int, int], bool, tuple[tuple[bool, int, str], ...]]:
        """A release is above its pre-releases; their numeric parts are below alphanumeric ones."""
        parts = tuple(
            (False, int(part), "") if part.isdigit() else (True, 0, part) for part in self.pre
        )
        return self.core, not self.pre, parts


@dataclass(frozen=True, slots=True)
class Bound:
    """The versions from `low` up to but not with `below` (None: no limit on that side)."""

    low: Version | None
    below: Version | None
    exact: Version | None = None

    def holds(self, version: Version) -> bool:
        if self.exact is not None:
            return version == self.exact
        above_low = self.low is None or version >= self.low
        return above_low and (self.below is None or version < self.below)

    def names_pre_release_of(self, version: Version) -> bool:
        """Whether this bound itself speaks of a pre-release with the version's core."""
        named = (self.low, self.below, self.exact)
        return any(v is not None and v.pre and v.core == version.core for v in named)


@functools.lru_cache(maxsize=4096)
def parse(text: str) -> Version:
    """The version that `text` is; raises VersionError with advice."""
    found = _VERSION.fullmatch(text) if len(text) <= _LENGTH_MAX else None
    if found is None:
        raise VersionError(f"{text!r} is not a version; write major.minor.patch, such as 1.0.0")
    major, minor, patch, pre, build = found.groups()
    parts = tuple(pre.split(".")) if pre else ()
    return Version(int(major), int(minor), int(patch), parts, build or "")


@functools.lru_cache(maxsize=4096)
def parse_range(text: str) -> tuple[Bound, ...]:
    """The bounds that must all hold; the empty text is any version."""
    if len(text) > _LENGTH_MAX:
        raise VersionError(f"a range of versions has at most {_LENGTH_MAX} characters")
    return tuple(_bound(comparator) for comparator in text.split())


@functools.lru_cache(maxsize=16384)
def matches(version: str, wanted: str = "") -> bool:
    """Whether `version` lies in the range `wanted`; an empty range takes every release."""
    candidate, bounds = parse(version), parse_range(wanted)
    if candidate.pre and not any(bound.names_pre_release_of(candidate) for bound in bounds):
        return False
    return all(bound.holds(candidate) for bound in bounds)


def split_name(text: str) -> tuple[str, str]:
    """`name@range` as (name, range); the range is checked, and empty if left out."""
    name, _, wanted = text.partition("@")
    parse_range(wanted)
    return name, wanted


def _bound(text: str) -> Bound:
    found = _COMPARATOR.fullmatch(text)
    if found is None:
        raise VersionError(
            f"{text!r} is not a range of versions; write ^1.2, ~1.2.3, >=1.2 or 1.2.3"
        )
    operator, major, minor, patch, pre, build = found.groups()
    given: list[int] = []
    for part in (major, minor, patch):
        if part is None or part in "xX*":
            break
        given.append(int(part))
    whole = len(given) == 3
    if not whole and (pre or build):
        raise VersionError(f"{text!r}: a pre-release needs all of major.minor.patch")
    low = _filled(given, tuple(pre.split(".")) if pre else ()) if given else None
    match operator:
        case "^":
            return Bound(low, _next(given, _caret_place(given)))
        case "~":
            return Bound(low, _next(given, min(len(given), 2) - 1))
        case ">=":
            return Bound(low, None)
        case "<":
            return Bound(None, low or Version(0))
        case ">":
            # Above every version that the text covers: >1.2 begins with 1.3.0.
            return Bound(None, None) if low is None else _above(low, given)
        case "<=":
            return Bound(None, _next(given, len(given) - 1) if not whole else _just_above(low))
        case _:
            return Bound(low, None, low) if whole else Bound(low, _next(given, len(given) - 1))


def _filled(given: list[int], pre: tuple[str, ...] = ()) -> Version:
    """The numbers given, zeros for the rest."""
    major, minor, patch = [*given, 0, 0][:3]
    return Version(major, minor, patch, pre)


def _caret_place(given: list[int]) -> int:
    """Which number a caret lets change last: the leftmost that is not zero."""
    nonzero = [place for place, number in enumerate(given) if number]
    return nonzero[0] if nonzero else len(given) - 1


def _next(given: list[int], place: int) -> Version | None:
    """The first version beyond those that share the numbers up to `place` (None: no such limit)."""
    if not given:
        return None
    return _filled([*given[:place], given[place] + 1])


def _above(low: Version, given: list[int]) -> Bound:
    return Bound(_just_above(low) if len(given) == 3 else _next(given, len(given) - 1), None)


def _just_above(version: Version | None) -> Version | None:
    """The least version that is greater: the next pre-release, or the next patch's first one."""
    if version is None:
        return None
    if version.pre:
        return Version(*version.core, pre=(*version.pre, "0"))
    return Version(version.major, version.minor, version.patch + 1, pre=("0",))
