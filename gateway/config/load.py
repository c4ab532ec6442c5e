"""Where settings come from: flags over environment over file over defaults.

Each leaf keeps the name of the source that set it, so that an error and `--print-config` can say
where a value stands. Nothing here reads the process environment by itself: it is passed in.
"""

import difflib
import json
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import yaml
from pydantic import BaseModel, ValidationError

from gateway.config.settings import Settings

ENV_PREFIX = "ACP_"
CONFIG_FILE_VARIABLE = "ACP_CONFIG"
DEFAULT_SOURCE = "default"
LIST_SEPARATOR = ","
SHORT_FLAGS: Mapping[str, str] = {
    "http.bind": "--http",
    "grpc.bind": "--grpc",
    "auth.behind_tls_proxy": "--behind-tls-proxy",
}


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong, and where it was said."""

    key: str
    source: str
    message: str

    def __str__(self) -> str:
        return f"{self.key} (from {self.source}): {self.message}"


class SettingsError(Exception):
    """The settings cannot be used; `problems` holds every one that was found."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        super().__init__("\n".join(str(problem) for problem in problems))
        self.problems = problems


@dataclass(frozen=True, slots=True)
class LoadedSettings:
    """Checked settings, and the source of every leaf that is not a default."""

    settings: Settings
    sources: Mapping[str, str]

    def source_of(self, key: str) -> str:
        """The source of one dotted key, `default` if nobody set it."""
        return self.sources.get(key, DEFAULT_SOURCE)


@dataclass(frozen=True, slots=True)
class _Given:
    """A value as it was written, with its dotted key and source."""

    key: str
    value: object
    source: str


def load_settings(
    *,
    environ: Mapping[str, str],
    file: Path | None = None,
    flags: Mapping[str, object] | None = None,
) -> LoadedSettings:
    """Merge all sources and check them; flags are dotted keys, None there means not given.

    Without `file`, the variable ACP_CONFIG may name one. Raises SettingsError.
    """
    path = file if file is not None else _file_from_environment(environ)
    given = [
        *(_from_file(path) if path is not None else ()),
        *_from_environment(environ),
        *_from_flags(flags or {}),
    ]
    problems = [problem for one in given if (problem := _unknown_key(one)) is not None]
    if problems:
        raise SettingsError(tuple(problems))
    tree: dict[str, object] = Settings().model_dump()
    for one in given:
        _put(tree, one.key.split("."), value=one.value)
    sources = {one.key: one.source for one in given}
    try:
        return LoadedSettings(Settings.model_validate(tree), sources)
    except ValidationError as error:
        raise SettingsError(_translate(error, sources)) from None


def as_dict(settings: Settings) -> dict[str, object]:
    """The settings as plain JSON values, secrets masked; what `acp serve --print-config` prints."""
    return settings.model_dump(mode="json")


def keys() -> tuple[str, ...]:
    """Every dotted key that can be set, in the order of the sections."""
    return tuple(_leaves(Settings))


def variable_of(key: str) -> str:
    """The environment variable of a dotted key: journal.sync is ACP_JOURNAL_SYNC."""
    return ENV_PREFIX + key.upper().replace(".", "_")


def _leaves(model: type[BaseModel], prefix: str = "") -> Iterator[str]:
    for name, field in model.model_fields.items():
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            yield from _leaves(kind, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}"


def _file_from_environment(environ: Mapping[str, str]) -> Path | None:
    named = environ.get(CONFIG_FILE_VARIABLE, "")
    return Path(named) if named else None


def _from_file(path: Path) -> Iterator[_Given]:
    tree = _parse_file(path)
    yield from _flatten(tree, source=str(path), prefix="")


def _parse_file(path: Path) -> Mapping[str, object]:
    try:
        text = path.read_text(encoding="utf-8")
        parsed: object = tomllib.loads(text) if path.suffix == ".toml" else yaml.safe_load(text)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, yaml.YAMLError) as error:
        raise SettingsError((Problem("file", str(path), f"cannot be read: {error}"),)) from None
    if parsed is None:
        return {}
    if not isinstance(parsed, dict):
        message = "must be a table of sections, such as journal: {sync: true}"
        raise SettingsError((Problem("file", str(path), message),))
    return cast("dict[str, object]", parsed)


