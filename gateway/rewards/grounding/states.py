"""Statuses, flags, names, codes and denials: the parts of a sentence that are no numbers.

A word is held against a fact only if both are known to exclude each other, or the fact's own word
is denied. What the guard does not know stays open.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from gateway.rewards.grounding import words
from gateway.rewards.grounding.dates import MONTHS, WEEKDAYS, When, in_utc
from gateway.rewards.grounding.facts import Fact, Kind
from gateway.rewards.grounding.findings import Finding, against, open_, stands, told
from gateway.rewards.grounding.mentions import LOOKED_BACK, Code, Moment
from gateway.rewards.grounding.units import CURRENCIES, unit_of

_WORD: Final = re.compile(r"[^\W\d_]+(?:[_'\u2019-][^\W\d_]+)*")
_TITLE: Final = re.compile(r"\b(?:Dr|Mr|Mrs|Ms|Prof|St)\.$")
_ANSWER: Final = re.compile(r"(?:[:=]|\b(?:is|are|was|were|turned|switched))\s*$", re.IGNORECASE)
"""Before a `no` or an `off` that answers: `contactless: no`, `contactless is off`."""
_YES: Final = frozenset(["yes", "true", "on"])
_NO: Final = frozenset(["no", "false", "off"])
_NOT_ONLY: Final = re.compile(r"\bnot only\b", re.IGNORECASE)
_NEAR: Final = 4
"""Words between a denial and what it denies: `is not yet fully active`."""


def denied(text: str, start: int) -> bool:
    """Is there a denial in the same clause, shortly before `start`?"""
    before = words.CLAUSES.split(text[max(0, start - LOOKED_BACK) : start])[-1]
    found = list(words.DENIAL.finditer(before))
    if not found or _NOT_ONLY.search(before):
        return False
    return len(before[found[-1].end() :].split()) < _NEAR


def clause_denied(text: str, start: int) -> bool:
    """Does a verb before `start`, in its clause, deny what follows (`does not hold 5 GBP`)?"""
    return _has_denial(words.CLAUSES.split(text[:start])[-1])


def denied_after(text: str, start: int) -> bool:
    """Does the rest of the clause deny something: perhaps this, perhaps another thing?"""
    return _has_denial(words.CLAUSES.split(text[start:])[0])


def _has_denial(clause: str) -> bool:
    return words.DENIAL.search(clause) is not None and not _NOT_ONLY.search(clause)


def word_findings(text: str, facts: Sequence[Fact]) -> Iterator[Finding]:
    """Words of a few, as statuses are: said, denied, or replaced by one that excludes them."""
    own = [fact for fact in facts if fact.kind in (Kind.WORD, Kind.NAME)]
    if not own:
        return
    counted = Counter(words.plain(fact.text) for fact in own)
    places = {word: _places(text, word) for word in counted}
    accounted = {word for word, found in places.items() if 0 < len(found) <= counted[word]}
    said = [(found[0].lower(), found.start()) for found in _WORD.finditer(text)]
    known = {word for fact in facts for word in words.said_words(fact.text)}
    for fact in own:
        word = words.plain(fact.text)
        if places[word]:
            yield _said_or_denied(text, fact, places=places[word], own=own)
        else:
            yield from _instead(text, fact, said=said, accounted=accounted, known=known)
    yield from _foreign_status(text, said, own=own)


def _said_or_denied(text: str, fact: Fact, *, places: list[int], own: Sequence[Fact]) -> Finding:
    """Said at least once for each fact that it is the word of."""
    start = places[0]
    said = [place for place in places if not denied(text, place)]
    same = {one.name for one in own if words.plain(one.text) == words.plain(fact.text)}
    if len(said) < min(len(same), len(places)):
        return against(f"the text denies it, but {told(fact)}", start)
    other = rival(text, places, fact=fact, facts=own)
    if other is not None:
        return against(f"the text gives {fact.text} as {other.name!r}, but {told(other)}", start)
    return stands(told(fact), start)


def _is_aside(text: str, start: int) -> bool:
    """The word is wished, feared or to come, or part of what is counted (`no failed checks`)."""
    before = text[max(0, start - LOOKED_BACK) : start]
    if words.SUPPOSED.search(before) or re.search(r"\d\s*$", before):
        return True
    return any(m.start() <= start < m.end() for m in words.NONE_OF.finditer(text))


def _foreign_status(
    text: str, said: list[tuple[str, int]], *, own: Sequence[Fact]
) -> Iterator[Finding]:
    """A status that no source gives, beside those that they give."""
    known = [words.plain(fact.text) for fact in own]
    for word, start in said:
        is_status = len(word) > 4 and not any(words.alike(word, one) for one in known)
        excluded = next(
            (f for f, one in zip(own, known, strict=True) if words.opposed(one, word)), None
        )
        if not is_status or excluded is None:
            continue
        if not denied(text, start) and not _is_aside(text, start):
            yield against(f"the text says {word}, but {told(excluded)}", start)
            return


def rival(text: str, places: Sequence[int], *, fact: Fact, facts: Sequence[Fact]) -> Fact | None:
    """Another fact of the kind whose name stands right before each place: `it was FROZEN`."""
    for other in facts:
        if other.kind is not fact.kind or other.text == fact.text or other.name == fact.name:
            continue
        if places and all(_cued(text[:place], other, fact=fact) for place in places):
            return other
    return None


def _cued(before: str, other: Fact, *, fact: Fact) -> bool:
    """The word before, or a role shortly before, is of the other's name and not of this one's."""
    near = words.said_words(words.CLAUSES.split(before)[-1])[-2:]
    roles = {word for word in near if word in words.ROLES}
    named = {word for word in near[-1:] if word not in words.GENERAL}
    return any(word in other.words and word not in fact.words for word in roles | named)


def _instead(
    text: str,
    fact: Fact,
    *,
    said: list[tuple[str, int]],
    accounted: set[str],
    known: set[str],
) -> Iterator[Finding]:
    """The fact's word is not there: one that means it, or one that excludes it, may be."""
    own = words.plain(fact.text)
    for word, start in said:
        alike = words.is_known(own) and words.alike(own, word)
        if not (alike or words.opposed(own, word)) or word in accounted or word in fact.words:
            continue
        if _is_aside(text, start):
            continue
        if denied(text, start) is alike:
            said_so = "the text denies it" if alike else f"the text says {word}"
            yield against(f"{said_so}, but {told(fact)}", start)
        else:
            yield stands(told(fact), start)
        return
    foreign = _foreign(text, fact, accounted=accounted, known=known)
    part = _part_of_name(text, fact)
    if part and not foreign:
        yield stands(told(fact), text.find(part))
    elif foreign:
        yield against(f"the text says {foreign}, but {told(fact)}")
    elif fact.is_value:
        yield open_(f"the text does not say {fact.text} in words that are known here")


