"""What no likeness may bridge: another number, a negation, a word turned into its contrary.

`deactivate_my_card` is two letters away from `activate_my_card`, and vectors of contraries lie
close together too: both kinds of `nearest` would be sure of the worst value there is. The words are
English; in other languages a contrary may pass, and a domain may say `nearest: false`.
"""

from functools import lru_cache
from typing import Final

from gateway.governance.folding import codes

NEGATIONS: Final = frozenset(
    (
        *("not", "no", "never", "none", "non", "nor", "without", "off", "stop"),
        *("cannot", "cant", "dont", "doesnt", "didnt", "isnt", "arent", "wasnt", "wont"),
    )
)
# Before a word they turn it round, or do it over: never a typing error.
PREFIXES: Final = ("anti", "dis", "mis", "non", "de", "il", "im", "in", "ir", "re", "un")
STEM_LEAST: Final = 4
# How like the rest must be: `deactivated` is `activate` turned round.
REST_ALIKE: Final = 0.7
PAIRS_KEPT: Final = 32_768


def apart(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """Do the two phrases differ in a number, or in a negation? Then they are no spellings."""
    negated = NEGATIONS.intersection(one) != NEGATIONS.intersection(other)
    return negated or codes(one) != codes(other)


def contrary(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """Does one phrase turn a word of the other round? Then no spelling of that value is meant."""
    mine, theirs = set(one) - set(other), set(other) - set(one)
    return any(is_contrary(word, their) for word in mine for their in theirs)


@lru_cache(PAIRS_KEPT)
def is_contrary(one: str, other: str) -> bool:
    """Is one of the two words the other one with a prefix that turns it round?"""
    return _turns(one, other) or _turns(other, one)


def _turns(longer: str, shorter: str) -> bool:
    if len(shorter) < STEM_LEAST:
        return False
    rests = [longer.removeprefix(prefix) for prefix in PREFIXES if longer.startswith(prefix)]
    if shorter.startswith(PREFIXES):  # `distination` for `destination` is a typing error
        return shorter in rests
    return any(_begin_alike(rest, shorter) for rest in rests)


def _begin_alike(one: str, other: str) -> bool:
    """Do they share a beginning that is most of both? Endings differ: `activate`, `activated`."""
    shared = 0
    for mine, theirs in zip(one, other, strict=False):
        if mine != theirs:
            break
        shared += 1
    return shared >= REST_ALIKE * max(len(one), len(other))
