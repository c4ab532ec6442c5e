"""Draws 400 cases of each half, half of them true: to tune on, and held out.

`python -m gateway.rewards.grounding.tests.claim_cases` writes `cases_tuned.jsonl` and
`cases_held_out.jsonl` beside this file; a test holds the files against what is drawn.
The held-out half has other calls, another seed, and mutations that the tuned half has not.
"""

import json
from collections.abc import Sequence
from pathlib import Path

import msgspec

from gateway.rewards.grounding.tests import mutations, unseen_mutations
from gateway.rewards.grounding.tests.claim_bases import Base, halves
from gateway.rewards.grounding.tests.mutations import Case, Draw, Mutation

FOLDER = Path(__file__).parent
TUNED = FOLDER / "cases_tuned.jsonl"
HELD_OUT = FOLDER / "cases_held_out.jsonl"
PER_LABEL = 200


class Labelled(msgspec.Struct, frozen=True):
    """A line of a fixture."""

    mutation: str
    is_true: bool
    text: str
    value: str
    unit: str
    derivation: str
    sources: tuple[str, ...]
    outputs: tuple[tuple[str, str], ...]


def drawn(
    bases: Sequence[Base], ways: Sequence[Mutation], *, is_true: bool, seed: str
) -> list[Labelled]:
    """`PER_LABEL` cases, each mutation as often as the others as long as it finds a base."""
    found: dict[Case, Labelled] = {}
    number = 0
    while len(found) < PER_LABEL:
        way = ways[number % len(ways)]
        draw = Draw(f"{seed}:{is_true}:{number}")
        number += 1
        case = next(
            (
                case
                for attempt in range(12)
                if (case := way(draw.one_of(f"base{attempt}", bases), draw)) is not None
                and case not in found
            ),
            None,
        )
        if case is not None:
            found[case] = labelled(case, way.__name__, is_true=is_true)
    return list(found.values())


def labelled(case: Case, name: str, *, is_true: bool) -> Labelled:
    return Labelled(
        mutation=name,
        is_true=is_true,
        text=case.text,
        value=case.value,
        unit=case.unit,
        derivation=case.derivation,
        sources=case.sources,
        outputs=case.outputs,
    )


def tuned() -> list[Labelled]:
    bases, _ = halves()
    return [
        *drawn(bases, mutations.TRUE, is_true=True, seed="tuned"),
        *drawn(bases, mutations.FALSE, is_true=False, seed="tuned"),
    ]


def held_out() -> list[Labelled]:
    _, bases = halves()
    true = (*mutations.TRUE, *unseen_mutations.TRUE)
    false = (*mutations.FALSE, *unseen_mutations.FALSE)
    return [
        *drawn(bases, true, is_true=True, seed="held out"),
        *drawn(bases, false, is_true=False, seed="held out"),
    ]


def read(path: Path) -> list[Labelled]:
    """A fixture as it is checked in."""
    return [msgspec.json.decode(line, type=Labelled) for line in path.read_bytes().splitlines()]


def written(cases: Sequence[Labelled]) -> str:
    return "".join(json.dumps(msgspec.to_builtins(one), ensure_ascii=False) + "\n" for one in cases)


if __name__ == "__main__":
    TUNED.write_text(written(tuned()), "utf-8")
    HELD_OUT.write_text(written(held_out()), "utf-8")
