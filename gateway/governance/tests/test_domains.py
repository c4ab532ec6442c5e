"""One value and its domain: exact, folded, synonym, nearest, refused; what must not be stored."""

import math
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acp_spec.model.semantics import HowMapped
from gateway.governance.domains import (
    VALUE_CHARACTERS_MAX,
    Candidate,
    Domain,
    Nearest,
    clashes,
    domain_of,
    nobody,
    place,
)

INTENTS = {"ORDER_STATUS_QUERY": ["track_order", "where is it"], "REFUND": ["money back"]}
INTENT = domain_of("intent", INTENTS, threshold=0.7)


def guess(value: str, confidence: float) -> Nearest:
    """A `nearest` that always says this."""

    def nearest(domain: Domain, text: str) -> Sequence[Candidate]:
        return (Candidate(value=value, confidence=confidence),)

    return nearest


@pytest.mark.parametrize(
    ("text", "how", "value"),
    [
        ("REFUND", HowMapped.EXACT, "REFUND"),
        ("refund", HowMapped.FOLDED, "REFUND"),
        ("order-status Query", HowMapped.FOLDED, "ORDER_STATUS_QUERY"),
        ("track_order", HowMapped.SYNONYM, "ORDER_STATUS_QUERY"),
        ("Track-Order", HowMapped.SYNONYM, "ORDER_STATUS_QUERY"),
        ("MONEY  BACK", HowMapped.SYNONYM, "REFUND"),
        ("refunds", HowMapped.REFUSED, ""),
    ],
)
def test_the_surest_rule_that_holds_places_a_value(text: str, how: HowMapped, value: str) -> None:
    found = place(INTENT, text, nearest=nobody)
    assert (found.how, found.value) == (how, value)


def test_the_nearest_counts_from_the_threshold_on_and_says_how_sure_it_was() -> None:
    sure = place(INTENT, "refunds", nearest=guess("REFUND", 0.7))
    assert (sure.how, sure.value, sure.confidence) == (HowMapped.NEAREST, "REFUND", 0.7)
    unsure = place(INTENT, "refunds", nearest=guess("REFUND", 0.69))
    assert (unsure.how, unsure.value, unsure.confidence) == (HowMapped.REFUSED, "", 0.69)
    assert unsure.candidates == (Candidate(value="REFUND", confidence=0.69),)


def test_a_guess_whose_confidence_is_no_number_is_refused() -> None:
    """Somebody's model divides by the length of an empty vector: nothing is below what it says."""
    found = place(INTENT, "x", nearest=guess("REFUND", math.nan))
    assert (found.how, found.confidence, found.candidates) == (HowMapped.REFUSED, 0.0, ())


def test_a_guess_outside_the_domain_is_no_guess_however_sure_it_is() -> None:
    assert place(INTENT, "x", nearest=guess("INVENTED", 1.0)).how is HowMapped.REFUSED


def test_a_domain_may_forbid_folding_and_guessing() -> None:
    strict = domain_of("intent", INTENTS, folds=False, guesses=False)
    assert place(strict, "refund", nearest=guess("REFUND", 1.0)).how is HowMapped.REFUSED
    assert place(strict, "track_order", nearest=nobody).value == "ORDER_STATUS_QUERY"


def test_a_long_text_is_refused_without_asking_anybody() -> None:
    def never(domain: Domain, text: str) -> Sequence[Candidate]:
        raise AssertionError("a text this long is not asked about")

    long = "R" * (VALUE_CHARACTERS_MAX + 1)
    assert place(INTENT, long, nearest=never).how is HowMapped.REFUSED


@pytest.mark.parametrize(
    "values",
    [
        {"a_b": [], "AB": []},
        {"refund": ["money back"], "return": ["Money-Back"]},
        {"refund": ["Return"], "return": []},
        {"refund": ["same"], "return": ["same"]},
    ],
)
def test_spellings_that_could_mean_two_values_clash(values: dict[str, list[str]]) -> None:
    assert clashes(values)


def test_a_synonym_that_folds_to_its_own_value_is_merely_superfluous() -> None:
    assert not clashes({"refund": ["Refund", "RE-FUND"]})


def test_without_folding_only_equal_spellings_clash() -> None:
    assert not clashes({"a_b": [], "AB": []}, folds=False)
    assert clashes({"a": ["x"], "b": ["x"]}, folds=False)


def test_a_message_names_the_domain_shortened() -> None:
    many = domain_of("many", {f"v{number:02}": [] for number in range(30)})
    assert many.shown() == "'many' (v00, v01, v02, v03, v04, v05, v06, v07 and 22 more)"


names = st.text("abcAB_- é", min_size=1, max_size=6).filter(str.strip)


@given(st.dictionaries(names, st.lists(names, max_size=3), min_size=1, max_size=5))
def test_without_clashes_every_spelling_has_one_meaning(values: dict[str, list[str]]) -> None:
    if clashes(values):
        return
    domain = domain_of("d", values)
    for value, synonyms in values.items():
        for spelling in (value, *synonyms, value.upper().swapcase(), *map(str.title, synonyms)):
            assert place(domain, spelling, nearest=nobody).value == value
