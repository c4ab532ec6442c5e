"""Reads typed fields out of a file's tree (workflow, contract), every problem with its place.

Nothing raises for a fault of the file: a field that cannot be read gives its default, and the
problem is noted, so that an author sees all of them at once.
"""

import enum
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, TypeVar

from acp_spec.codec.yaml_tree import (
    Fault,
    Mapping,
    Place,
    Scalar,
    ScalarKind,
    Sequence,
    Tree,
    json_text,
)
from acp_spec.model.session import Problem
from gateway.expressions.expression import (
    Expression,
    ExpressionError,
    compile_expression,
    constant,
)

MAX_PROBLEMS: Final = 100
# What is shown of a value that is wrong; a file may hold one of 256 KiB.
MESSAGE_CHARACTERS_MAX: Final = 500
PATH_CHARACTERS_MAX: Final = 200
_TYPO_DISTANCE: Final = 2

Choice = TypeVar("Choice", bound=enum.Enum)


@dataclass(frozen=True, slots=True)
class Field:
    """A key's value with its path; what is read from it is named there."""

    path: str
    key: Place
    value: Tree

    @property
    def place(self) -> Place:
        return self.value.place


@dataclass(slots=True)
class FieldReader:
    """Collects problems while fields are read."""

    problems: list[Problem] = field(default_factory=list)

    def problem(self, place: Place, path: str, *, message: str) -> None:
        if not self.is_full:
            found = Problem(
                line=place.line,
                column=place.column,
                path=_cut(path, PATH_CHARACTERS_MAX),
                message=_cut(message, MESSAGE_CHARACTERS_MAX),
            )
            self.problems.append(found)

    @property
    def is_full(self) -> bool:
        """True once further problems are not noted: an author has enough to mend."""
        return len(self.problems) >= MAX_PROBLEMS

    def fault(self, found: Field, message: str) -> None:
        """A problem with a field's value."""
        self.problem(found.place, found.path, message=message)

    def take(self, faults: Iterable[Fault]) -> None:
        """Note what was wrong with the text itself."""
        for fault in faults:
            self.problem(fault.place, fault.path, message=fault.message)

    def fields(self, tree: Tree, path: str, *, known: Iterable[str] | None) -> dict[str, Field]:
        """The fields of an object by key; a key that is not `known` is a problem (None: any)."""
        if not isinstance(tree, Mapping):
            self.problem(
                tree.place, path, message=f"this must be {_an_object(path)}, not {_kind(tree)}"
            )
            return {}
        allowed = None if known is None else tuple(known)
        found: dict[str, Field] = {}
        for entry in tree.entries:
            key = entry.key.text
            inner = f"{path}.{key}" if path else key
            if allowed is not None and key not in allowed:
                self._unknown(entry.key, inner, allowed=allowed)
            else:
                found[key] = Field(inner, entry.key.place, entry.value)
        return found

    def _unknown(self, key: Scalar, path: str, *, allowed: tuple[str, ...]) -> None:
        if not self.is_full:  # the hint costs more than the rest of the file
            message = f"unknown key {_cut(key.text, PATH_CHARACTERS_MAX)!r}"
            self.problem(key.place, path, message=message + hint(key.text, allowed))

    def items(self, tree: Tree, path: str) -> tuple[Tree, ...]:
        """The elements of a list."""
        if isinstance(tree, Sequence):
            return tree.items
        self.problem(tree.place, path, message=f"this must be a list, not {_kind(tree)}")
        return ()

    def text(self, found: Field | None, *, pattern: str = "", advice: str = "") -> str:
        """A text, empty if absent or wrong. Numbers count as text: a version, a name."""
        if found is None:
            return ""
        value = found.value
        if not isinstance(value, Scalar) or value.kind in (ScalarKind.NULL, ScalarKind.BOOLEAN):
            self.fault(found, f"this must be text, not {_kind(value)}")
            return ""
        if pattern and re.fullmatch(pattern, value.text) is None:
            self.fault(found, f"{value.text!r} is not {advice}")
            return ""
        return value.text

    def integer(self, found: Field | None, default: int, *, least: int, most: int) -> int:
        """A whole number within bounds, else the default."""
        if found is None:
            return default
        value = found.value
        is_number = isinstance(value, Scalar) and value.kind is ScalarKind.NUMBER
        if isinstance(value, Scalar) and is_number and re.fullmatch("-?[0-9]{1,18}", value.text):
            number = int(value.text)
            if least <= number <= most:
                return number
        shown = value.text if isinstance(value, Scalar) else _kind(value)
        wanted = f"a whole number from {least} to {most}"
        self.fault(found, f"this must be {wanted}, not {shown}")
        return default

    def number(self, found: Field | None, default: float, *, least: float, most: float) -> float:
        """A number within bounds, else the default."""
        if found is None:
            return default
        value = found.value
        if isinstance(value, Scalar) and value.kind is ScalarKind.NUMBER:
            number = float(value.text)
            if least <= number <= most:
                return number
        shown = value.text if isinstance(value, Scalar) else _kind(value)
        self.fault(found, f"this must be a number from {least:g} to {most:g}, not {shown}")
        return default

    def boolean(self, found: Field | None) -> bool:
        """true or false; false if absent or wrong."""
        if found is None:
            return False
        value = found.value
        if not isinstance(value, Scalar) or value.kind is not ScalarKind.BOOLEAN:
            shown = value.text if isinstance(value, Scalar) else _kind(value)
            self.fault(found, f"this must be true or false, not {shown}")
            return False
        return value.text == "true"

    def choice(self, found: Field | None, choices: type[Choice]) -> Choice | None:
        """A member of an enum by name, in any case; None if absent or wrong."""
        if found is None:
            return None
        names = [member.name.lower() for member in choices]
        text = self.text(found).lower()
        if text in names:
            return choices[text.upper()]
        if text:
            near = closest(text, names)
            advice = f"; did you mean {near!r}?" if near else ""
            message = f"{text!r} is not one of {', '.join(names)}{advice}"
            self.fault(found, message)
        return None

    def expression(self, found: Field) -> Expression | None:
        """An expression; a value that is not text is a constant, its numbers spelled as here."""
        value = found.value
        if not isinstance(value, Scalar) or value.kind is not ScalarKind.TEXT:
            return constant(json_text(value))
        try:
            return compile_expression(value.text)
        except ExpressionError as error:
            self.problem(value.at(error.column), found.path, message=error.message)
            return None


