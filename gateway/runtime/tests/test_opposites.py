"""A contrary is not a spelling of its contrary; a typing error is still one."""

import pytest

from gateway.governance.domains import THRESHOLD_DEFAULT, domain_of
from gateway.runtime.ngrams import NgramNearest
from gateway.runtime.opposites import apart, is_contrary


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("deactivate", "activate"),
        ("deactivated", "activate"),
        ("blocked", "unblocked"),
        ("linking", "unlinking"),
        ("verify", "reverify"),
        ("approved", "disapproved"),
        ("undeclined", "declined"),
    ],
)
def test_a_prefix_that_turns_a_word_round_makes_a_contrary(one: str, other: str) -> None:
    assert is_contrary(one, other)
    assert is_contrary(other, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [("activate", "actvate"), ("decline", "declined"), ("refund", "refnud"), ("in", "pin"),
     ("declined", "recieved"), ("destination", "distination"), ("card", "cards")],
)  # fmt: skip
def test_a_typing_error_makes_none(one: str, other: str) -> None:
    assert not is_contrary(one, other)


def test_a_negation_more_or_less_and_another_number_set_apart() -> None:
    assert apart(("card", "working"), ("card", "not", "working"))
    assert apart(("error", "404"), ("error", "405"))
    assert not apart(("card", "not", "wroking"), ("card", "not", "working"))
    assert not apart(("unable", "to", "pay"), ("to", "pay", "unable"))


@pytest.mark.parametrize(
    "said", ["deactivate_my_card", "card_working", "pin_unblocked", "not_declined_transfer"]
)
def test_nothing_is_ever_guessed_to_be_its_contrary(said: str) -> None:
    values = ("activate_my_card", "card_not_working", "pin_blocked", "declined_transfer")
    bank = domain_of("bank", {value: [] for value in values} | {"pin_blocked": ["pin_locked"]})
    found = NgramNearest()(bank, said)
    assert all(one.confidence < THRESHOLD_DEFAULT for one in found), found
