"""Sentences that no claim covers: how likely is one of them made up?

`Detector` is the door for a model of any kind; `LEXICAL` is what comes with the gateway. It knows
figures and deeds, nothing else: a figure that stands nowhere in what the session saw, and a deed
that no call did, are suspicious; an invented thing without either is not seen by it.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Protocol

from acp_spec.model.calls import Claim
from acp_spec.model.enums import Effect, StepRole
from acp_spec.model.grounding import UnsourcedSentence
from acp_spec.model.payload import is_absent
from acp_spec.model.trajectory import Attempt, Trajectory
from gateway.rewards.grounding import words
from gateway.rewards.grounding.facts import Value, value_of
from gateway.rewards.grounding.mentions import Quantity, mentions_of
from gateway.rewards.grounding.numerals import NUMERAL, readings

REVIEW_ABOVE: Final = 0.7
"""Beyond this risk a person looks before the session is trained on (mission R16)."""
SENTENCES_MAX: Final = 40
SENTENCE_CHARACTERS_MAX: Final = 400
SEEN_BYTES_MAX: Final = 262_144
"""Of what a session saw, for looking figures up; a larger one is read in part, and said so."""

RISK_FIGURE: Final = 0.9
RISK_DEED: Final = 0.8
RISK_FIGURE_SEEN: Final = 0.3
RISK_WORDS: Final = 0.1

_SENTENCE: Final = re.compile(r"(?<=[.!?])\s+(?=[A-Z0-9\"'(])|\n+")
_DEED: Final = re.compile(
    r"\b(?:I|we)(?: have|['\u2019]ve)?(?: just| now| already| also)? "
    r"(?:transferred|sent|paid|refunded|blocked|froze|frozen|unblocked|activated|cancelled|canceled"
    r"|ordered|booked|changed|updated|created|deleted|submitted|issued|replaced|reset)\b"
    r"|\bhas been (?:transferred|sent|paid|refunded|blocked|frozen|activated|cancelled|canceled"
    r"|ordered|booked|changed|updated|created|deleted|submitted|issued|replaced|reset)\b",
    re.IGNORECASE,
)
_FIGURE: Final = re.compile(NUMERAL)


class Detector(Protocol):
    """Scores the sentences of an output that no claim covers; 0 is surely fine, 1 surely not."""

    @property
    def name(self) -> str:
        """Under which its scores are kept, with its version."""
        ...

    def score(self, trajectory: Trajectory, sentences: Sequence[str]) -> list[UnsourcedSentence]:
        """One per sentence. Pure: what a model must be asked for is asked elsewhere."""
        ...


def uncovered(trajectory: Trajectory) -> list[str]:
    """Sentences of the output that none of its claims says."""
    if is_absent(trajectory.output) or len(bytes(trajectory.output)) > SEEN_BYTES_MAX:
        return []
    claimed = [words.plain(claim.text) for claim in trajectory.claims]
    found: list[str] = []
    for text in _texts(value_of(bytes(trajectory.output))):
        left = _without(text, trajectory.claims)
        for sentence in _SENTENCE.split(left):
            said = sentence.strip()
            if len(words.said_words(said)) >= 3 and words.plain(said) not in claimed:
                found.append(said[:SENTENCE_CHARACTERS_MAX])
            if len(found) == SENTENCES_MAX:
                return found
    return found


def _texts(value: Value) -> Iterator[str]:
    """Every string of a JSON value that could be a sentence."""
    if isinstance(value, str):
        if " " in value:
            yield value
    elif isinstance(value, list | dict):
        for item in value if isinstance(value, list) else value.values():
            yield from _texts(item)


def _without(text: str, claims: Sequence[Claim]) -> str:
    for claim in claims:
        if claim.text:
            text = text.replace(claim.text, "\n", 1)
    return text


@dataclass(frozen=True)
class _Seen:
    """What the session saw, for looking figures up in it."""

    trajectory: Trajectory

    @cached_property
    def text(self) -> str:
        parts = [bytes(self.trajectory.input)]
        parts += [claim.text.encode() for claim in self.trajectory.claims]
        for row in self.trajectory.calls:
            if row.role in _SOURCES:
                parts += [bytes(row.arguments), bytes(row.output)]
        return b"\n".join(parts)[:SEEN_BYTES_MAX].decode("utf-8", "replace")

    @cached_property
    def numbers(self) -> frozenset[str]:
        return frozenset(
            _normal(one) for found in _FIGURE.findall(self.text) for one in _values(found)
        )

    def has(self, said: Quantity) -> bool:
        return any(_normal(str(abs(reading.value))) in self.numbers for reading in said.readings)


_SOURCES: Final = (StepRole.EXECUTE.value, StepRole.OBSERVE.value)


def _values(text: str) -> list[str]:
    return [str(reading.value) for reading in readings(text)]


def _normal(number: str) -> str:
    """`250.00` and `250` are one number."""
    return number.rstrip("0").rstrip(".") if "." in number else number


@dataclass(frozen=True)
class Lexical:
    """Looks figures up in the input and in all calls, and deeds among the calls that wrote."""

    name: str = "lexical-1"

    def score(self, trajectory: Trajectory, sentences: Sequence[str]) -> list[UnsourcedSentence]:
        """Each sentence by its worst part."""
        seen = _Seen(trajectory)
        return [_scored(sentence, seen) for sentence in sentences]


LEXICAL: Final = Lexical()


def _scored(sentence: str, seen: _Seen) -> UnsourcedSentence:
    said = mentions_of(sentence)
    figures = [one for one in said.quantities if not one.shown.isalpha()]
    unseen = [one.shown for one in figures if not seen.has(one)]
    unseen += [one.core for one in said.codes if one.core not in seen.text]
    if unseen:
        reason = f"{unseen[0]} stands nowhere in what the session saw"
        return UnsourcedSentence(text=sentence, risk=RISK_FIGURE, reason=reason)
    if _DEED.search(sentence) and not any(_wrote(row) for row in seen.trajectory.calls):
        reason = "it tells of a deed, and no call that writes has succeeded"
        return UnsourcedSentence(text=sentence, risk=RISK_DEED, reason=reason)
    if figures or said.moments or said.codes:
        reason = "its figures were seen, but no claim says where"
        return UnsourcedSentence(text=sentence, risk=RISK_FIGURE_SEEN, reason=reason)
    return UnsourcedSentence(text=sentence, risk=RISK_WORDS, reason="it holds no figure, no deed")


def _wrote(row: Attempt) -> bool:
    return row.role == StepRole.EXECUTE.value and row.effect is Effect.WRITE and row.error is None