def _flatten(tree: Mapping[str, object], *, source: str, prefix: str) -> Iterator[_Given]:
    known = keys()
    for name, value in tree.items():
        key = f"{prefix}{name}"
        if isinstance(value, dict) and key not in known:
            yield from _flatten(cast("dict[str, object]", value), source=source, prefix=f"{key}.")
        else:
            yield _Given(key, value, source)


def _from_environment(environ: Mapping[str, str]) -> Iterator[_Given]:
    by_variable = {variable_of(key): key for key in keys()}
    sections = tuple(variable_of(name) + "_" for name in _section_names())
    for variable, text in sorted(environ.items()):
        if not text:
            continue  # an empty variable is the usual way of a shell to say "not set"
        if variable in by_variable:
            key = by_variable[variable]
            yield _Given(key, _read_text(key, text), variable)
        elif variable.startswith(sections):
            key = variable.removeprefix(ENV_PREFIX).lower().replace("_", ".", 1)
            yield _Given(key, text, variable)


def _section_names() -> tuple[str, ...]:
    return tuple(dict.fromkeys(key.partition(".")[0] for key in keys() if "." in key))


def _read_text(key: str, text: str) -> object:
    """Lists are written with commas, tables as JSON; everything else is left to the check."""
    default: object = Settings()
    for name in key.split("."):
        default = getattr(default, name)
    if isinstance(default, dict):
        return _read_table(text)
    if isinstance(default, tuple) or key == "outbound.allow":
        return [part.strip() for part in text.split(LIST_SEPARATOR)]
    return text


def _read_table(text: str) -> object:
    try:
        return cast("object", json.loads(text))
    except json.JSONDecodeError:
        return text  # no table: the check says so, and names the variable


def _from_flags(flags: Mapping[str, object]) -> Iterator[_Given]:
    for key, value in flags.items():
        if value is not None:
            long_flag = "--" + key.replace(".", "-").replace("_", "-")
            yield _Given(key, value, SHORT_FLAGS.get(key, long_flag))


def _unknown_key(given: _Given) -> Problem | None:
    known = keys()
    if given.key in known:
        return None
    if any(key.startswith(f"{given.key}.") for key in known):
        return Problem(given.key, given.source, "is a section: write a table of its keys")
    near = difflib.get_close_matches(given.key, known, n=1)
    hint = f"did you mean {near[0]}?" if near else "run `acp serve --print-config` for all keys"
    return Problem(given.key, given.source, f"is no setting; {hint}")


def _put(tree: dict[str, object], path: list[str], *, value: object) -> None:
    for name in path[:-1]:
        tree = cast("dict[str, object]", tree[name])
    tree[path[-1]] = value


def _translate(error: ValidationError, sources: Mapping[str, str]) -> tuple[Problem, ...]:
    """One problem per finding; the input is never echoed, it may be a secret."""
    return tuple(
        _problem(
            tuple(str(part) for part in finding["loc"]),
            finding["msg"].removeprefix("Value error, "),
            is_pattern=finding["type"] == "string_pattern_mismatch",
            sources=sources,
        )
        for finding in error.errors(include_url=False, include_context=False)
    )


def _problem(
    location: tuple[str, ...], message: str, *, is_pattern: bool, sources: Mapping[str, str]
) -> Problem:
    path = ".".join(location)
    for key in keys():
        if path == key or path.startswith(f"{key}."):
            if is_pattern and path == key:
                message = f"is not of the form it must have: {_description(key)}"
            return Problem(key, sources.get(key, DEFAULT_SOURCE), message)
    said = sorted({source for key, source in sources.items() if key.startswith(path)})
    return Problem(path or "settings", ", ".join(said) or DEFAULT_SOURCE, message)


def _description(key: str) -> str:
    """What a setting is for: of a form it says more than the pattern does."""
    model: type[BaseModel] = Settings
    *sections, name = key.split(".")
    for section in sections:
        kind = model.model_fields[section].annotation
        assert isinstance(kind, type)
        assert issubclass(kind, BaseModel)
        model = kind
    return model.model_fields[name].description or ""
