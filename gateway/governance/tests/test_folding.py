"""Folding: what counts as the same word, and that folding twice is folding once."""

import re
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.governance.folding import fold, words


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("ORDER_STATUS_QUERY", "order status query"),
        ("track-order", "TrackOrder"),
        ("track_order", "\uff54\uff52\uff41\uff43\uff4b\uff3f\uff4f\uff52\uff44\uff45\uff52"),
        ("Zürich", "zurich"),
        ("Straße", "STRASSE"),
        ("naïve café", "naivecafe"),
        ("top up", "  top\u00a0up\t"),
        ("soft\u00adhyphen", "softhyphen"),
        ("m²", "M2"),
        ("ﬁnance", "finance"),
        ("type-5", "Type 5"),
        ("plan_2b", "PLAN 2B"),
        (" -5", "-5"),
        ("10\u200b000", "10000"),
    ],
)
def test_case_width_marks_and_separators_do_not_count(one: str, other: str) -> None:
    assert fold(one) == fold(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("か", "が"),
        ("и", "й"),
        ("c", "c++"),
        ("c", "c#"),
        ("3", "4"),
        ("card", "cards"),
        ("한", "하"),
    ],
)
def test_what_makes_another_word_counts(one: str, other: str) -> None:
    assert fold(one) != fold(other)


texts = st.text(max_size=30) | st.text("aB1 2.-_/5\u00e9", max_size=12)


@given(texts)
def test_folding_is_at_rest_and_leaves_no_separator_but_in_numbers(text: str) -> None:
    folded = fold(text)
    assert fold(folded) == folded
    for place, letter in enumerate(folded):
        if letter.isspace() or letter in "_-./":
            assert (
                folded[place:]
                .lstrip(f"{string.whitespace}\x1c\x1d\x1e\x1f\x85_-./\\")[:1]
                .isdecimal()
                or not letter.isascii()
            )


@given(texts, texts)
def test_numbers_that_differ_never_fold_alike(one: str, other: str) -> None:
    def numbers(text: str) -> list[str]:
        return re.findall(r"\d+(?:[./-]\d+)*", text)

    digits = numbers(one), numbers(other)
    if fold(one) == fold(other) and one.isascii() and other.isascii():
        assert "".join(digits[0]) == "".join(digits[1])


@given(texts)
def test_spellings_of_one_text_fold_alike(text: str) -> None:
    assert fold(f" {text}\t_") == fold(text)
    assert fold(fold(text) + "-") == fold(text)


def test_words_end_at_separators_and_at_capitals() -> None:
    assert words("Top-up by_cardPayment  v2") == ("top", "up", "by", "card", "payment", "v2")
    assert words(" _-. ") == ()
