"""The default `nearest`: spellings compared by their parts, without a model, in well under 1 ms.

Two views are averaged: rare character n-grams that two texts share (cosine of TF-IDF weights), and
how well their words pair up, typing errors allowed (a soft Dice coefficient by the words' weights).
Order of words, case and separators hardly count; a word that the domain does not know counts
against. A runner-up of another value that is almost as near lowers the confidence: a near tie is a
guess. It knows spelling, not meaning: `fee` is as far from `charge` as any word. Other
numbers, negations and contraries are never guessed (`opposites`).
"""

import math
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from gateway.governance.domains import CANDIDATES_MAX, Candidate, Domain
from gateway.governance.folding import words
from gateway.runtime.opposites import apart, contrary

GRAM_SIZES: Final = (2, 3, 4)
# Spellings looked at closely, those with the most n-grams in common.
SHORT_LIST: Final = 12
# Spellings touched while the short list is made: about half a millisecond.
TOUCHED_MAX: Final = 3_000
# A value is a phrase; pairing words costs the product of both sides.
WORDS_MAX: Final = 24
# Two words that differ more than this are two words, not one with an error in it.
WORD_ALIKE: Final = 0.55
# A runner-up this much behind does not lower the confidence any more.
CLEAR_LEAD: Final = 0.12
TIE_FACTOR: Final = 0.6
# A name of which less was said leaves something out.
WHOLE: Final = 0.9
# Two values cover what was said equally well up to this difference.
AS_WELL: Final = 0.05
# Pairs of words whose likeness is remembered: a domain is asked about the same words for ever.
PAIRS_KEPT: Final = 32_768
# Domains whose tables are kept; 1,000 spellings take about 1 MiB.
DOMAINS_KEPT: Final = 64

Weights = Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Spelling:
    """One name or synonym, ready to be compared."""

    value: str
    words: tuple[str, ...]
    grams: Weights


@dataclass(frozen=True, slots=True, kw_only=True)
class _Table:
    """A domain's spellings and what they share."""

    spellings: tuple[_Spelling, ...]
    postings: Mapping[str, tuple[int, ...]]
    gram_weights: Weights
    word_weights: Weights
    unknown_gram: float
    unknown_word: float


class NgramNearest:
    """A `Nearest` that keeps the tables of the domains it was asked about lately."""

    def __init__(self) -> None:
        self._tables: OrderedDict[str, _Table] = OrderedDict()

    def __call__(self, domain: Domain, text: str) -> tuple[Candidate, ...]:
        asked = words(text)
        if not 0 < len(asked) <= WORDS_MAX:
            return ()
        return _ranked(self._table(domain), asked)

    def _table(self, domain: Domain) -> _Table:
        table = self._tables.get(domain.digest)
        if table is None:
            table = self._tables[domain.digest] = _built(domain)
            if len(self._tables) > DOMAINS_KEPT:
                self._tables.popitem(last=False)
        else:
            self._tables.move_to_end(domain.digest)
        return table


@dataclass(frozen=True, slots=True, kw_only=True)
class _Likeness:
    """How near a spelling is. `of_asked`: the share of what was asked that it covers; `of_own`: the
    share of its own words that were asked for."""

    value: str
    score: float
    of_asked: float
    of_own: float


def _ranked(table: _Table, asked: tuple[str, ...]) -> tuple[Candidate, ...]:
    grams = _weighted(_grams(asked), table.gram_weights, unknown=table.unknown_gram)
    best: dict[str, _Likeness] = {}
    near = _short_list(table, grams)
    contraries = {one.value for _, one in near if contrary(asked, one.words)}
    for cosine, spelling in near:
        if spelling.value in contraries or apart(asked, spelling.words):
            continue
        found = _likeness(table, asked, spelling=spelling, cosine=cosine)
        if spelling.value not in best or best[spelling.value].score < found.score:
            best[spelling.value] = found
    ranked = sorted(best.values(), key=lambda one: (-one.score, one.value))
    return tuple(
        Candidate(value=one.value, confidence=round(_confidence(ranked, place), 4))
        for place, one in enumerate(ranked[:CANDIDATES_MAX])
    )


def _likeness(
    table: _Table, asked: tuple[str, ...], *, spelling: _Spelling, cosine: float
) -> _Likeness:
    there, of_asked = _covered(asked, spelling.words, table=table)
    back, of_own = _covered(spelling.words, asked, table=table)
    paired = (there * of_asked + back * of_own) / (there + back)
    return _Likeness(
        value=spelling.value, score=(cosine + paired) / 2, of_asked=of_asked, of_own=of_own
    )


def _confidence(ranked: list[_Likeness], place: int) -> float:
    """The score, lowered where another value is almost as near, or fits what was asked as well."""
    one, first = ranked[place], ranked[0]
    lead = first.score - ranked[1].score if len(ranked) > 1 else CLEAR_LEAD
    clear = min(1.0, lead / CLEAR_LEAD) if place == 0 and not _half_said(ranked) else 0.0
    return min(1.0, one.score) * (TIE_FACTOR + (1 - TIE_FACTOR) * clear)


