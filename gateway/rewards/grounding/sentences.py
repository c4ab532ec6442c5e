"""A claim's sentence against the facts: each thing it mentions, and what it denies.

A number that no source gives is held against the claim only if a source of its kind stands there
unmentioned: then that source was meant, and says otherwise. Else nobody said it, and it stays open.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from itertools import pairwise
from typing import Final

from gateway.rewards.grounding import states, words
from gateway.rewards.grounding.facts import Fact, Kind
from gateway.rewards.grounding.figures import Fit, fit, wrong_unit
from gateway.rewards.grounding.findings import (
    Finding,
    Standing,
    against,
    open_,
    stands,
    told,
)
from gateway.rewards.grounding.mentions import Mentions, Quantity, mentions_of
from gateway.rewards.grounding.numerals import Reading
from gateway.rewards.grounding.totals import totals
from gateway.rewards.grounding.units import CURRENCIES, Dimension, same_currency

OVERLAP_MIN: Final = 0.8
"""Share of a sentence's words that a text must have for the sentence to be its own."""
INSIDE_MAX: Final = 30
"""Figures looked at within texts, all sources of a claim together."""

_OVERDRAWN: Final = re.compile(r"\b(?:overdrawn|in the red|minus|negative)\b", re.IGNORECASE)
_CODE_WORD: Final = re.compile(r"(?<![\w-])[A-Z]{3}(?![\w-])")
_TURNS_ON_TIME: Final = re.compile(r"\b(?:before|until|later than|earlier than)\s*$", re.IGNORECASE)
"""`not before 3 May` denies nothing about 3 May."""
_WILL_NOT: Final = re.compile(
    r"\b(?:will|would|can|could|may|might|shall|should|must)(?:\s+not|n['\u2019]t)\b"
    r"|\bcannot\b|\bwon['\u2019]t\b|(?:^|[.;!?:,]\s*)(?:please )?(?:do not|don['\u2019]t|never)\b",
    re.IGNORECASE,
)
"""It denies what may come, or tells somebody what not to do: no source says that of now."""
_RECKONED: Final = re.compile(
    r"\b(?:would|could|should|might|(?-i:may)|if|per|each|every|unless|once)\b", re.IGNORECASE
)
"""The sentence reckons on from what the sources say: another number is no contradiction. `May` is
a month."""
_ASIDE: Final = re.compile(r"\s*(?:past|to|quarters?|halves|thirds?|of)\b", re.IGNORECASE)
"""Behind a number in words: `five minutes past`, `three quarters`, `two of them`."""
_COST_WORDS: Final = "fee fees charge charges cost costs price due amount"
_COSTS: Final = frozenset(_COST_WORDS.split())


def sentence_findings(text: str, facts: Sequence[Fact]) -> Iterator[Finding]:
    """Every finding of a sentence."""
    said = mentions_of(text)
    worded = [*states.word_findings(text, facts), *states.flag_findings(text, facts)]
    emptied = list(_emptied(text, facts))
    mentioned = [
        *_quantities(text, said, facts=facts),
        *_trends(text, said),
        *_moments(text, said, facts=facts),
        *states.code_findings(text, said.codes, facts=facts),
        *_currencies(text, said, facts=facts),
    ]
    denials_known = _denials_known(text, worded)
    found = [*worded, *emptied]
    for finding in mentioned:
        found.append(finding if denials_known else _unless_denied(text, finding, said=said))
    if not found:
        found += _overlap(text, facts)
    yield from found


def _moments(text: str, said: Mentions, *, facts: Sequence[Fact]) -> Iterator[Finding]:
    """Another date than a source's may be one that the sentence reckons with or forbids."""
    declared = any(fact.is_value and fact.moment for fact in facts)
    loose = not declared and (_RECKONED.search(text) or _WILL_NOT.search(text))
    for finding in states.moment_findings(text, said.moments, facts=facts):
        if loose and finding.standing is Standing.AGAINST:
            yield open_(f"it may be another date: {finding.reason}", finding.start)
        else:
            yield finding


def _denials_known(text: str, worded: Sequence[Finding]) -> bool:
    """A status or a flag explains the denial in the sentence."""
    return any(
        one.standing is Standing.STANDS and (one.start < 0 or states.denied(text, one.start))
        for one in worded
    )


def _unless_denied(text: str, finding: Finding, *, said: Mentions) -> Finding:
    """What stands in a sentence that denies it does not stand."""
    if finding.standing is not Standing.STANDS or finding.start < 0:
        return finding
    if any(one.start == finding.start and one.turned for one in said.quantities):
        return finding
    if _TURNS_ON_TIME.search(text[: finding.start]):
        return finding
    if states.clause_denied(text, finding.start):
        if any(code.start == finding.start for code in said.codes) or _WILL_NOT.search(text):
            return open_("what it denies is not what a source named tells", finding.start)
        return against(f"the text denies it, but {finding.reason}", finding.start)
    if states.denied_after(text, finding.start):
        return open_("it denies something that no source named tells", finding.start)
    return finding


# ---- numbers ---------------------------------------------------------------------------------


