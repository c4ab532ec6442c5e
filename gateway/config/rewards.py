"""Where the reward rules come from, and who reads comments."""

from pathlib import Path
from typing import Annotated

from pydantic import Field

from gateway.config.section import Section


class RewardSettings(Section):
    """How sessions are rewarded."""

    rules_file: Path | None = Field(
        default=None,
        description="A file of reward rules, read again when it changes; then only this file"
        " changes them. None: they are stored with `acp rewards put`; without any, rewards are as"
        " given.",
    )
    reflector: str = Field(
        default="",
        pattern=r"^$|^[^@\s]+@[0-9]+\.[0-9]+\.[0-9]+$",
        description="A registered reflector, name@version, that reads comments (a language model,"
        " say). Empty: words and phrases of six languages.",
    )
    reflector_timeout_ms: Annotated[int, Field(ge=1)] = Field(
        default=30_000,
        description="One reading; a language model takes seconds. Nobody waits for it.",
    )
    reload_ms: Annotated[int, Field(ge=10)] = Field(
        default=1_000, description="How often that file is looked at: one read of a small file."
    )
