"""Patterns of operators: bounded ones are taken, others refused with what to do."""

import time

import pytest

from gateway.telemetry.masking import Masker
from gateway.telemetry.secret_patterns import STEPS_MAX, checked


@pytest.mark.parametrize(
    "pattern",
    [
        r"EMP-[0-9]{6}",
        r"(?i)\bcase[ -]?no\.? ?(?P<secret>\d{4,12})\b",
        r"(?:AB|CD(?:E|F)?)\d{2}[A-Z]{1,30}+[a-z]{1,30}+[0-9]{1,30}+",
        r"[^\]\s]{8,64}+@bank",
    ],
)
def test_bounded_patterns_are_taken(pattern: str) -> None:
    assert checked("kind", pattern) == pattern


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        (r"(a+)+b", "not allowed"),
        (r"(?:a{1,9}){1,9}b", "not allowed"),
        (r"a*b", "not allowed"),
        (r"[a-z]+", "not allowed"),
        (r"(?:a|a){2}", "not allowed"),
        (r"a{1,300}a{1,300}b", "never go back"),
        (r"(?:a{0,50}|b{0,50})(?:a{0,50}|c{0,50})a{0,50}d", "never go back"),
        (r"(a)\1", "not allowed"),
        (r"(?=a)b", "not allowed"),
        (r"a{3,}", "not allowed"),
        (r"\x41", "not allowed"),
        (r"(?:a", "unterminated"),
        (r"[z-a]", "bad character range"),
        (r"a?", "no character"),
        (r"(?:ab)?(?:c|d?)", "no character"),
        (r"\b", "no character"),
        ("a" * 1_001, "at most"),
    ],
)
def test_others_are_refused_and_it_says_why(pattern: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        checked("kind", pattern)


@pytest.mark.parametrize("kind", ["", "A", "a-b", "a" * 41])
def test_a_kind_is_a_small_word(kind: str) -> None:
    with pytest.raises(ValueError, match="is no kind"):
        checked(kind, "abc")


def test_the_slowest_pattern_that_is_taken_is_done_in_bounded_time() -> None:
    pattern = r"a{1,36}a{1,36}b"
    with pytest.raises(ValueError, match="steps"):
        checked("kind", pattern.replace("36", "37"))
    masker = Masker((), {"kind": pattern})
    began = time.process_time()
    masker.text("a" * 64 * 1024)
    assert time.process_time() - began < 60  # takes about 2 s
    assert STEPS_MAX == 4_000
