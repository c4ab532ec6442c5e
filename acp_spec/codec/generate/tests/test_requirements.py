"""SPEC.md and requirements/v1.yaml say the same, and what they say can be tested."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from acp_spec.bindings.errors import ERRORS

SPEC_DIR = Path(__file__).parents[3]
SPEC = (SPEC_DIR / "SPEC.md").read_text(encoding="utf-8")
REQUIREMENTS: list[dict[str, Any]] = yaml.safe_load(
    (SPEC_DIR / "requirements" / "v1.yaml").read_text(encoding="utf-8")
)["requirements"]
WORDS = " ".join(SPEC.split())


@pytest.mark.parametrize("requirement", REQUIREMENTS, ids=lambda r: r["id"])
def test_a_requirement_stands_in_the_spec_word_for_word(requirement: dict[str, Any]) -> None:
    applies = ", ".join(requirement["applies"])
    assert f"- **{requirement['id']}** ({applies}) {requirement['text']}" in WORDS
    assert re.search(rf"\b{requirement['level']}\b", requirement["text"])
    assert set(requirement["applies"]) <= {"component", "gateway", "sdk"}


def test_every_id_of_the_spec_is_a_requirement_once() -> None:
    ids = [requirement["id"] for requirement in REQUIREMENTS]
    assert re.findall(r"^- \*\*([A-Z]{3}-\d{3})\*\*", SPEC, re.MULTILINE) == ids
    assert len(set(ids)) == len(ids)


def test_ids_of_one_subject_go_upwards() -> None:
    numbers: dict[str, int] = {}
    for requirement in REQUIREMENTS:
        subject, _, number = requirement["id"].partition("-")
        assert numbers.get(subject, 0) < int(number)
        numbers[subject] = int(number)


def test_every_binding_word_has_an_id() -> None:
    prose = [line for line in SPEC.splitlines() if not line.startswith(("- **", "  "))]
    begun = SPEC.index("## 1.")
    loose = [line for line in prose if SPEC.index(line) > begun and re.search(r"\bMUST\b", line)]
    assert loose == []


def test_a_black_box_can_see_enough() -> None:
    assert sum(requirement["level"].startswith("MUST") for requirement in REQUIREMENTS) >= 80


def test_a_reference_names_a_requirement() -> None:
    ids = {requirement["id"] for requirement in REQUIREMENTS}
    references = set(re.findall(r"\b[A-Z]{3}-\d{3}\b", SPEC)) - {"SHA-256"}
    assert references <= ids


def test_the_table_of_errors_is_the_one_of_the_code() -> None:
    rows = re.findall(r"\| ([A-Z_]+) \| ([A-Z_]+) \| (\d{3}) ", SPEC)
    assert {reason: (code, int(http)) for reason, code, http in rows} == {
        reason.value: (row.code.value, row.http) for reason, row in ERRORS.items()
    }
