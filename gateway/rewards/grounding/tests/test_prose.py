"""Sentences as an assistant might write them, over outputs of many trades, each with its truth.

They were written in four sets, each before the rules were run on it; what the rules got wrong there
was then mended, so today's figures on them flatter. docs/grounding.md has the first looks.
"""

from pathlib import Path

import msgspec
import pytest

from acp_spec.model.calls import Claim, SettledCall
from acp_spec.model.payload import payload
from gateway.rewards.grounding.claims import judged
from gateway.rewards.grounding.findings import Standing

PROSE = Path(__file__).parent / "prose.jsonl"


class Said(msgspec.Struct, frozen=True):
    """A line of the fixture."""

    set: int
    is_true: bool
    text: str
    output: str
    keys: tuple[str, ...]


ALL = [msgspec.json.decode(line, type=Said) for line in PROSE.read_bytes().splitlines()]
ACCUSED_WRONGLY = {"Nothing about the claim was refused."}
NOT_FOUND = {"The flight is on time.", "Hb is 58 g/L.", "The checks failed."}
"""Known misses: what mends one of them takes it off this list."""


def _standing(said: Said) -> tuple[Standing, str]:
    sources = tuple(f"/calls/c/output/{key}" for key in said.keys)
    call = SettledCall(call_id="c", output=payload(said.output.encode()))
    found = judged(Claim(text=said.text, sources=sources), {"c": call})
    return found.standing, found.reason


@pytest.mark.parametrize("number", [1, 2, 3, 4])
def test_what_is_true_is_not_accused_however_it_is_said(number: int) -> None:
    found = {s.text: _standing(s) for s in ALL if s.is_true and s.set == number}
    accused = {text for text, (standing, _) in found.items() if standing is Standing.AGAINST}
    assert accused <= ACCUSED_WRONGLY, {text: found[text] for text in accused - ACCUSED_WRONGLY}


@pytest.mark.parametrize("number", [1, 2, 3, 4])
def test_what_is_false_is_found(number: int) -> None:
    found = {s.text: _standing(s) for s in ALL if not s.is_true and s.set == number}
    missed = {text for text, (standing, _) in found.items() if standing is not Standing.AGAINST}
    assert missed <= NOT_FOUND, {text: found[text] for text in missed - NOT_FOUND}


def test_most_true_prose_is_supported_not_only_left_alone() -> None:
    true = [_standing(said)[0] for said in ALL if said.is_true]
    assert sum(one is Standing.STANDS for one in true) / len(true) > 0.6
