"""The cases: `cases/v1/<kind>/*.yaml`, read once and checked, so that a typing error is no green.

A file is a list of cases. A case names one requirement, what it needs, over what it is repeated,
and either `steps` (a scenario) or `watch` (a rule over everything that was said in the run).
README.md in `cases/` explains each key.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import cast

import yaml

from conformance_tests.messages.tree import Text, Tree, Value
from conformance_tests.runner.requirements import Party, Requirement, requirements

BINDINGS = ("http", "grpc", "attach")
CASE_KEYS = frozenset(
    {
        "requirement",
        "name",
        "about",
        "over",
        "needs",
        "each",
        "steps",
        "watch",
        "none",
        "alone",
        "stage",
    }
)
STEP_KEYS = frozenset(
    {"do", "as", "given", "wrong", "expect", "message", "drop", "context", "headers", "same", "raw"}
    | {"action", "arguments", "example", "ms", "together", "until", "path", "http", "grpc", "to"}
    | {"body", "stream", "pad", "only_if", "input", "query", "token", "wait_s", "by", "of"}
    | {"at_least", "says", "attach", "until_s", "frames"}
)
WATCH_KEYS = frozenset({"when", "expect"})


class WrongCase(ValueError):
    """A case that cannot be run as written; the message names file, case and key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One thing that is done. `given`: its failure says nothing about the requirement."""

    do: str
    label: str
    given: bool
    wrong: bool
    expect: Tree
    options: Tree
    together: tuple["Step", ...] = ()

    @property
    def checks(self) -> int:
        return len(self.expect) + sum(step.checks for step in self.together)


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """A rule over every exchange of the run for which `when` holds."""

    when: Tree
    expect: Tree


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    requirement: Requirement
    name: str
    kind: Party
    about: str = ""
    over: tuple[str, ...] = BINDINGS
    needs: tuple[str, ...] = ()
    each: Mapping[str, Value] = field(default_factory=dict)
    steps: tuple[Step, ...] = ()
    watch: Watch | None = None
    none: str = ""
    """What a watch that saw nothing means: the reason why it is not applicable, else not tested."""
    alone: bool = False
    stage: Tree = field(default_factory=dict)

    @property
    def id(self) -> str:
        return f"{self.requirement.id}/{self.name}"

    @property
    def checks(self) -> int:
        if self.watch is not None:
            return len(self.watch.expect)
        return sum(step.checks for step in self.steps)


class _Loader(yaml.SafeLoader):
    """YAML with `!text '...'` (JSON text, byte for byte) and `!hex "22ff22"` (any bytes)."""


def _text(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> Text:
    return Text(str(loader.construct_scalar(node)).encode())


def _hex(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> Text:
    return Text(bytes.fromhex(str(loader.construct_scalar(node))))


_Loader.add_constructor("!text", _text)
_Loader.add_constructor("!hex", _hex)


@cache
def library(kind: Party) -> tuple[Case, ...]:
    """Every case for this kind of target; an SDK's are those of a component and its own."""
    folders = ("component", "sdk") if kind is Party.SDK else (kind.value,)
    root = files("conformance_tests") / "cases" / "v1"
    found = [case for folder in folders for case in _of_folder(root / folder, Party(folder))]
    seen: set[str] = set()
    for case in found:
        if case.id in seen:
            raise WrongCase(f"{case.id} stands twice")
        seen.add(case.id)
    return tuple(found)


def _of_folder(folder: Traversable, kind: Party) -> Iterator[Case]:
    for file in sorted(folder.iterdir(), key=lambda one: one.name):
        if file.name.endswith(".yaml"):
            yield from read_cases(file.read_text(encoding="utf-8"), kind, name=file.name)


def read_cases(text: str, kind: Party, *, name: str) -> list[Case]:
    """The cases of one file. Raises WrongCase."""
    items = yaml.load(text, _Loader)  # a safe loader with two constructors
    if not isinstance(items, list):
        raise WrongCase(f"{name}: a file is a list of cases")
    return [_case(item, kind, where=f"{name}[{index}]") for index, item in enumerate(items)]


def _case(item: Tree, kind: Party, *, where: str) -> Case:
    _known(item, CASE_KEYS, where=where)
    id_ = str(item.get("requirement"))
    found = requirements().get(id_)
    if found is None:
        raise WrongCase(f"{where}: {id_} is no requirement of SPEC.md")
    where = f"{where} {id_}/{item.get('name')}"
    if not item.get("name"):
        raise WrongCase(f"{where}: a case needs a name")
    watch = _watch(cast("Tree", item["watch"]), where=where) if "watch" in item else None
    listed = cast("list[Tree]", item.get("steps", []))
    steps = tuple(_step(step, str(number), where=where) for number, step in enumerate(listed, 1))
    case = Case(
        requirement=found,
        name=str(item["name"]),
        kind=kind,
        about=str(item.get("about", "")),
        over=tuple(cast("list[str]", item.get("over", _bindings(kind)))),
        needs=tuple(cast("list[str]", item.get("needs", []))),
        each=cast("Tree", item.get("each", {})),
        steps=steps,
        watch=watch,
        none=str(item.get("none", "")),
        alone=bool(item.get("alone", False)),
        stage=cast("Tree", item.get("stage", {})),
    )
    if not case.checks:
        raise WrongCase(f"{where}: it expects nothing, so it could not fail")
    return case


def _bindings(kind: Party) -> list[str]:
    """A gateway's cases say themselves when they speak gRPC."""
    return ["http"] if kind is Party.GATEWAY else list(BINDINGS)


def _watch(item: Tree, *, where: str) -> Watch:
    _known(item, WATCH_KEYS, where=where)
    return Watch(when=cast("Tree", item.get("when", {})), expect=cast("Tree", item["expect"]))


def _step(item: Tree, number: str, *, where: str) -> Step:
    _known(item, STEP_KEYS, where=f"{where} step {number}")
    inner = cast("list[Tree]", item.get("together", []))
    label = str(item.get("as", number))
    return Step(
        do="together" if inner else str(item.get("do", "")),
        label=label,
        given=bool(item.get("given", False)),
        wrong=bool(item.get("wrong", False)),
        expect=cast("Tree", item.get("expect", {})),
        options={k: v for k, v in item.items() if k not in {"expect", "together", "as"}},
        together=tuple(_step(one, f"{label}.{n}", where=where) for n, one in enumerate(inner, 1)),
    )


def _known(item: object, keys: frozenset[str], *, where: str) -> None:
    if not isinstance(item, dict):
        raise WrongCase(f"{where}: expected a mapping, got {item!r}")
    unknown = sorted(set(item) - keys)
    if unknown:
        raise WrongCase(f"{where}: unknown keys {unknown}; known: {sorted(keys)}")
