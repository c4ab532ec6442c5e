"""What a comment says, by words and phrases: tags, and corrections (what was wrong, what is right).

The default reader, without any model. It is honest about its limits: a comment in which it knows
nothing is NOT_JUDGED with the reason, never neutral and never a 0. A negated word gives no tag.
Pure, and linear in the length of what it reads.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from typing import Final

from acp_spec.model.reward_vector import CommentReading, Correction, Validity
from gateway.rewards.comment_words import (
    LANGUAGES,
    NEGATIONS,
    RIGHT_THEN_WRONG,
    SHOULD_BE,
    WORDS,
    WRONG_THEN_RIGHT,
)

BY_RULES: Final = "rules"
READ_CHARACTERS: Final = 4_000
"""Two pages; a comment may hold a megabyte, and its point stands in its beginning."""
CORRECTIONS_MAX: Final = 10
NOTHING_KNOWN: Final = f"no word that is known here ({', '.join(LANGUAGES)})"

_NUMBER: Final = r"[-+]?[€$£]?\d[\d.,'\u2019]{0,20}(?:\s?(?:%|€|\$|£|EUR|USD|GBP|CHF))?"
_VALUE: Final = rf"\"[^\"\n]{{1,80}}\"|«[^»\n]{{1,80}}»|„[^“\n]{{1,80}}“|{_NUMBER}|\w[\w-]{{0,39}}"


def _either(words: Iterable[str]) -> str:
    return "|".join(re.escape(word) for word in sorted(words, key=lambda word: (-len(word), word)))


_NEGATED: Final = re.compile(
    rf"(?:\b|n')(?:{_either(NEGATIONS)})\W+(?:\w+\W+)?$|n't\W+(?:\w+\W+)?$"
)
_LOOK_BACK: Final = 40
_STEMS: Final = {tag: re.compile(rf"\b(?:{_either(stems)})") for tag, stems in WORDS.items()}
_RIGHT_WRONG: Final = re.compile(
    rf"(?P<right>{_VALUE})\s+(?:{_either(RIGHT_THEN_WRONG)})\s+(?P<wrong>{_VALUE})", re.IGNORECASE
)
_WRONG_RIGHT: Final = tuple(
    re.compile(rf"\b{no}\s+(?P<wrong>{_VALUE}),?\s+{but}\s+(?P<right>{_VALUE})", re.IGNORECASE)
    for no, but in WRONG_THEN_RIGHT
)
_RIGHT: Final = re.compile(rf"\b(?:{_either(SHOULD_BE)})\s+(?P<right>{_VALUE})", re.IGNORECASE)


def read(comment: str, *, feedback_id: str) -> CommentReading:
    """What it says; NOT_JUDGED where nothing in it is known."""
    text = unicodedata.normalize("NFKC", comment[:READ_CHARACTERS])
    tags = tuple(_tags(text.casefold()))
    corrections = tuple(dict.fromkeys(_corrections(text)))[:CORRECTIONS_MAX]
    known = bool(tags or corrections)
    return CommentReading(
        feedback_id=feedback_id,
        tags=tags,
        corrections=corrections,
        validity=Validity.VALID if known else Validity.NOT_JUDGED,
        reason="" if known else NOTHING_KNOWN,
        by=BY_RULES,
    )


def _tags(text: str) -> Iterator[str]:
    for tag, stems in _STEMS.items():
        for found in stems.finditer(text):
            before = text[max(0, found.start() - _LOOK_BACK) : found.start()]
            if tag == "NOT_ASKED" or not _NEGATED.search(before):
                yield tag
                break


def _corrections(text: str) -> Iterator[Correction]:
    """Each with the text as the author wrote it, without quotes."""
    for pattern in (_RIGHT_WRONG, *_WRONG_RIGHT):
        for found in pattern.finditer(text):
            yield Correction(wrong=_bare(found["wrong"]), right=_bare(found["right"]))
    known = {found.start("right") for found in _RIGHT_WRONG.finditer(text)}
    for found in _RIGHT.finditer(text):
        if found.start("right") not in known:
            yield Correction(right=_bare(found["right"]))


def _bare(value: str) -> str:
    return value.strip('"«»„“ .,')
