"""What secrets look like inside a text: the known shapes, and how each is found. Pure.

Every shape has words of which one must stand in the text (in lower case), so that most texts are
done after a few searches. A shape finds spans; what introduces a secret (`Bearer`, `user:`) stays.
No search here takes more than a bounded number of steps for each character of the text.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

Span = tuple[int, int]
"""Where a secret begins and ends."""

CARD_DIGITS_MIN, CARD_DIGITS_MAX = 14, 19
KEY_CHARACTERS_MIN: Final = 15
"""The shortest run of letters, digits and dashes in any key or token below."""
KEY_BLOCK_BEGIN: Final = "-----BEGIN "
KEY_BLOCK_HEAD_CHARACTERS_MAX: Final = 64

_FLAGS: Final = re.ASCII
_DIGITS: Final = bytes.maketrans(b"123456789", b"0" * 9)
_KEY_LETTERS: Final = (
    bytes(ord("a") if chr(byte).isalnum() or byte in b"_-" else ord(" ") for byte in range(128))
    + b" " * 128
)
_DIGIT_RUN: Final = re.compile(r"(?<![0-9.])[0-9](?:[ -]?[0-9]){13,}+(?![0-9])")
_DIGIT_GROUP: Final = re.compile(r"[0-9]++")
_PREFIXES: Final = re.compile(
    r"(?:4[0-9]{15}|5[1-5][0-9]{14}|2(?:22[1-9]|2[3-9][0-9]|[3-6][0-9]{2}|7[01][0-9]|720)[0-9]{12}"
    r"|3[47][0-9]{13}|3(?:0[0-5]|[68][0-9])[0-9]{11}|35(?:2[89]|[3-8][0-9])[0-9]{12}"
    r"|6(?:011|4[4-9][0-9]|5[0-9]{2})[0-9]{12}|62[0-9]{14}(?:[0-9]{3})?)"
)


@dataclass(frozen=True, slots=True)
class Shape:
    """One kind of secret. `needs`: one of these is in every text that has it; none: always look."""

    kind: str
    needs: tuple[str, ...]
    find: Callable[[str], Iterator[Span]]
    is_introduced: bool = False
    """Whether what stands before it says what it was; else the mask says it."""
    may_hold: Callable[[bytes], bool] | None = None
    """A faster look at the whole, before the words are searched."""


def by_pattern(pattern: str, *, flags: int = 0) -> Callable[[str], Iterator[Span]]:
    """Finds the group `secret` of a pattern, or all of what it matches."""
    compiled = re.compile(pattern, _FLAGS | flags)
    group = "secret" if "secret" in compiled.groupindex else 0
    return lambda text: (found.span(group) for found in compiled.finditer(text))


def may_hold_a_key(data: bytes) -> bool:
    """Whether enough letters, digits and dashes follow each other: one fast pass."""
    return b"a" * KEY_CHARACTERS_MIN in data.translate(_KEY_LETTERS)


def may_hold_a_card(data: bytes) -> bool:
    """Whether enough digits follow each other, spaces and dashes aside: one fast pass."""
    return b"0" * CARD_DIGITS_MIN in data.translate(_DIGITS, b" -")


def cards(text: str) -> Iterator[Span]:
    """Card numbers of the great issuers whose check digit is right, also in groups."""
    for run in _DIGIT_RUN.finditer(text):
        groups = [found.span() for found in _DIGIT_GROUP.finditer(text, run.start(), run.end())]
        start = end = 0
        for first in range(len(groups)):
            after = _card_from(text, groups, first=first)
            if after == first:
                continue
            if groups[first][0] >= end and end:  # else it overlaps: by chance the first may be none
                yield start, end
                end = 0
            start = start if end else groups[first][0]
            end = max(end, groups[after - 1][1])
        if end:
            yield start, end


def _card_from(text: str, groups: list[Span], *, first: int) -> int:
    """The group behind the longest card that begins with group `first`; `first` if none does."""
    digits, after = "", first
    for place in range(first, len(groups)):
        start, end = groups[place]
        if len(digits) + end - start > CARD_DIGITS_MAX:
            break
        digits += text[start:end]
        if len(digits) < CARD_DIGITS_MIN:
            continue
        if _PREFIXES.fullmatch(digits) and _is_luhn(digits):
            after = place + 1
    return after


def _is_luhn(digits: str) -> bool:
    doubled = (sum(divmod(2 * int(digit), 10)) for digit in digits[-2::-2])
    return (sum(doubled) + sum(int(digit) for digit in digits[::-2])) % 10 == 0


def key_blocks(text: str) -> Iterator[Span]:
    """Private keys in PEM armour, to their last line; one that was cut off, to the text's end."""
    at = text.find(KEY_BLOCK_BEGIN)
    while at >= 0:
        head = text[at : at + KEY_BLOCK_HEAD_CHARACTERS_MAX]
        if "PRIVATE KEY" not in head[len(KEY_BLOCK_BEGIN) :].split("-----", 1)[0]:
            at = text.find(KEY_BLOCK_BEGIN, at + 1)
            continue
        tail = text.find("-----END ", at)
        close = text.find("-----", tail + len("-----END ")) if tail >= 0 else -1
        end = close + len("-----") if close >= 0 else len(text)
        yield at, end
        at = text.find(KEY_BLOCK_BEGIN, end)


