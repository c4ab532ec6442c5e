"""Credentials are named in the settings and read when they are used; the settings hold no secret.

A reference is `env:NAME` or `file:PATH`. Whoever registers a component names the credential, the
gateway sends its value to that component, and no answer of the gateway ever contains it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path


class CredentialSource(StrEnum):
    """Where the value stands."""

    ENV = "env"
    FILE = "file"


@dataclass(frozen=True, slots=True)
class CredentialRef:
    """Points at a secret; `str()` gives the text it was read from, which is safe to print."""

    source: CredentialSource
    place: str

    def __str__(self) -> str:
        return f"{self.source}:{self.place}"


class CredentialUnavailable(Exception):
    """The secret is not where the settings say; the message names the place, never a value."""


def parse_credential(value: object) -> CredentialRef:
    """Read `env:NAME` or `file:PATH`; raises ValueError without echoing what might be a secret."""
    if isinstance(value, CredentialRef):
        return value
    kind, _, place = value.partition(":") if isinstance(value, str) else ("", "", "")
    if kind not in {source.value for source in CredentialSource} or not place:
        raise ValueError("write env:NAME or file:PATH; a credential's value never stands here")
    return CredentialRef(CredentialSource(kind), place)


def resolve_credential(ref: CredentialRef, *, environ: Mapping[str, str]) -> str:
    """The secret's value, without the newline at a file's end; raises CredentialUnavailable."""
    if ref.source is CredentialSource.ENV:
        value = environ.get(ref.place, "")
        hint = f"set the environment variable {ref.place}"
    else:
        value, hint = _read_secret(Path(ref.place)), f"write the credential into {ref.place}"
    if not value:
        raise CredentialUnavailable(f"credential {ref} is empty or missing: {hint}")
    return value


def _read_secret(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return ""