def _foreign(text: str, fact: Fact, *, accounted: set[str], known: set[str]) -> str:
    """A word written as the fact's is (all capitals, or as a name) that no fact explains."""
    for found in _WORD.finditer(text):
        word = found[0]
        if words.plain(word) in accounted or word in CURRENCIES or len(word) < 3:
            continue
        if fact.kind is Kind.WORD and fact.text.isupper() and word.isupper() and len(word) > 3:
            return word
        if word.lower() in known:
            continue
        before = text[: found.start()].rstrip()
        starts = not before or (before[-1] in ".!?:" and not _TITLE.search(before))
        is_name = word[0].isupper() and word[1:].islower() and not starts
        if fact.kind is Kind.NAME and is_name and not _everyday(word):
            return word
    return ""


def _part_of_name(text: str, fact: Fact) -> str:
    """`Ms. Lopez` for Maria Lopez: a word of the name, written as a name."""
    if fact.kind is not Kind.NAME:
        return ""
    parts = (part for part in _WORD.findall(fact.text) if len(part) > 3)
    return next((part for part in parts if re.search(rf"\b{re.escape(part)}\b", text)), "")


def _everyday(word: str) -> bool:
    low = word.lower()
    return low in MONTHS or low in WEEKDAYS or unit_of(word) is not None or words.is_known(low)


def flag_findings(text: str, facts: Sequence[Fact]) -> Iterator[Finding]:
    """Yes and no: `contactless: yes`, `the card is not blocked`."""
    flags = [fact for fact in facts if fact.kind is Kind.FLAG]
    for fact in flags:
        polarity = _polarity(text, fact, alone=len(flags) == 1)
        if polarity is None:
            if fact.is_value:
                yield open_(f"the text does not say in known words that {told(fact)}")
        elif polarity is (fact.text == "yes"):
            yield stands(told(fact))
        else:
            yield against(f"the text says {'yes' if polarity else 'no'}, but {told(fact)}")


def _polarity(text: str, fact: Fact, *, alone: bool) -> bool | None:
    """What the sentence says of this flag; None if it says nothing that is known."""
    names = [word for word in fact.words if word not in words.GENERAL]
    said = [(found[0].lower(), found.start()) for found in _WORD.finditer(text)]
    named = [start for word, start in said if any(words.same_stem(word, n) for n in names)]
    decided = [
        found[0].lower()
        for found in _WORD.finditer(text)
        if found[0].lower() in _YES | _NO and (_answers(text, found) or len(said) == 1)
    ]
    for word, start in said:
        if any(words.opposed(word, name) for name in names) and not named:
            return denied(text, start)
        if any(words.is_known(name) and words.alike(word, name) for name in names) and not named:
            return not denied(text, start)
    if named:
        return _of_named(*_clause(text, named[0]))
    if alone and decided:
        return decided[0] in _YES
    return None


def _answers(text: str, found: re.Match[str]) -> bool:
    """A `no` that is the whole answer: `contactless: no`, not `there are no fees`."""
    ends = re.match(r"\s*(?:[.,;!?]|$)", text[found.end() :])
    return ends is not None and _ANSWER.search(text[: found.start()]) is not None