def _half_said(ranked: list[_Likeness]) -> bool:
    """Was just that left out which tells two values apart (`lost_or_stolen`: card or phone)?"""
    first = ranked[0]
    if first.of_own >= WHOLE:
        return False
    return any(rival.of_asked >= first.of_asked - AS_WELL for rival in ranked[1:])


def _short_list(table: _Table, grams: Weights) -> list[tuple[float, _Spelling]]:
    """Those with most of the rarest n-grams in common, each with its whole cosine.

    The rarest are looked up first, until so many spellings were touched: what is common to half of
    a domain tells nothing and costs most.
    """
    dots: dict[int, float] = {}
    touched = 0
    for gram in sorted(grams, key=lambda gram: (len(table.postings.get(gram, ())), gram)):
        indexes = table.postings.get(gram, ())
        touched += len(indexes)
        if touched > TOUCHED_MAX and dots:
            break
        for index in indexes:
            shared = grams[gram] * table.spellings[index].grams[gram]
            dots[index] = dots.get(index, 0.0) + shared
    nearest = sorted(dots, key=lambda index: (-dots[index], index))[:SHORT_LIST]
    found = [table.spellings[index] for index in nearest]
    return [(_cosine(grams, spelling.grams), spelling) for spelling in found]


def _cosine(one: Weights, other: Weights) -> float:
    return sum(weight * other.get(gram, 0.0) for gram, weight in one.items())


def _built(domain: Domain) -> _Table:
    split = [(value, words(spelling)) for spelling, value in domain.spellings()]
    counts: dict[str, int] = {}
    word_counts: dict[str, int] = {}
    for _, parts in split:
        for gram in _grams(parts):
            counts[gram] = counts.get(gram, 0) + 1
        for word in set(parts):
            word_counts[word] = word_counts.get(word, 0) + 1
    total = len(split)
    weights = {gram: _rarity(total, count) for gram, count in counts.items()}
    spellings = tuple(
        _Spelling(
            value=value,
            words=parts,
            grams=_weighted(_grams(parts), weights, unknown=0.0),
        )
        for value, parts in split
    )
    postings: dict[str, list[int]] = {}
    for index, spelling in enumerate(spellings):
        for gram in spelling.grams:
            postings.setdefault(gram, []).append(index)
    return _Table(
        spellings=spellings,
        postings={gram: tuple(found) for gram, found in postings.items()},
        gram_weights=weights,
        word_weights={word: _rarity(total, count) for word, count in word_counts.items()},
        unknown_gram=_rarity(total, 1),
        unknown_word=_rarity(total, 1),
    )


def _rarity(total: int, count: int) -> float:
    """Inverse document frequency, smoothed so that a word of every spelling still weighs a bit."""
    return math.log(1.0 + total / count)


def _grams(parts: Iterable[str]) -> dict[str, int]:
    """The n-grams of each word with its ends marked, and how often each occurs."""
    found: dict[str, int] = {}
    for part in parts:
        marked = f"^{part}$"
        for size in GRAM_SIZES:
            for start in range(max(1, len(marked) - size + 1)):
                gram = marked[start : start + size]
                found[gram] = found.get(gram, 0) + 1
    return found


def _weighted(grams: Mapping[str, int], weights: Weights, *, unknown: float) -> Weights:
    """Unit vector of the n-grams' weights."""
    raw = {gram: count * weights.get(gram, unknown) for gram, count in grams.items()}
    length = math.sqrt(sum(weight * weight for weight in raw.values()))
    return {gram: weight / length for gram, weight in raw.items()} if length else {}


def _covered(
    words_of: tuple[str, ...], others: tuple[str, ...], *, table: _Table
) -> tuple[float, float]:
    """(weight of these words, share of it that has a partner among the others)."""
    matched = total = 0.0
    for word in words_of:
        weight = table.word_weights.get(word, table.unknown_word)
        total += weight
        matched += weight * max(_alike(word, partner) for partner in others)
    return total, matched / total


@lru_cache(PAIRS_KEPT)
def _alike(one: str, other: str) -> float:
    """1 for equal words, less for each edit, 0 where they are no longer the same word."""
    if one == other:
        return 1.0
    longest = max(len(one), len(other))
    if min(len(one), len(other)) < longest * WORD_ALIKE or _pairs(one).isdisjoint(_pairs(other)):
        return 0.0
    likeness = 1.0 - _edits(one, other) / longest
    return likeness if likeness >= WORD_ALIKE else 0.0


@lru_cache(PAIRS_KEPT)
def _pairs(word: str) -> frozenset[str]:
    """Neighbouring letters, with the ends marked: two words without one in common are apart."""
    marked = f"^{word}$"
    return frozenset(marked[at : at + 2] for at in range(len(marked) - 1))


def _edits(one: str, other: str) -> int:
    """Insertions, deletions, replacements and swaps of neighbours between two words."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, a in enumerate(one, 1):
        two_before, before, row = before, row, [i]
        for j, b in enumerate(other, 1):
            cost = min(before[j] + 1, row[-1] + 1, before[j - 1] + (a != b))
            if i > 1 and j > 1 and a == other[j - 2] and one[i - 2] == b:
                cost = min(cost, two_before[j - 2] + 1)
            row.append(cost)
    return row[-1]