_CREDENTIAL: Final = r"[A-Za-z0-9._~+/=-]++"
_NO_PROSE: Final = r"(?![A-Za-z]?[a-z]{0,19}+[.]?(?![A-Za-z0-9._~+/=-]))"
"""Not what follows `basic` in a sentence: a word of small letters."""

_START: Final = r"(?<![A-Za-z0-9_-])"
_KEY_WORDS: Final = (
    r"(?:AKIA|ASIA)[0-9A-Z]{16}",
    r"gh[opsru]_[A-Za-z0-9]{20,255}+",
    r"github_pat_[A-Za-z0-9_]{20,255}+",
    r"glpat-[A-Za-z0-9_-]{16,255}+",
    r"xox[abeoprs]-[A-Za-z0-9-]{10,255}+",
    r"sk-[A-Za-z0-9_-]{16,255}+",
    r"[srp]k_(?:live|test)_[A-Za-z0-9]{10,255}+",
    r"AIza[A-Za-z0-9_-]{30,60}+",
    r"ya29\.[A-Za-z0-9_-]{16,2048}+",
    r"(?:npm|hf)_[A-Za-z0-9]{30,60}+",
    r"pypi-[A-Za-z0-9_-]{16,512}+",
    r"SG\.[A-Za-z0-9_-]{16,64}+\.[A-Za-z0-9_-]{16,64}+",
)
_KEY_NEEDS: Final = (
    *("akia", "asia", "gho_", "ghp_", "ghs_", "ghr_", "ghu_", "github_pat_", "glpat-", "xox"),
    *("sk-", "k_live_", "k_test_", "aiza", "ya29.", "npm_", "hf_", "pypi-", "sg."),
)

SHAPES: Final = (
    Shape("private_key", ("private key",), key_blocks),
    Shape(
        "bearer",
        ("bearer", "basic"),
        by_pattern(
            r"(?<![A-Za-z])(?:Bearer[ \t]{1,8}+|"
            rf"(?:bearer|BEARER|[Bb]asic|BASIC)[ \t]{{1,8}}+{_NO_PROSE})"
            rf"(?P<secret>{_CREDENTIAL})"
        ),
        is_introduced=True,
    ),
    Shape(
        "url_password",
        ("://",),
        by_pattern(r"://[^/\s:@]{0,256}+:(?P<secret>[^\s/@]{1,256}+)@"),
        is_introduced=True,
    ),
    Shape(
        "web_token", ("eyj",), by_pattern(_START + r"eyJ[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_.-]{8,}+")
    ),
    Shape(
        "key",
        _KEY_NEEDS,
        by_pattern(_START + "(?:" + "|".join(_KEY_WORDS) + ")"),
        may_hold=may_hold_a_key,
    ),
    Shape("card", (), cards, may_hold=may_hold_a_card),
)
"""The kinds that hold unless somebody switches them off, in the order in which they are looked for.

Texts are masked kind by kind, so a later one does not see what an earlier one has masked.
"""
