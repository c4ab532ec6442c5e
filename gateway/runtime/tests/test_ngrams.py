"""The default `nearest`: typing errors are found, strangers are not, ties lower the confidence."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.governance.domains import THRESHOLD_DEFAULT, domain_of
from gateway.runtime.ngrams import DOMAINS_KEPT, WORDS_MAX, NgramNearest

BANK = domain_of(
    "bank",
    {
        "activate_my_card": [],
        "lost_or_stolen_card": ["missing plastic"],
        "lost_or_stolen_phone": [],
        "top_up_by_card_charge": [],
        "top_up_by_bank_transfer_charge": [],
        "exchange_rate": [],
        "pin_blocked": [],
    },
)
nearest = NgramNearest()


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("actvate my card", "activate_my_card"),
        ("pin_blokced", "pin_blocked"),
        ("Echange Rate", "exchange_rate"),
        ("card_lost_or_stolen", "lost_or_stolen_card"),
        ("misssing plastic", "lost_or_stolen_card"),
        ("topUpByCardCharg", "top_up_by_card_charge"),
    ],
)
def test_a_typing_error_or_another_order_is_found_with_confidence(said: str, meant: str) -> None:
    best = nearest(BANK, said)[0]
    assert best.value == meant
    assert best.confidence >= THRESHOLD_DEFAULT


@pytest.mark.parametrize("said", ["play_music", "mortgage_application", "zzzz", "???", "_-_", ""])
def test_a_stranger_is_never_near_enough(said: str) -> None:
    assert all(one.confidence < THRESHOLD_DEFAULT for one in nearest(BANK, said))


def test_a_tie_is_a_guess_and_says_so() -> None:
    first, second = nearest(BANK, "lost_or_stolen")[:2]
    assert {first.value, second.value} == {"lost_or_stolen_card", "lost_or_stolen_phone"}
    assert first.confidence < THRESHOLD_DEFAULT


@pytest.mark.parametrize("said", ["10405", "order_10405", "4O4", "10404.0", "error 10404 5"])
def test_a_number_is_never_a_spelling_of_another_one(said: str) -> None:
    codes = domain_of("codes", {"10404": [], "order_10404": [], "404": [], "error_10404": []})
    assert all(one.confidence < THRESHOLD_DEFAULT for one in nearest(codes, said))


def test_words_beside_the_same_number_may_be_misspelt() -> None:
    codes = domain_of("codes", {"order_10404": [], "error_10404": []})
    best = nearest(codes, "oredr-10404")[0]
    assert best.value == "order_10404"
    assert best.confidence >= THRESHOLD_DEFAULT


def test_a_text_of_many_words_costs_nothing() -> None:
    assert nearest(BANK, "card " * (WORDS_MAX + 1)) == ()


@given(st.text(max_size=60))
def test_any_text_gets_ordered_candidates_of_the_domain_or_none(said: str) -> None:
    found = nearest(BANK, said)
    confidences = [one.confidence for one in found]
    assert confidences == sorted(confidences, reverse=True)
    assert all(0.0 <= one.confidence <= 1.0 and one.value in BANK.values for one in found)
    assert nearest(BANK, said) == found


def test_only_so_many_tables_are_kept_and_an_old_domain_is_found_again() -> None:
    kept = NgramNearest()
    for number in range(DOMAINS_KEPT + 1):
        kept(domain_of("d", {f"value_{number}": []}), "value")
    assert kept(domain_of("d", {"value_0": []}), "valve_0")[0].value == "value_0"
