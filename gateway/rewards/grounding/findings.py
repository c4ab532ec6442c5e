"""What each check of a claim says: a part of it stands, is denied by a source, or stays open."""

from dataclasses import dataclass
from enum import Enum, auto

from gateway.rewards.grounding.facts import Fact


class Standing(Enum):
    STANDS = auto()
    AGAINST = auto()
    OPEN = auto()


@dataclass(frozen=True, slots=True)
class Finding:
    """One checked part; `start` is where it stands in the text, -1 when it is not of the text."""

    standing: Standing
    reason: str
    start: int = -1


def stands(reason: str, start: int = -1) -> Finding:
    return Finding(Standing.STANDS, reason, start)


def against(reason: str, start: int = -1) -> Finding:
    return Finding(Standing.AGAINST, reason, start)


def open_(reason: str, start: int = -1) -> Finding:
    return Finding(Standing.OPEN, reason, start)


def told(fact: Fact) -> str:
    """A fact for a person: where it stands and what it is."""
    where = fact.pointer or "the claim's value"
    shown = fact.text if len(fact.text) <= 60 else fact.text[:57] + "..."
    return f"{where} is {shown or 'empty'}"
