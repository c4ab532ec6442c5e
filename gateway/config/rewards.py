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
    reload_ms: Annotated[int, Field(ge=10)] = Field(
        default=1_000, description="How often that file is looked at: one read of a small file."
    )