def _quantities(text: str, said: Mentions, *, facts: Sequence[Fact]) -> Iterator[Finding]:
    own = [*facts, *totals(facts, text)]
    fits = {
        (i, k): fit(one, fact, minus=_minus(text, one))
        for i, one in enumerate(said.quantities)
        for k, fact in enumerate(own)
    }
    within = _within_texts(facts)
    accounted = {k for (_, k), found in fits.items() if found is Fit.SAME}
    for i, one in enumerate(said.quantities):
        best = max((fits[i, k] for k in range(len(own))), default=Fit.UNLIKE)
        if best is Fit.SAME:
            same = [own[k] for k in range(len(own)) if fits[i, k] is Fit.SAME]
            yield _matched(text, one, same=same, facts=facts)
            continue
        dated = _dated(one, facts)
        if dated is not None:
            yield dated
            continue
        if (
            one.worded
            or (one.shown[0].isalpha() and _ASIDE.match(text[one.end :]))
            or any(_holds_word(fact, one.shown) for fact in facts)
        ):
            continue
        written = _written(one, within)
        if written is not None:
            yield written
            continue
        left = [own[k] for k in range(len(facts)) if k not in accounted and fits[i, k] > Fit.UNLIKE]
        yield _unmatched(text, one, best=best, left=left, facts=facts)


def _trends(text: str, said: Mentions) -> Iterator[Finding]:
    """`fell from 90 to 120` contradicts itself, whoever said the numbers."""
    for first, second in pairwise(said.quantities):
        before = text[: first.start].rstrip()
        if text[first.end : second.start].strip() != "to" or not before.endswith("from"):
            continue
        change = second.readings[0].value - first.readings[0].value
        fell, rose = words.FELL.search(before), words.ROSE.search(before)
        if (fell and not rose and change > 0) or (rose and not fell and change < 0):
            told_so = f"{first.shown} to {second.shown}"
            yield against(f"the sources say {told_so}, which is the other way", first.start)


def _within_texts(facts: Sequence[Fact]) -> list[tuple[Fact, Fact]]:
    """The figures within texts, each as a fact of its own, with the text that holds it."""
    found = [
        (replace(fact, kind=Kind.NUMBER, number=said.readings[0].value, unit=said.unit), fact)
        for fact in facts
        for said in fact.inside.quantities
    ]
    return found[:INSIDE_MAX]


def _written(one: Quantity, within: Sequence[tuple[Fact, Fact]]) -> Finding | None:
    """A number within a text: said there as well, or the only one of its unit, and another."""
    fits = [
        (fit(one, figure), text)
        for figure, text in within
        if (one.unit is None) is (figure.unit is None)
    ]
    alike = [(found, text) for found, text in fits if found is not Fit.UNLIKE]
    same = next((text for found, text in alike if found is Fit.SAME), None)
    if same is not None:
        return stands(told(same), one.start)
    if len(alike) == 1 and one.unit is not None:
        return against(f"the text says {one.shown}, but {told(alike[0][1])}", one.start)
    return None


def _matched(text: str, one: Quantity, *, same: list[Fact], facts: Sequence[Fact]) -> Finding:
    """The number is a source's; it must be the one that the sentence is about."""
    if _OVERDRAWN.search(text) and not one.signed:
        positive = [fact for fact in same if fact.number is not None and fact.number > 0]
        if positive and len(positive) == len(same) and not _is_debt(positive[0]):
            return against(f"the text calls it negative, but {told(positive[0])}", one.start)
    found = [states.in_its_role(text, one.start, fact=fact, facts=facts) for fact in same]
    return next((f for f in found if f.standing is Standing.STANDS), found[0])


def _unmatched(
    text: str, one: Quantity, *, best: Fit, left: list[Fact], facts: Sequence[Fact]
) -> Finding:
    meant = [fact for fact in left if _is_meant(text, one, fact=fact, facts=facts)]
    if not _meant_as_value(meant) and _is_reckoned(text, one, facts=facts):
        return open_(f"{one.shown} may be reckoned from the sources", one.start)
    if one.compound:
        return open_(f"{one.shown} has a unit that is not known here", one.start)
    if best is Fit.COARSE:
        return open_(f"{one.shown} is rounded coarsely or vaguely", one.start)
    if meant:
        meant.sort(key=lambda fact: not fact.is_value)
        return against(f"the text says {one.shown}, but {told(meant[0])}", one.start)
    wrong = next(
        (f for f in facts if f.kind is Kind.NUMBER and wrong_unit(one, f) and f.unit), None
    )
    if wrong is not None and best is Fit.DIFFERENT:
        return against(f"the text says {one.shown}, in another unit than {told(wrong)}", one.start)
    return open_(f"no source named says {one.shown}", one.start)


def _is_reckoned(text: str, one: Quantity, *, facts: Sequence[Fact]) -> bool:
    """By the sentence's own words, as the rest of a hundred, or as a sum or difference."""
    if _RECKONED.search(text):
        return True
    if any(fit(one, total) is Fit.SAME for total in totals(facts)):
        return True
    is_share = one.unit is not None and one.unit.dimension is Dimension.SHARE
    rests = (Decimal(100) - reading.value for reading in one.readings)
    rest = replace(one, readings=tuple(Reading(value, Decimal(1)) for value in rests))
    return is_share and any(fit(rest, fact) is Fit.SAME for fact in facts)


