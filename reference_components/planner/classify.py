"""Which of BANKING77's 77 intents a question is about: hand-written keyword rules, nothing
learned.

`words.csv` maps ways of saying a thing to one CONCEPT; `rules.csv` says which words and concepts
point to an intent. A rule holds when each of its groups is in the text (`a|b` any of them, `a` any
word that begins with it, `a=` that word, `!a|b` none of them). An intent's score is its best rule,
which counts by how much it demands, plus a little for its others. README.md has the measured
accuracy.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

OTHER_RULES_WEIGHT = 0.25
"""Of further rules of the same intent that hold; measured on the training set, flat around here."""
DEMAND_EXPONENT = 1.3
"""A rule of n groups counts n ** 1.3: one that demands more is surer."""

DOUBT = 1.0
"""As if a rule of one group always spoke for another intent: a lone weak hint is not certainty."""

_WORD = re.compile(r"[A-Z]{2,}|[a-z0-9$£€']+")


@dataclass(frozen=True, slots=True)
class Term:
    """One alternative of a group: a prefix, or with `exact` a whole word."""

    text: str
    exact: bool

    def holds(self, words: frozenset[str]) -> bool:
        if self.exact:
            return self.text in words
        return any(word.startswith(self.text) for word in words)


@dataclass(frozen=True, slots=True)
class Rule:
    intent: str
    wanted: tuple[tuple[Term, ...], ...]
    excluded: tuple[Term, ...]
    points: float

    def holds(self, words: frozenset[str]) -> bool:
        return all(any(term.holds(words) for term in group) for group in self.wanted) and not any(
            term.holds(words) for term in self.excluded
        )


@dataclass(frozen=True, slots=True)
class Guess:
    """The best intent, and how sure: its share of its own score, the second's, and DOUBT."""

    intent: str
    confidence: float


def classify(text: str) -> Guess | None:
    """The intent of a question, or None when no rule holds."""
    words = words_of(text)
    scores: dict[str, list[float]] = {}
    for rule in rules():
        if rule.holds(words):
            scores.setdefault(rule.intent, []).append(rule.points)
    totals = {intent: _total(points) for intent, points in scores.items()}
    ranked = sorted(totals.items(), key=lambda item: -item[1])
    if not ranked:
        return None
    second = ranked[1][1] if len(ranked) > 1 else 0.0
    best = ranked[0][1]
    return Guess(ranked[0][0], best / (best + second + DOUBT))


def words_of(text: str) -> frozenset[str]:
    """The words of a text with concepts in place of, and beside, the words that say them."""
    lowered = text.lower().replace("\u2019", "'")
    found = set(_WORD.findall(lowered))
    for concept, pattern in _concepts():
        if pattern.search(lowered):
            found.add(concept)
    return frozenset(found)


def _total(points: list[float]) -> float:
    best = max(points)
    return best + OTHER_RULES_WEIGHT * (sum(points) - best)


@cache
def _concepts() -> tuple[tuple[str, re.Pattern[str]], ...]:
    return tuple((row["concept"], re.compile(row["patterns"])) for row in _table("words.csv"))


@cache
def rules() -> tuple[Rule, ...]:
    """The table, read once."""
    return tuple(_rule(row["intent"], row["rule"]) for row in _table("rules.csv"))


def _rule(intent: str, text: str) -> Rule:
    groups = text.split()
    wanted = tuple(_terms(group) for group in groups if not group.startswith("!"))
    excluded = tuple(
        term for group in groups if group.startswith("!") for term in _terms(group[1:])
    )
    return Rule(intent, wanted, excluded, len(wanted) ** DEMAND_EXPONENT)


def _terms(group: str) -> tuple[Term, ...]:
    return tuple(Term(text.removesuffix("="), text.endswith("=")) for text in group.split("|"))


def _table(name: str) -> Iterable[dict[str, str]]:
    text = (files("reference_components.planner") / name).read_text(encoding="utf-8")
    lines = text.splitlines()
    header = lines[0].split(",", 1)
    # The second column is the rest of the line: patterns and rules may hold commas.
    return (dict(zip(header, line.split(",", 1), strict=True)) for line in lines[1:] if line)
