"""The base of every section of the settings."""

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """Immutable, and a misspelt key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")
