"""What a claim's source says, for a person: the value itself, or the first of what is too long.

The same pointers as the guard's, into the same settled calls; a pointer that leads nowhere is told
as such, since a person must see that too. Pure.
"""

from typing import Final

import msgspec

from acp_spec.model.calls import Claim, SettledCall
from acp_spec.model.enums import Word
from acp_spec.model.trajectory import Trajectory
from gateway.rewards.grounding.claims import SOURCES_MAX
from gateway.rewards.grounding.facts import (
    SOURCE_CHARACTERS_MAX,
    Settled,
    TooLong,
    source_text,
)
from gateway.rewards.grounding.judging import CLAIMS_MAX

CALL_FIELD: Final = 1
"""Of a pointer's parts: /calls/<call_id>/..."""


class SourceFound(Word):
    """Where a pointer leads."""

    VALUE = "VALUE"
    CUT = "CUT"  # more than a person checks at a glance; `says` is its beginning
    NOWHERE = "NOWHERE"


class SourceText(msgspec.Struct, frozen=True, kw_only=True):
    """What stands at a source. `characters`: its whole length."""

    found: SourceFound
    says: str = ""
    characters: int = 0


def required(trajectory: Trajectory) -> tuple[tuple[int, int], ...]:
    """(claim, source) of every source that a reviewer has to open, by their places.

    As many claims and sources as the guard looks at: an answer of a thousand claims is no answer.
    """
    return tuple(
        (index, place)
        for index, claim in enumerate(trajectory.claims[:CLAIMS_MAX])
        for place in range(len(sources_of(claim)))
    )


def sources_of(claim: Claim) -> tuple[str, ...]:
    """The sources of a claim that are looked at."""
    return claim.sources[:SOURCES_MAX]


def call_of(pointer: str, calls: Settled) -> SettledCall | None:
    """The call that a source points into."""
    parts = pointer.split("/")[1:]
    return calls.get(parts[CALL_FIELD]) if len(parts) > CALL_FIELD else None


def source_shown(pointer: str, calls: Settled) -> SourceText:
    """What stands there; NOWHERE for a pointer that leads to nothing."""
    try:
        text = source_text(pointer, calls)
    except TooLong:
        call = call_of(pointer, calls)
        text = msgspec.json.encode(call) if call is not None else None
    if text is None:
        return SourceText(found=SourceFound.NOWHERE)
    said = text.decode("utf-8", "replace")
    found = SourceFound.VALUE if len(said) <= SOURCE_CHARACTERS_MAX else SourceFound.CUT
    return SourceText(found=found, says=said, characters=len(said))
