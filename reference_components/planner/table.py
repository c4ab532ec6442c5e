"""`hotline/intents.csv` read once: what each intent leads to (its README explains the columns)."""

import csv
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

HANDOVER = "handover"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One row: an action with where its arguments come from, or a handover with its reason."""

    number: int
    action: str
    arguments: tuple[tuple[str, str], ...]
    bindings: tuple[tuple[str, int, str], ...]
    note: str


@cache
def steps_of() -> dict[str, tuple[Step, ...]]:
    """The steps of every intent, in their order."""
    text = (files("reference_components.hotline") / "intents.csv").read_text(encoding="utf-8")
    table: dict[str, list[Step]] = {}
    for row in csv.DictReader(text.splitlines()):
        table.setdefault(row["intent"], []).append(_step(row))
    return {intent: tuple(steps) for intent, steps in table.items()}


def _step(row: dict[str, str]) -> Step:
    return Step(
        number=int(row["step"]),
        action=row["action"],
        arguments=tuple(_pair(text) for text in row["arguments"].split()),
        bindings=tuple(_binding(text) for text in row["bindings"].split()),
        note=row["note"],
    )


def _pair(text: str) -> tuple[str, str]:
    name, _, value = text.partition("=")
    return name, value


def _binding(text: str) -> tuple[str, int, str]:
    """`/to=1#/pointer` as (to, step, pointer)."""
    to, _, source = text.partition("=")
    step, _, pointer = source.partition("#")
    return to, int(step), pointer
