"""When two spellings are the same word: the one rule by which values of a domain are folded.

In this order: compatibility forms become plain ones (full width, ligatures, superscripts: NFKC),
marks over Latin and Greek letters go, case goes (full case folding), and so do white space, dashes,
connectors such as `_`, full stops, slashes and invisible format characters. What is left is
compared. Marks of other scripts stay: there they make another letter (Japanese, Hindi, Cyrillic).
Separators that make a number stay: between digits and as a sign, 1.0 is not 10 and -5 is not 5.
"""

import unicodedata
from functools import lru_cache
from itertools import groupby
from typing import Final

# Folding may expose what an earlier step has passed; in practice two rounds are enough.
ROUNDS_MAX: Final = 8
_MARKED_SCRIPTS: Final = ("LATIN", "GREEK")
# Zs Zl Zp: white space; Pc Pd: connectors and dashes.
_SEPARATORS: Final = frozenset({"Zs", "Zl", "Zp", "Pc", "Pd"})
_MORE_SEPARATORS: Final = frozenset("./\\\t\n\v\f\r\x1c\x1d\x1e\x1f\x85")
# Controls and format characters: nobody sees them.
_INVISIBLE: Final = frozenset({"Cc", "Cf"})


def fold(text: str) -> str:
    """The folded spelling; folding it again changes nothing."""
    folded = text
    for _ in range(ROUNDS_MAX):
        again = _once(folded)
        if again == folded:
            break
        folded = again
    return folded


def words(text: str) -> tuple[str, ...]:
    """The folded words of a text: apart where it has separators, or a capital after a small one."""
    parts: list[str] = []
    current = ""
    before = ""
    for letter in unicodedata.normalize("NFKC", text):
        if _is_invisible(letter):
            continue
        starts = letter.isupper() and before.islower()
        if (_separates(letter) or starts) and current:
            parts.append(current)
            current = ""
        if not _separates(letter):
            current += letter
        before = letter
    if current:
        parts.append(current)
    return tuple(folded for part in parts if (folded := fold(part)))


def codes(parts: tuple[str, ...]) -> frozenset[str]:
    """The words that hold a digit. A number is no spelling of another one, however alike."""
    return frozenset(part for part in parts if any(letter.isdecimal() for letter in part))


def _once(text: str) -> str:
    seen = "".join(letter for letter in text if not _is_invisible(letter))
    plain = _without_marks(unicodedata.normalize("NFKD", seen)).casefold()
    runs = [(apart, "".join(run)) for apart, run in groupby(plain, key=_separates)]
    kept = [
        _kept_of(run, left=_text(runs, place - 1)[-1:], right=_text(runs, place + 1)[:1])
        if apart
        else run
        for place, (apart, run) in enumerate(runs)
    ]
    return unicodedata.normalize("NFKC", "".join(kept))


def _text(runs: list[tuple[bool, str]], place: int) -> str:
    return runs[place][1] if 0 <= place < len(runs) else ""


def _kept_of(run: str, *, left: str, right: str) -> str:
    """What stays of a run of separators: all of it within a number, the sign before one."""
    if not right.isdecimal():
        return ""
    if left.isdecimal():
        return run
    is_sign = run[-1] == "." or unicodedata.category(run[-1]) == "Pd"
    if not is_sign or (left and not run[-2:-1].isspace()):
        return ""  # `type-5` is `type 5`
    return f" {run[-1]}" if left else run[-1]


def _without_marks(decomposed: str) -> str:
    """Combining marks go where they stand over a letter of a script that reads without them."""
    kept: list[str] = []
    bare = False
    for letter in decomposed:
        if unicodedata.combining(letter):
            if not bare:
                kept.append(letter)
            continue
        bare = _reads_without_marks(letter)
        kept.append(letter)
    return "".join(kept)


@lru_cache(4_096)
def _reads_without_marks(letter: str) -> bool:
    return unicodedata.name(letter, "").startswith(_MARKED_SCRIPTS)


@lru_cache(4_096)
def _is_invisible(letter: str) -> bool:
    return unicodedata.category(letter) in _INVISIBLE and letter not in _MORE_SEPARATORS


@lru_cache(4_096)
def _separates(letter: str) -> bool:
    return letter in _MORE_SEPARATORS or unicodedata.category(letter) in _SEPARATORS
