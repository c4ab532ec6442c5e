"""The masker of this gateway, from its settings."""

from collections.abc import Mapping

from gateway.config.load import DEFAULT_SOURCE, Problem, SettingsError
from gateway.config.settings import Settings
from gateway.telemetry.masking import Masker


def masker_of(settings: Settings, sources: Mapping[str, str] | None = None) -> Masker:
    """What hides secrets here. Raises SettingsError where a field or pattern cannot be used.

    `sources`: where each setting came from, for the message.
    """
    told = settings.secrets
    found: list[Problem] = []
    for key, fields, patterns in (
        ("secrets.fields", told.fields, {}),
        ("secrets.patterns", (), told.patterns),
    ):
        try:
            Masker(fields, patterns)
        except ValueError as problem:
            source = (sources or {}).get(key, DEFAULT_SOURCE)
            found.append(Problem(key, source, str(problem)))
    if found:
        raise SettingsError(tuple(found))
    return Masker(told.fields, told.patterns)
