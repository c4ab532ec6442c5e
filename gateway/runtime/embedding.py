"""A `nearest` that knows meanings: static word vectors beside the spelling (extra `semantics`).

Each spelling of a domain and the value asked for become one vector; their cosine, lowered where
another value is almost as near, is the confidence. Of spelling and meaning the surer one counts.
The model is a directory that the operator gives; nothing is ever fetched. Static vectors need no
network and no accelerator: a look-up is a table of words and one product, well under 1 ms.
"""

import importlib
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol, Self

from gateway.governance.domains import CANDIDATES_MAX, Candidate, Domain, Nearest
from gateway.governance.folding import words
from gateway.runtime.opposites import apart, contrary

# A runner-up this much behind does not lower the confidence any more. Vectors of one trade lie
# close together, so the lead is asked to be as clear as for spellings.
CLEAR_LEAD: Final = 0.12
TIE_FACTOR: Final = 0.6
# Domains whose vectors are kept: 4,000 spellings of 256 numbers take 4 MiB.
DOMAINS_KEPT: Final = 16
EXTRA_MISSING: Final = (
    "semantics.nearest is embedding, which needs the extra: pip install acp-decision-gateway"
    "[semantics]"
)


class Vectors(Protocol):
    """Rows of numbers, as numpy has them."""

    def __matmul__(self, other: Self, /) -> Self: ...

    def __iter__(self) -> Iterator[float]: ...

    def __getitem__(self, index: int, /) -> Self: ...


class Encode(Protocol):
    """Texts to unit vectors, one row each; a text without a known word is all zeros."""

    def __call__(self, texts: Sequence[str], /) -> Vectors: ...


class ModelUnusable(Exception):
    """The model cannot be loaded: the message says what to do."""


class EmbeddingNearest:
    """A `Nearest` over an encoder and a `Nearest` that compares spellings."""

    def __init__(self, encode: Encode, spelled: Nearest) -> None:
        self._encode = encode
        self._spelled = spelled
        self._tables: OrderedDict[str, _Table] = OrderedDict()

    def __call__(self, domain: Domain, text: str) -> tuple[Candidate, ...]:
        best = {one.value: one.confidence for one in self._spelled(domain, text)}
        for value, confidence in self._meant(domain, text):
            best[value] = max(best.get(value, 0.0), confidence)
        ranked = sorted(best.items(), key=lambda pair: (-pair[1], pair[0]))
        return tuple(
            Candidate(value=value, confidence=confidence)
            for value, confidence in ranked[:CANDIDATES_MAX]
        )

    def _meant(self, domain: Domain, text: str) -> list[tuple[str, float]]:
        """The values by meaning, best first, each with its confidence."""
        table, asked = self._table(domain), words(text)
        cosines = table.vectors @ self._encode([_phrase(asked)])[0]
        contraries = {value for parts, value in table.spelled if contrary(asked, parts)}
        best: dict[str, float] = {}
        for (parts, value), cosine in zip(table.spelled, cosines, strict=True):
            if value not in contraries and not apart(asked, parts):
                best[value] = max(best.get(value, 0.0), float(cosine))
        ranked = sorted(best.items(), key=lambda pair: (-pair[1], pair[0]))[:CANDIDATES_MAX]
        lead = ranked[0][1] - ranked[1][1] if len(ranked) > 1 else CLEAR_LEAD
        return [
            (value, _confidence(cosine, lead=lead if place == 0 else 0.0))
            for place, (value, cosine) in enumerate(ranked)
        ]

    def _table(self, domain: Domain) -> "_Table":
        found = self._tables.get(domain.digest)
        if found is None:
            spelled = tuple((words(text), value) for text, value in domain.spellings())
            vectors = self._encode([_phrase(parts) for parts, _ in spelled])
            found = self._tables[domain.digest] = _Table(spelled, vectors)
            if len(self._tables) > DOMAINS_KEPT:
                self._tables.popitem(last=False)
        else:
            self._tables.move_to_end(domain.digest)
        return found


@dataclass(frozen=True, slots=True)
class _Table:
    """A domain's spellings as words, with their values, and a vector for each."""

    spelled: tuple[tuple[tuple[str, ...], str], ...]
    vectors: Vectors


def load_encoder(model_dir: Path) -> Encode:
    """The encoder of a model2vec directory; raises ModelUnusable."""
    if not model_dir.is_dir():  # the library would take it for a name and look for it elsewhere
        raise ModelUnusable(f"semantics.model_dir: {model_dir} is not a directory")
    try:
        model = importlib.import_module("model2vec").StaticModel.from_pretrained(str(model_dir))
    except ImportError:
        raise ModelUnusable(EXTRA_MISSING) from None
    except (OSError, ValueError, KeyError) as problem:
        raise ModelUnusable(f"semantics.model_dir: {model_dir}: {problem}") from None

    def encode(texts: Sequence[str], /) -> Vectors:
        found: Vectors = model.encode(list(texts), normalize=True, use_multiprocessing=False)
        return found

    return encode


def _confidence(cosine: float, *, lead: float) -> float:
    clear = min(1.0, lead / CLEAR_LEAD)
    sure = max(0.0, min(1.0, cosine)) * (TIE_FACTOR + (1 - TIE_FACTOR) * clear)
    return round(sure, 4)


def _phrase(parts: tuple[str, ...]) -> str:
    """The words of a value as a sentence's: `trackOrder` and `track_order` are `track order`."""
    return " ".join(parts)