def hint(word: str, known: Iterable[str]) -> str:
    """`; did you mean 'x'?` if a known word is close, else the list of the known ones."""
    words = sorted(known)
    near = closest(word, words)
    if near:
        return f"; did you mean {near!r}?"
    return f"; known here: {', '.join(words)}" if words else ""


def closest(word: str, known: Iterable[str]) -> str:
    """The known word that a typo away from `word` (two edits at most), or nothing."""
    limit = min(_TYPO_DISTANCE, len(word) // 2)
    near = [(distance(word.lower(), other.lower()), other) for other in known]
    best = min(near, default=(limit + 1, ""))
    return best[1] if best[0] <= limit else ""


def distance(one: str, other: str) -> int:
    """Edits between two words: insert, delete, replace, swap neighbours."""
    if abs(len(one) - len(other)) > _TYPO_DISTANCE:
        return _TYPO_DISTANCE + 1
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, a in enumerate(one, 1):
        two_before, before, row = before, row, [i]
        for j, b in enumerate(other, 1):
            cost = min(before[j] + 1, row[-1] + 1, before[j - 1] + (a != b))
            if i > 1 and j > 1 and a == other[j - 2] and one[i - 2] == b:
                cost = min(cost, two_before[j - 2] + 1)
            row.append(cost)
    return row[-1]


def _cut(text: str, characters: int) -> str:
    return text if len(text) <= characters else text[:characters] + "..."


def _kind(tree: Tree) -> str:
    match tree:
        case Scalar(kind=ScalarKind.NULL):
            return "nothing"
        case Scalar(kind=kind):
            return f"a {kind.value}" if kind is not ScalarKind.TEXT else "text"
        case Sequence():
            return "a list"
        case Mapping():
            return "an object"


def _an_object(path: str) -> str:
    return "an object (key: value)" if path else "an object with workflow, version and steps"
