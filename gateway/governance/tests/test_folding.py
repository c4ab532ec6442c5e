"""Folding: what counts as the same word, and that folding twice is folding once."""

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
        ("v1.2", "v12"),
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


@given(st.text(max_size=30))
def test_folding_is_at_rest_and_leaves_no_separator(text: str) -> None:
    folded = fold(text)
    assert fold(folded) == folded
    assert not any(letter.isspace() or letter in "_-./" for letter in folded)


@given(st.text(max_size=30))
def test_spellings_of_one_text_fold_alike(text: str) -> None:
    assert fold(f" {text}\t_") == fold(text)
    assert fold(fold(text) + "-") == fold(text)


def test_words_end_at_separators_and_at_capitals() -> None:
    assert words("Top-up by_cardPayment  v2") == ("top", "up", "by", "card", "payment", "v2")
    assert words(" _-. ") == ()
