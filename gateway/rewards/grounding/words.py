"""Words whose meaning the guard knows: states and their opposites, denials, comparisons, rounding.

An axis is a row of groups of words; two words of one axis contradict each other when they stand in
different groups. A word that stands on no axis is only ever compared with itself.
"""

import re
from typing import Final

_AXES: Final = (
    (
        "active activated live valid usable unblocked unfrozen unlocked",
        "frozen blocked locked suspended deactivated inactive disabled",
        "closed cancelled canceled terminated",
        "expired lapsed invalid",
        "delivering shipped sent dispatched",
        "ordered requested",
        "lost",
        "stolen",
        "swallowed",
    ),
    (
        "succeeded successful success completed complete done finished settled",
        "failed failure unsuccessful declined refused rejected denied error",
        "pending processing queued waiting running progress outstanding unfinished",
        "cancelled canceled aborted",
        "reversed refunded",
    ),
    ("approved accepted granted authorised authorized", "declined rejected denied refused"),
    ("paid settled", "unpaid outstanding overdue due"),
    ("open opened", "closed shut"),
    ("enabled allowed available included yes true permitted possible active",
     "disabled forbidden unavailable excluded false impossible inactive"),
    ("verified confirmed", "unverified unconfirmed"),
    ("delivered arrived received", "delivering shipped dispatched transit", "returned"),
    ("physical plastic", "virtual digital", "disposable"),
    ("debit", "credit", "prepaid"),
    ("incoming inbound received", "outgoing outbound sent"),
    ("personal private", "business corporate"),
    ("visa", "mastercard", "amex"),
    ("high", "medium moderate", "low"),
    ("light", "heavy"),
    ("delayed late", "punctual"),
    ("up rising risen rose increased", "down falling fallen fell decreased dropped"),
    ("positive", "negative"),
    ("present found", "absent missing"),
    ("healthy ok normal serving", "unhealthy degraded abnormal critical"),
    ("in_stock", "out_of_stock"),
    ("full", "empty"),
    ("free", "occupied busy"),
    ("male", "female"),
    ("sunny clear", "cloudy overcast", "rain rainy", "snow snowy"),
    ("red", "green", "blue", "yellow", "black", "white"),
)  # fmt: skip


def _placed() -> dict[str, list[tuple[int, int]]]:
    found: dict[str, list[tuple[int, int]]] = {}
    for axis, groups in enumerate(_AXES):
        for group, row in enumerate(groups):
            for word in row.split():
                found.setdefault(word, []).append((axis, group))
    return found


_PLACED: Final = _placed()