def _meant_as_value(meant: Sequence[Fact]) -> bool:
    """The claim itself declares that it is about one of these."""
    return any(fact.is_value for fact in meant)


def _is_meant(text: str, one: Quantity, *, fact: Fact, facts: Sequence[Fact]) -> bool:
    """Is this the fact that the sentence gives another number for?"""
    if fact.is_value or fact.kind is Kind.CODE:
        return True
    if (one.unit is None) is (fact.unit is None) or fact.assumed:
        return True
    numbers = [f for f in facts if f.kind is Kind.NUMBER]
    said = words.said_words(text)
    named = [word for word in fact.words if word not in words.GENERAL]
    return len(numbers) == 1 or any(words.same_stem(a, b) for a in said for b in named)


def _minus(text: str, one: Quantity) -> bool:
    return words.MINUS.search(text[max(0, one.start - 60) : one.end + 30]) is not None


def _is_debt(fact: Fact) -> bool:
    return bool({"overdraft", "debt", "due", "owed", "overdrawn", "loss"} & set(fact.words))


def _dated(one: Quantity, facts: Sequence[Fact]) -> Finding | None:
    """`2026` in a sentence about a date of that year."""
    if one.unit is not None or len(one.shown) != 4 or not one.shown.isdigit():
        return None
    year = int(one.shown)
    same = next((fact for fact in facts if fact.moment and fact.moment.year == year), None)
    return stands(told(same), one.start) if same is not None else None


def _holds_word(fact: Fact, shown: str) -> bool:
    """`two` may be a source's own word, not a number."""
    return shown.isalpha() and words.plain(shown) in words.said_words(fact.text)


# ---- money, nothing, and texts ---------------------------------------------------------------


def _currencies(text: str, said: Mentions, *, facts: Sequence[Fact]) -> Iterator[Finding]:
    """Each currency that is named must be a source's, where sources name any."""
    known = [fact for fact in facts if fact.kind is Kind.UNIT and fact.unit and fact.unit.currency]
    if not known:
        return
    named = [(one.unit.currency, one.start) for one in said.quantities if one.unit]
    named += [(m[0], m.start()) for m in _CODE_WORD.finditer(text) if m[0] in CURRENCIES]
    for currency, start in named:
        if not currency:
            continue
        same = [f for f in known if f.unit and same_currency(currency, f.unit.currency)]
        if not same:
            yield against(f"the text says {currency}, but {told(known[0])}", start)
        else:
            yield states.in_its_role(text, start, fact=same[0], facts=known)


def _emptied(text: str, facts: Sequence[Fact]) -> Iterator[Finding]:
    """`no fee`, `none`, `free of charge`: the source must be nothing, zero, or an empty list."""
    counted = [f for f in facts if f.kind in (Kind.NUMBER, Kind.LIST, Kind.NOTHING)]
    for found in words.NONE_OF.finditer(text):
        what = words.said_words(found["what"])
        if any(_named_by(what, fact) for fact in facts if fact.kind is Kind.FLAG):
            continue
        meant = [fact for fact in counted if _named_by(what, fact)]
        empty = [fact for fact in _single(counted) if not fact.number]
        yield _emptied_finding(found[0], meant or empty, start=found.start())
    for found in words.NOTHING.finditer(text):
        if any(fact.kind in (Kind.WORD, Kind.FLAG) for fact in facts):
            continue
        costs = [fact for fact in counted if _COSTS & set(fact.words)]
        yield _emptied_finding(found[0], _single(counted) or costs[:1], start=found.start())


def _emptied_finding(said: str, meant: Sequence[Fact], *, start: int) -> Finding:
    if not meant:
        return open_(f"no source named tells whether {said!r} is so", start)
    full = next((fact for fact in meant if fact.number), None)
    if full is None:
        return stands(told(meant[0]), start)
    return against(f"the text says {said!r}, but {told(full)}", start)


def _named_by(what: Sequence[str], fact: Fact) -> bool:
    named = [word for word in fact.words if word not in words.GENERAL]
    return any(words.same_stem(a, b) for a in what for b in named)


def _single(counted: Sequence[Fact]) -> list[Fact]:
    lists = [fact for fact in counted if fact.kind is Kind.LIST]
    found = lists or list(counted)
    return found if len(found) == 1 else []


def _overlap(text: str, facts: Sequence[Fact]) -> Iterator[Finding]:
    """A sentence without figures: it may be a text's own, or that text denied."""
    said = [word for word in words.said_words(text) if len(word) > 2]
    for fact in facts:
        if fact.kind is not Kind.TEXT or not said:
            continue
        there = {*words.said_words(fact.text), *fact.words, "says", "said"}
        if sum(word in there for word in said) / len(said) < OVERLAP_MIN:
            continue
        denied = [words.DENIAL.search(one) is not None for one in (text, fact.text)]
        if denied[0] is denied[1]:
            yield stands(told(fact))
        else:
            yield against(f"the text denies what a source says: {told(fact)}")
        return
