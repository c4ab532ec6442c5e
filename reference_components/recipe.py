"""A component's recipe: the file `<folder>/component.toml`, read once into a frozen value.

The fields are explained in `README.md` beside this module. Nothing here builds or starts anything.
"""

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable

from acp_spec.model.enums import Transport

RECIPE_FILE = "component.toml"


class RecipeError(Exception):
    """A component.toml that cannot be used; the message names the file and the field."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A command that must be on PATH, and the Debian package that brings it."""

    command: str
    package: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ComponentSpec:
    """One component: what it needs, how it is built, how it is run, how one sees that it serves."""

    name: str
    folder: str
    language: str
    transport: Transport
    needs: tuple[Tool, ...]
    sources: tuple[str, ...]
    build: tuple[tuple[str, ...], ...]
    build_env: Mapping[str, str]
    run: tuple[str, ...]
    env: Mapping[str, str]
    ready: str


def recipes() -> list[ComponentSpec]:
    """Every component of this package, by name."""
    found = [read_recipe(folder) for folder in _folders()]
    return sorted(found, key=lambda spec: spec.name)


def read_recipe(folder: Traversable) -> ComponentSpec:
    """The recipe of one folder; raises RecipeError when a field is missing or of the wrong kind."""
    text = (folder / RECIPE_FILE).read_text(encoding="utf-8")
    try:
        data = tomllib.loads(text)
        return ComponentSpec(
            name=str(data["name"]),
            folder=folder.name,
            language=str(data["language"]),
            transport=Transport[data["transport"]],
            needs=tuple(
                Tool(command=tool["command"], package=tool["package"])
                for tool in data.get("needs", [])
            ),
            sources=tuple(data.get("sources", [])),
            build=tuple(tuple(command) for command in data.get("build", [])),
            build_env=dict(data.get("build_env", {})),
            run=tuple(data["run"]),
            env=dict(data.get("env", {})),
            ready=str(data.get("ready", "")),
        )
    except (KeyError, TypeError, tomllib.TOMLDecodeError) as problem:
        raise RecipeError(f"{folder.name}/{RECIPE_FILE}: {problem!r}") from problem


def _folders() -> Iterator[Traversable]:
    for folder in files("reference_components").iterdir():
        if folder.is_dir() and (folder / RECIPE_FILE).is_file():
            yield folder
