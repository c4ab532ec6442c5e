"""The statements of SPEC.md, read from `acp_spec/requirements`: what a case may name.

A level decides what a failed check means: a MUST fails the run, a SHOULD warns.
"""

import enum
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import yaml


class Level(enum.Enum):
    MUST = "MUST"
    SHOULD = "SHOULD"
    MAY = "MAY"


class Party(enum.Enum):
    """Whom a statement binds."""

    COMPONENT = "component"
    GATEWAY = "gateway"
    SDK = "sdk"


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    id: str
    level: Level
    section: str
    parties: frozenset[Party]
    text: str


@cache
def requirements() -> dict[str, Requirement]:
    """Every statement by its id, in the order of SPEC.md."""
    text = (files("acp_spec") / "requirements" / "v1.yaml").read_text(encoding="utf-8")
    found = [
        Requirement(
            id=item["id"],
            # MUST NOT binds as MUST does, SHOULD NOT as SHOULD
            level=Level(item["level"].removesuffix(" NOT")),
            section=item["section"],
            parties=frozenset(Party(name) for name in item["applies"]),
            text=item["text"],
        )
        for item in yaml.safe_load(text)["requirements"]
    ]
    return {one.id: one for one in found}


def musts(*parties: Party) -> list[Requirement]:
    """Every MUST and MUST NOT that binds one of these parties."""
    return [
        one
        for one in requirements().values()
        if one.level is Level.MUST and one.parties & set(parties)
    ]
