"""Who guesses which value of a domain is meant, where neither name, folding nor synonym says it."""

from enum import StrEnum
from pathlib import Path
from typing import Self

from pydantic import Field, model_validator

from gateway.config.section import Section


class NearestKind(StrEnum):
    """The models of `nearest` that the gateway can run."""

    NGRAMS = "ngrams"
    EMBEDDING = "embedding"
    OFF = "off"


class SemanticsSettings(Section):
    """How values with a declared domain are looked up."""

    nearest: NearestKind = Field(
        default=NearestKind.NGRAMS,
        description="ngrams compares spellings and needs nothing; embedding adds meanings (extra"
        " semantics, and a model in model_dir); off refuses whatever is not declared.",
    )
    model_dir: Path | None = Field(
        default=None,
        description="A directory with a static embedding model (model2vec). It is never fetched.",
    )

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.nearest is NearestKind.EMBEDDING and self.model_dir is None:
            raise ValueError("nearest: embedding needs model_dir: the directory of its model")
        return self
