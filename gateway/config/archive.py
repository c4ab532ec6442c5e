"""Settings of the archive: where old trajectories go, when, and for how long."""

import os
from pathlib import Path
from typing import Annotated, Final, Self

from pydantic import BeforeValidator, Field, PlainSerializer, model_validator

from gateway.config.credentials import CredentialRef, parse_credential
from gateway.config.section import Section

TAKEN: Final = ("store", "trajectories", "records", "rewards", "archive-work")
"""Folders of the data directory that are others': some may be deleted, some are written anew."""


class ArchiveSettings(Section):
    """The cold tier of the trajectory log (extra `records`)."""

    enabled: bool = Field(
        default=True,
        description="Files of the trajectory log leave for the archive when they are old enough."
        " Without the extra `records` they stay, and the log says so.",
    )
    url: str = Field(
        default="",
        description="A directory, or what fsspec reaches: s3://bucket/prefix. Empty: `archive` in"
        " the data directory. Gateways may share one place: each writes below its own id.",
    )
    options: dict[str, str] = Field(
        default_factory=dict,
        description="Options of that file system, such as endpoint_url. No secrets here.",
    )
    credentials: dict[
        str,
        Annotated[
            CredentialRef,
            BeforeValidator(parse_credential),
            PlainSerializer(str, return_type=str),
        ],
    ] = Field(
        default_factory=dict,
        description="Option -> env:NAME or file:PATH, for those that are secrets: {key:"
        " env:AWS_ACCESS_KEY_ID, secret: env:AWS_SECRET_ACCESS_KEY}. Empty: the store's own ways.",
    )
    hot_days: Annotated[int, Field(ge=0)] = Field(
        default=7,
        description="Days after the day on which a file was written until it leaves: what is"
        " younger is read without unpacking. 0: as soon as a newer file is there.",
    )
    keep_days: Annotated[int, Field(ge=0)] = Field(
        default=0,
        description="Days until retention erases a session everywhere, counted from its end or its"
        " last feedback. 0: never, as losing sessions must be somebody's decision.",
    )
    every_ms: Annotated[int, Field(ge=1)] = Field(
        default=600_000, description="How often is looked whether something has to be done."
    )

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.keep_days and self.keep_days <= self.hot_days:
            raise ValueError("archive.keep_days must be over archive.hot_days, or 0 for ever")
        return self


def place_problem(url: str, data_dir: Path) -> str:
    """Why files must not leave for there; empty if they may."""
    scheme, _, path = url.rpartition("://")
    if "memory" in scheme.lower().split("::"):
        return "archive.url: memory keeps nothing: each file that left would be lost"
    if not url or scheme.lower() not in ("", "file", "local"):
        return ""
    place, data = (Path(os.path.normpath(one.absolute())) for one in (Path(path), data_dir))
    for folder in TAKEN:
        if place.is_relative_to(data / folder):
            return f"archive.url: {data / folder} is not the archive's: name a folder of its own"
    return ""
