"""When two spellings are the same word: the one rule by which values of a domain are folded.

In this order: compatibility forms become plain ones (full width, ligatures, superscripts: NFKC),
marks over Latin and Greek letters go, case goes (full case folding), and so do white space, dashes,
connectors such as `_`, full stops, slashes and invisible format characters. What is left is
compared. Marks of other scripts stay: there they make another letter (Japanese, Hindi, Cyrillic).
"""

import unicodedata
from functools import lru_cache
from typing import Final

# Folding may expose what an earlier step has passed; in practice two rounds are enough.
ROUNDS_MAX: Final = 8
_MARKED_SCRIPTS: Final = ("LATIN", "GREEK")
# Zs Zl Zp: white space; Pc Pd: connectors and dashes; Cc Cf: controls and invisible characters.
_SEPARATORS: Final = frozenset({"Zs", "Zl", "Zp", "Pc", "Pd", "Cc", "Cf"})
_MORE_SEPARATORS: Final = frozenset("./\\")


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


def _once(text: str) -> str:
    plain = _without_marks(unicodedata.normalize("NFKD", text))
    kept = "".join(letter for letter in plain.casefold() if not _separates(letter))
    return unicodedata.normalize("NFKC", kept)


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
def _separates(letter: str) -> bool:
    return letter in _MORE_SEPARATORS or unicodedata.category(letter) in _SEPARATORS