CLAUSES: Final = re.compile(r"[;!?]|[.,:](?=\s|$)|\b(?:but|however|and)\b", re.IGNORECASE)
"""What ends the reach of a denial."""
DENIAL: Final = re.compile(
    r"\b(?:not|never|cannot|no longer|neither|nor|fails? to|failed to|lacks?|hardly)\b"
    r"|n['\u2019]t\b",
    re.IGNORECASE,
)
SUPPOSED: Final = re.compile(
    r"\b(?:being|be|to|until|unless|once|when|if|before|after|can|could|(?-i:may)|might|would|should"
    r"|will|shall|as soon as|again)\b(?:\s+\S+){0,2}\s*$",
    re.IGNORECASE,
)
"""Before a status: it is wished, feared or to come, not told (`until it is active again`)."""
NONE_OF: Final = re.compile(
    r"\b(?:no|without(?: any)?|zero|free of|not any|n['\u2019]t any|not a single)\s+"
    r"(?!longer|more\b|less than|later|earlier|sooner|doubt|matter|problem\b)"
    r"(?P<what>[a-z][\w'\u2019-]*(?: [a-z][\w'\u2019-]*){0,2})",
    re.IGNORECASE,
)
NOTHING: Final = re.compile(
    r"\b(?:none|nothing|nobody|free of charge|for free|at no cost|no cost|is free|are free)\b",
    re.IGNORECASE,
)
HEDGE: Final = re.compile(
    r"(?:\b(?:about|around|roughly|approximately|approx\.?|nearly|almost|circa|ca\.?|some|just over"
    r"|just under|a little over|a little under|close to)|~|≈)\s*$",
    re.IGNORECASE,
)
AT_LEAST: Final = re.compile(
    r"\b(?:(?P<over>more than|over|above|exceeds|greater than)|at least|a minimum of|from|no less"
    r" than|not less than)\s*(?:[£$€]|[A-Z]{3})?\s*$",
    re.IGNORECASE,
)
AT_MOST: Final = re.compile(
    r"\b(?:(?P<under>less than|under|below|fewer than)|at most|up to|a maximum of|no more than"
    r"|not more than|n['\u2019]t more than|not exceed|within)\s*(?:[£$€]|[A-Z]{3})?\s*$",
    re.IGNORECASE,
)
MINUS: Final = re.compile(
    r"\b(?:minus|negative|overdrawn|in the red|fell|fallen|dropped|decreased|declined by|down"
    r"|decline of|drop of|decrease of|loss|lost|lower)\b",
    re.IGNORECASE,
)
FELL: Final = re.compile(
    r"\b(?:fell|fallen|dropped|decreased|declined|reduced|cut|lowered|shrank|went down|down)\b",
    re.I,
)
ROSE: Final = re.compile(
    r"\b(?:rose|risen|grew|grown|increased|climbed|raised|gained|went up|up)\b", re.I
)
TOTALS: Final = {
    "sum": re.compile(r"\b(?:total|sum|altogether|together|combined|overall|in all)\b", re.I),
    "difference": re.compile(
        r"\b(?:difference|remaining|remains?|left|free|less|minus|after|still)\b", re.I
    ),
    "mean": re.compile(r"\b(?:average|mean)\b", re.I),
    "most": re.compile(r"\b(?:highest|largest|most|maximum|biggest|longest)\b", re.I),
    "least": re.compile(r"\b(?:lowest|smallest|least|minimum|shortest|cheapest)\b", re.I),
}
_COUNTED: Final = "zero one two three four five six seven eight nine ten eleven twelve"
SMALL_NUMBERS: Final = {word: number for number, word in enumerate(_COUNTED.split())}
_GENERAL: Final = (
    "amount value number id name code key text data total count is has was the of in on at as "
    "by to from account card currency unit type kind status state date time"
)
GENERAL: Final = frozenset(_GENERAL.split())
"""Parts of members' names that say too little to know a sentence's word by them."""

_ROLES: Final = (
    "from to was before after old new min max start end first last previous current now until since"
)
ROLES: Final = frozenset(_ROLES.split())
"""Words that tell two members of one kind apart (`from_account`, `to_account`)."""


def plain(text: str) -> str:
    """For comparing words: lower case, one space between, without marks at the ends."""
    return re.sub(r"[\s_\-]+", " ", text).strip(" .,;:!?\"'").casefold()


def said_words(text: str) -> list[str]:
    """The words of a sentence in lower case."""
    return [word.lower() for word in re.findall(r"[^\W\d_]+(?:['\u2019][^\W\d_]+)?", text)]


def is_known(word: str) -> bool:
    """Does the word stand on an axis?"""
    return word in _PLACED


def opposed(one: str, other: str) -> bool:
    """They share an axis, and on none of those they share is it the same group."""
    mine, theirs = _PLACED.get(one, ()), _PLACED.get(other, ())
    if any(place in theirs for place in mine):
        return False
    return bool({axis for axis, _ in mine} & {axis for axis, _ in theirs})


def alike(one: str, other: str) -> bool:
    """The same word, or two words of one group."""
    return one == other or any(place in _PLACED.get(other, ()) for place in _PLACED.get(one, ()))


def same_stem(one: str, other: str) -> bool:
    """`fee` and `fees`, `contactless` and `Contactless`, `blocked` and `block`."""
    one, other = one.casefold(), other.casefold()
    short, long = sorted((one, other), key=len)
    return len(short) >= 3 and long.startswith(short) and len(long) - len(short) <= 3
