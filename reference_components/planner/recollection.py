"""What the planner makes of `memory[]`: facts of earlier calls that change this plan.

Three rules: a card that was replaced is spoken of by its new number; the currency the caller last
converted into is the one they mean; a question that a person already has is not taken up again.
Memories of other shapes are passed over: anybody may have written them.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

import msgspec

from acp_spec.model.calls import Memory
from acp_spec.model.payload import is_absent
from acp_spec.sdk.values import Json, read

QUESTION = "hotline.question"
"""Marks what the planner itself asks the memory to keep."""
REPLACEMENTS_MAX = 20
"""Cards replaced one after another that are followed; a longer chain is a mistake somewhere."""


@dataclass(slots=True)
class Recollection:
    new_cards: dict[str, str] = field(default_factory=dict)
    currencies: list[str] = field(default_factory=list)
    handed_over: set[str] = field(default_factory=set)

    def card_now(self, card: str) -> str:
        """The number that stands for this card today."""
        for _ in range(REPLACEMENTS_MAX):
            if card not in self.new_cards:
                break
            card = self.new_cards[card]
        return card

    def currency_beside(self, own: str) -> str:
        """The currency last converted into that is not the caller's own; empty when none."""
        return next((code for code in reversed(self.currencies) if code != own), "")


def recollect(memory: Iterable[Memory], caller: str) -> Recollection:
    """What these memories say about this caller; later ones (by id) outdo earlier ones."""
    known = Recollection()
    for item in sorted(memory, key=_age):
        if is_absent(item.data):
            continue
        try:
            data = read(item.data)
        except (ValueError, msgspec.MsgspecError):
            continue
        if isinstance(data, dict):
            _take(known, data, caller=caller)
    return known


def _take(known: Recollection, data: dict[str, Json], *, caller: str) -> None:
    if data.get("kind") == QUESTION:
        if data.get("customer") == caller and data.get("handover"):
            known.handed_over.add(str(data.get("intent")))
        return
    output = data.get("output")
    if data.get("status") != "SUCCEEDED" or not isinstance(output, dict):
        return
    match data.get("action"):
        case "cards.replace":
            known.new_cards[str(output.get("replaces"))] = str(output.get("card"))
        case "rates.convert":
            known.currencies.append(str(output.get("to")))
        case _:
            pass  # other results say nothing that changes a plan


def _age(item: Memory) -> tuple[int, str]:
    """The memory numbers its items; a foreign id sorts by its text, before the numbered ones."""
    number = item.id.lstrip("m")
    return (int(number), "") if number.isdecimal() else (-1, item.id)
