"""Meanings beside spellings: a synonym nobody declared is found, a stranger is not."""

from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from conftest import skip_or_fail
from gateway.governance.domains import THRESHOLD_DEFAULT, Domain, domain_of, place
from gateway.runtime.embedding import EmbeddingNearest, ModelUnusable, load_encoder
from gateway.runtime.ngrams import NgramNearest

BANK = domain_of("bank", {"card_fee": [], "lost_phone": [], "lost_card": []})
# Words that mean the same lie in one direction.
DIRECTIONS = {"card": 0, "plastic": 0, "fee": 1, "charge": 1, "lost": 2, "missing": 2, "phone": 3}
Asked = Callable[[Domain, str], Sequence[Any]]


@pytest.fixture(scope="module")
def model_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of seven words, made here with the library itself."""
    try:
        model2vec, numpy, tokenizers = map(import_module, ("model2vec", "numpy", "tokenizers"))
    except ImportError:
        skip_or_fail("needs model2vec: pip install acp-decision-gateway[semantics]")
    names = ["[UNK]", *DIRECTIONS]
    vectors = numpy.zeros((len(names), 4), dtype=numpy.float32)
    for row, name in enumerate(names[1:], 1):
        vectors[row, DIRECTIONS[name]] = 1.0
    by_word = tokenizers.models.WordLevel(
        {name: row for row, name in enumerate(names)}, unk_token="[UNK]"
    )
    tokenizer = tokenizers.Tokenizer(by_word)
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    folder = tmp_path_factory.mktemp("model")
    model2vec.StaticModel(vectors, tokenizer).save_pretrained(str(folder))
    return folder


@pytest.fixture(scope="module")
def nearest(model_dir: Path) -> EmbeddingNearest:
    return EmbeddingNearest(load_encoder(model_dir), NgramNearest())


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("plastic charge", "card_fee"),
        ("missingPhone", "lost_phone"),
        ("missing-plastic", "lost_card"),
    ],
)
def test_another_word_for_the_same_is_found_where_spelling_alone_is_lost(
    nearest: EmbeddingNearest, said: str, meant: str
) -> None:
    assert place(BANK, said, nearest=NgramNearest()).value == ""
    assert place(BANK, said, nearest=nearest).value == meant


def test_spelling_still_counts_where_the_model_knows_no_word(nearest: EmbeddingNearest) -> None:
    assert place(BANK, "lostt_phonee", nearest=nearest).value == "lost_phone"


@pytest.mark.parametrize("said", ["weather", "lost", "phone charge", ""])
def test_strangers_and_halves_are_not_near_enough(nearest: EmbeddingNearest, said: str) -> None:
    found = nearest(BANK, said)
    assert all(0.0 <= one.confidence < THRESHOLD_DEFAULT for one in found), found


def test_a_model_that_is_not_there_is_told_and_never_looked_for_elsewhere(tmp_path: Path) -> None:
    with pytest.raises(ModelUnusable, match="is not a directory"):
        load_encoder(tmp_path / "minishlab-potion-base-8M")


def test_a_directory_that_holds_no_model_is_told(tmp_path: Path, model_dir: Path) -> None:
    with pytest.raises(ModelUnusable, match="model_dir"):
        load_encoder(tmp_path)