def _clause(text: str, place: int) -> tuple[str, int]:
    """The clause that stands at a place, and where the place is in it; `a: no` is one clause."""
    start = max((m.end() for m in words.CLAUSES.finditer(text[:place])), default=0)
    ends = (m.start() + place for m in words.CLAUSES.finditer(text[place:]) if m[0] != ":")
    return text[start : next(ends, len(text))], place - start


def _of_named(clause: str, place: int) -> bool | None:
    """The thing is named: no, off, disabled, without or a denial near it turn it round."""
    if any(m.start() <= place < m.end() for m in words.NONE_OF.finditer(clause)):
        return False
    for found in _WORD.finditer(clause):
        word, start = found[0].lower(), found.start()
        if word in _NO and _answers(clause, found):
            return False
        if start != place and words.opposed(word, "enabled"):
            return denied(clause, start)
        if start != place and words.alike(word, "enabled"):
            return not denied(clause, start)
    if denied(clause, place):
        return False
    return None if words.DENIAL.search(clause) else True


def code_findings(text: str, codes: Iterable[Code], *, facts: Sequence[Fact]) -> Iterator[Finding]:
    """Ids are exact; the visible end of one is enough where the sentence shows only that."""
    known = [fact for fact in facts if fact.kind in (Kind.CODE, Kind.TEXT, Kind.WORD, Kind.NAME)]
    codes = tuple(codes)
    accounted = {id(f) for f in known for code in codes if _is_code(code, f)}
    for code in codes:
        same = next((fact for fact in known if _is_code(code, fact)), None)
        if same is not None:
            yield _in_its_role(text, code.start, fact=same, facts=known, shown=code.shown)
            continue
        other = next((f for f in known if id(f) not in accounted and _of_kind(code, f)), None)
        if other is not None:
            yield against(f"the text says {code.shown}, but {told(other)}", code.start)
        else:
            yield open_(f"no source named says {code.shown}", code.start)


def _in_its_role(
    text: str, start: int, *, fact: Fact, facts: Sequence[Fact], shown: str
) -> Finding:
    """What is said is a source's, unless the sentence gives it as another one."""
    other = rival(text, [start], fact=fact, facts=facts)
    if other is None:
        return stands(told(fact), start)
    return against(f"the text gives {shown} as {other.name!r}, but {told(other)}", start)


def in_its_role(text: str, start: int, *, fact: Fact, facts: Sequence[Fact]) -> Finding:
    """The same for a number."""
    return _in_its_role(text, start, fact=fact, facts=facts, shown=fact.text)


def _is_code(code: Code, fact: Fact) -> bool:
    own, said = fact.text.casefold(), code.core.casefold()
    if fact.kind is Kind.CODE:
        return own == said or (code.partial and own.endswith(said))
    return re.search(rf"(?<!\w){re.escape(said)}(?!\w)", own) is not None


def _of_kind(code: Code, fact: Fact) -> bool:
    if fact.kind is not Kind.CODE:
        return False
    shape, other = (re.sub(r"\d+", "9", text.casefold()) for text in (code.core, fact.text))
    return code.partial or shape == other or not fact.text.isdigit()


def moment_findings(
    text: str, moments: Iterable[Moment], *, facts: Sequence[Fact]
) -> Iterator[Finding]:
    """Dates and times, each against every source that is one."""
    known = [fact for fact in facts if fact.moment is not None]
    inside = [one for fact in facts for moment in fact.inside.moments for one in moment.readings]
    for said in moments:
        agreeing = [f for f in known if f.moment and _agrees(said, f.moment)]
        if agreeing:
            yield _in_its_role(text, said.start, fact=agreeing[0], facts=known, shown=said.shown)
        elif any(mine.agrees(theirs) for mine in said.readings for theirs in inside):
            yield stands(f"a source says {said.shown}", said.start)
        elif not said.readings:
            yield against(f"there is no such day as {said.shown}", said.start)
        elif known and any(_same_parts(said, fact) for fact in known):
            other = next(fact for fact in known if _same_parts(said, fact))
            yield against(f"the text says {said.shown}, but {told(other)}", said.start)
        else:
            yield open_(f"no source named says {said.shown}", said.start)


def _agrees(said: Moment, moment: When) -> bool:
    """In the source's own zone, or in UTC: a sentence seldom says which it means."""
    meant = (moment, in_utc(moment))
    return any(reading.agrees(one) for reading in said.readings for one in meant)


def _same_parts(said: Moment, fact: Fact) -> bool:
    """Both are dates, or both have a time of day."""
    assert fact.moment is not None
    mine, theirs = said.readings[0], fact.moment
    if mine.has_date:
        return theirs.has_date
    return theirs.minute_of_day is not None


def _places(text: str, wanted: str) -> list[int]:
    """Where the words of `wanted` stand in the text, whatever joins them."""
    parts = [re.escape(part) for part in re.split(r"[\s_\-]+", wanted.strip()) if part]
    if not parts:
        return []
    pattern = r"(?<!\w)" + r"[\s_\-]+".join(parts) + r"(?!\w)"
    return [found.start() for found in re.finditer(pattern, text, re.IGNORECASE)]
