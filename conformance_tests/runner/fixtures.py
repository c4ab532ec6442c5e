"""What a target's owner may tell the suite: safe calls, inputs for its roles, tokens, a restart.

A YAML file; every key is optional. README.md explains each. What it states is used where the card
has no safe example, never instead of a check.
"""

from pathlib import Path
from typing import Annotated

import msgspec
import yaml


class SafeCall(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Arguments that may really be sent, and the output if it is always the same."""

    action: str
    arguments: object = None
    output: object = msgspec.UNSET


class Tokens(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Bearer tokens of a gateway: `admin` may all, the others show what they may not."""

    admin: str = ""
    submit: str = ""
    component: str = ""
    component_names: tuple[str, ...] = ()
    other_tenant: str = ""


class Credential(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A credential that the gateway is configured to send to components, and what it sends."""

    name: str = ""
    secret: str = ""


class Fixtures(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    execute: tuple[SafeCall, ...] = ()
    plan: dict[str, object] = {}
    observe: dict[str, object] = {}
    reflect: dict[str, object] = {}
    token: str = ""
    exposed: bool = False
    tokens: Tokens = Tokens()
    credential: Credential = Credential()
    restart: Annotated[str, msgspec.Meta(description="kills and starts the target again")] = ""


class WrongFixtures(ValueError):
    """A fixtures file that cannot be read; the message names the key."""


def read_fixtures(path: Path | None) -> Fixtures:
    """The file's content, or nothing when there is none. Raises WrongFixtures."""
    if path is None:
        return Fixtures()
    try:
        return msgspec.convert(yaml.safe_load(path.read_text(encoding="utf-8")) or {}, Fixtures)
    except (OSError, yaml.YAMLError, msgspec.ValidationError) as problem:
        raise WrongFixtures(f"{path}: {problem}") from None
