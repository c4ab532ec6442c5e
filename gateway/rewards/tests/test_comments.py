"""Comments read by rules: six languages, negations, corrections, and an honest "not judged"."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acp_spec.model.reward_vector import CommentReading, Correction, Validity
from gateway.rewards.comments import CORRECTIONS_MAX, NOTHING_KNOWN, read


def _read(comment: str) -> CommentReading:
    return read(comment, feedback_id="f")


@pytest.mark.parametrize(
    ("comment", "tags"),
    [
        ("The fee is WRONG and it took too long.", {"WRONG", "SLOW"}),
        ("Thank you, very helpful!", {"GOOD"}),
        ("You forgot the second account", {"INCOMPLETE"}),
        ("I never asked for a transfer", {"NOT_ASKED"}),
        ("Die Gebühr ist falsch, und der Ton war unfreundlich.", {"WRONG", "RUDE"}),
        ("Das stimmt nicht.", {"WRONG"}),
        ("C'est une erreur, et il manque la date", {"WRONG", "INCOMPLETE"}),
        ("Perfecto, gracias", {"GOOD"}),
        ("La risposta è sbagliata e il sistema è lento", {"WRONG", "SLOW"}),
        ("Não pedi isso", {"NOT_ASKED"}),
    ],
)
def test_words_of_six_languages_become_tags(comment: str, tags: set[str]) -> None:
    found = _read(comment)
    assert set(found.tags) == tags
    assert (found.validity, found.by) == (Validity.VALID, "rules")


@pytest.mark.parametrize(
    "comment",
    [
        "not wrong",
        "it isn't wrong",
        "das war nicht falsch",
        "ce n'est pas une erreur",
        "non è sbagliato",
        "no fue incorrecto",
        "não foi errado",
    ],
)
def test_a_word_that_is_negated_gives_no_tag_and_nothing_in_its_place(comment: str) -> None:
    found = _read(comment)
    assert found.tags == ()
    assert (found.validity, found.reason) == (Validity.NOT_JUDGED, NOTHING_KNOWN)


@pytest.mark.parametrize(
    ("comment", "wrong", "right"),
    [
        ("it should be 12.50 EUR instead of 15 EUR", "15 EUR", "12.50 EUR"),
        ("not Monday but Tuesday", "Monday", "Tuesday"),
        ("the fee should be 3", "", "3"),
        ('should have been "gold card"', "", "gold card"),
        ("richtig wäre 1.200,00 €", "", "1.200,00 €"),
        ("nicht Berlin, sondern Bonn", "Berlin", "Bonn"),
        ("12 statt 15", "15", "12"),
        ("pas lundi mais mardi", "lundi", "mardi"),
        ("en vez de 15", None, None),
        ("no lunes sino martes", "lunes", "martes"),
        ("12 invece di 15", "15", "12"),
        ("12 em vez de 15", "15", "12"),
    ],
)
def test_corrections_are_read_as_what_was_wrong_and_what_is_right(
    comment: str, wrong: str | None, right: str | None
) -> None:
    expected = () if right is None else (Correction(wrong=wrong or "", right=right),)
    assert _read(comment).corrections == expected


@pytest.mark.parametrize("comment", ["zła odpowiedź", "間違っています", "ok", "…", "👍", "1234"])
def test_what_is_not_understood_is_not_judged_and_says_so(comment: str) -> None:
    found = _read(comment)
    assert (found.tags, found.corrections) == ((), ())
    assert (found.validity, found.reason) == (Validity.NOT_JUDGED, NOTHING_KNOWN)


@given(comment=st.text(max_size=300) | st.sampled_from(["not " * 2000, '"' * 9000, "1," * 9000]))
def test_no_text_breaks_it_and_what_it_gives_is_bounded(comment: str) -> None:
    found = _read(comment)
    assert (found.validity is Validity.VALID) is bool(found.tags or found.corrections)
    assert len(found.corrections) <= CORRECTIONS_MAX
    assert all(len(one.right) <= 82 and len(one.wrong) <= 82 for one in found.corrections)
