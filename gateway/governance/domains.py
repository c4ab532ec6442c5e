"""Declared domains of values, and the way of one value into its domain (mission R13).

Asked in this order, the surest first: the value as it is, folded, a synonym, then `nearest`, which
is given from outside and may hold a model. Below the domain's threshold a value is refused and
never passes as it is. Pure: what `nearest` says is a value like any other, and rides on the event.
"""

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from acp_spec.model.semantics import HowMapped
from gateway.governance.folding import fold

THRESHOLD_DEFAULT: Final = 0.65
"""Measured by `make bench-semantics`: under 2 % wrong, on names that it was not chosen with."""
VALUE_CHARACTERS_MAX: Final = 256
"""A value of a domain is a word or a phrase; a longer text is none, however near it may look."""
NAMES_SHOWN: Final = 8
"""Of a domain in a message: enough to recognise it by, short enough to read."""
CANDIDATES_MAX: Final = 3


class Candidate(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A value of the domain that may be meant; `confidence` from 0 to 1."""

    value: str
    confidence: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Domain:
    """The values that a field may have. `meanings`: every folded name and synonym to its value.

    `synonyms` are by spelling; `folds` is False where only the exact spelling counts.
    """

    name: str
    values: frozenset[str]
    synonyms: Mapping[str, str]
    meanings: Mapping[str, str]
    threshold: float = THRESHOLD_DEFAULT
    folds: bool = True
    guesses: bool = True
    digest: str = ""

    def spellings(self) -> tuple[tuple[str, str], ...]:
        """(spelling, value) of all names and synonyms, sorted: what `nearest` compares with."""
        names = [(value, value) for value in self.values]
        return tuple(sorted([*names, *self.synonyms.items()]))

    def shown(self) -> str:
        """The domain as a message names it, shortened."""
        names = sorted(self.values)
        more = len(names) - NAMES_SHOWN
        tail = f" and {more} more" if more > 0 else ""
        return f"{self.name!r} ({', '.join(names[:NAMES_SHOWN])}{tail})"


Nearest = Callable[[Domain, str], Sequence[Candidate]]
"""`nearest(domain, text)`: who may be meant, best first. It must not raise and must not wait."""


def nobody(domain: Domain, text: str) -> Sequence[Candidate]:
    """A `nearest` that never guesses."""
    return ()


class Found(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What became of one value; `value` is empty when it was refused."""

    how: HowMapped
    value: str = ""
    confidence: float = 1.0
    candidates: tuple[Candidate, ...] = ()


def place(domain: Domain, text: str, *, nearest: Nearest) -> Found:
    """The value of the domain that `text` means, or REFUSED with those that come nearest."""
    if text in domain.values:
        return Found(how=HowMapped.EXACT, value=text)
    if text in domain.synonyms:
        return Found(how=HowMapped.SYNONYM, value=domain.synonyms[text])
    if len(text) > VALUE_CHARACTERS_MAX:
        return Found(how=HowMapped.REFUSED, confidence=0.0)
    if domain.folds:
        meant = domain.meanings.get(fold(text))
        if meant is not None:
            is_name = fold(meant) == fold(text)
            return Found(how=HowMapped.FOLDED if is_name else HowMapped.SYNONYM, value=meant)
    return _guessed(domain, text, nearest=nearest) if domain.guesses else _refused(())


def _guessed(domain: Domain, text: str, *, nearest: Nearest) -> Found:
    # What is no number is under no threshold, and no journal could be read that has it.
    said = (one for one in nearest(domain, text) if not math.isnan(one.confidence))
    candidates = tuple(said)[:CANDIDATES_MAX]
    best = candidates[0] if candidates else None
    if best is None or best.confidence < domain.threshold or best.value not in domain.values:
        return _refused(candidates)
    return Found(how=HowMapped.NEAREST, value=best.value, confidence=best.confidence)


def _refused(candidates: tuple[Candidate, ...]) -> Found:
    confidence = candidates[0].confidence if candidates else 0.0
    return Found(how=HowMapped.REFUSED, confidence=confidence, candidates=candidates)


def domain_of(
    name: str,
    values: Mapping[str, Sequence[str]],
    *,
    threshold: float = THRESHOLD_DEFAULT,
    folds: bool = True,
    guesses: bool = True,
) -> Domain:
    """A domain of these values, each with its synonyms. They must be free of `clashes`."""
    synonyms = {synonym: value for value, named in values.items() for synonym in named}
    meanings = {fold(value): value for value in values}
    meanings |= {fold(synonym): value for synonym, value in synonyms.items()}
    basis = msgspec.json.encode([sorted(values), sorted(synonyms.items())])
    return Domain(
        name=name,
        values=frozenset(values),
        synonyms=synonyms,
        meanings=meanings if folds else {},
        threshold=threshold,
        folds=folds,
        guesses=guesses,
        digest=hashlib.sha256(basis).hexdigest(),
    )


class Clash(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Two spellings that cannot be told apart, though they mean different values."""

    spelling: str
    value: str
    other: str
    other_value: str


def clashes(values: Mapping[str, Sequence[str]], *, folds: bool = True) -> tuple[Clash, ...]:
    """Every name or synonym that could mean two values; such a domain must not be stored."""
    same = fold if folds else _as_it_is
    owners: dict[str, tuple[str, str]] = {}
    found: list[Clash] = []
    for spelling, value in _claims(values):
        other, owner = owners.setdefault(same(spelling), (spelling, value))
        if owner != value:
            found.append(Clash(spelling=spelling, value=value, other=other, other_value=owner))
    return tuple(found)


def _claims(values: Mapping[str, Sequence[str]]) -> list[tuple[str, str]]:
    """Names first: a synonym that claims a name is the one at fault."""
    names = [(value, value) for value in values]
    return names + [(synonym, value) for value, named in values.items() for synonym in named]


def _as_it_is(text: str) -> str:
    return text
