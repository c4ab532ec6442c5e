"""What counts as secret, where nobody but the components may see it."""

from pydantic import Field

from gateway.config.section import Section


class SecretsSettings(Section):
    """What is masked in records, logs and pages; trajectories keep it, as training reads them."""

    fields: tuple[str, ...] = Field(
        default=(),
        description="Further fields whose value is masked, beside the usual ones (docs/secrets.md):"
        " names, which hold as the end of a key however written, and paths such as card.number;"
        " -name takes a usual one away.",
    )
    patterns: dict[str, str] = Field(
        default_factory=dict,
        description="Kind -> pattern of further secrets in any text, such as staff: EMP-[0-9]{6}."
        " An empty one switches off a kind: private_key, bearer, url_password, web_token, key,"
        " card.",
    )
