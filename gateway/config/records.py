"""Settings of the records: where every session can be asked for by SQL."""

from enum import StrEnum
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field, PlainSerializer

from gateway.config.credentials import CredentialRef, parse_credential
from gateway.config.section import Section
from gateway.config.web_addresses import no_or_web_address


class RecordsStart(StrEnum):
    """When the process that keeps the records begins."""

    FIRST_USE = "first_use"
    WITH_GATEWAY = "with_gateway"


class RecordsSettings(Section):
    """The structured replay store (extra `records`)."""

    start: RecordsStart = Field(
        default=RecordsStart.FIRST_USE,
        description="first_use: nothing runs until somebody asks; it then feeds itself from the"
        " trajectories of before. with_gateway: it follows from the start on.",
    )
    url: Annotated[str, AfterValidator(no_or_web_address)] = Field(
        default="",
        description="A ClickHouse to use, http(s)://user@host:port. Empty: an embedded one in a"
        " process of its own, its files in the data directory.",
    )
    password: (
        Annotated[
            CredentialRef,
            BeforeValidator(parse_credential),
            PlainSerializer(str, return_type=str),
        ]
        | None
    ) = Field(default=None, description="env:NAME or file:PATH, for the user of records.url.")
    tick_ms: Annotated[int, Field(ge=1, le=10_000)] = Field(
        default=80, description="How often the trajectories are looked at: seen within 200 ms."
    )
    verify_every_ms: Annotated[int, Field(ge=0)] = Field(
        default=86_400_000,
        description="How often all of the log is compared with the store by hash, and what differs"
        " healed: at night is often enough, it reads all of both. 0: only when asked.",
    )
    query_timeout_ms: Annotated[int, Field(ge=1)] = Field(
        default=10_000, description="One question at most; it may ask for less."
    )
    query_rows_max: Annotated[int, Field(ge=1)] = Field(
        default=10_000, description="Rows of one answer at most: it stands in memory once."
    )
