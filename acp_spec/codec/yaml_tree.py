"""YAML (or JSON) text as a tree that knows the line and column of every value.

Scalars are read by YAML 1.2's core rules: `on`, `yes` and `no` are text, only true and false are
booleans, and a number keeps the spelling it has in the file. What can hurt is refused: aliases
(they can multiply), tags (they can name code), deep nesting, keys that occur twice. Nothing is
built but strings; every fault is collected, unless the text cannot be read on.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeAlias

import msgspec
import yaml

MAX_BYTES: Final = 256 * 1024
MAX_NESTING: Final = 32
# Keys and values. A hundred steps have two thousand; each costs 6 us of whoever reads the file.
MAX_VALUES: Final = 20_000
# The compiled reader is about 20 times faster; the other one reads the same language.
_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_SURROGATES: Final = re.compile(r"\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})")
_HALF_PAIR: Final = re.compile("[\ud800-\udfff]")
_ESCAPE: Final = re.compile(r"\\(?:x..|u.{4}|U.{8}|.)|.")
# What ends a line for the reader, whose line numbers we index with.
_LINE_END: Final = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
_CONSTANTS: Final = {
    **dict.fromkeys(("null", "Null", "NULL", "~", ""), "null"),
    **dict.fromkeys(("true", "True", "TRUE"), "true"),
    **dict.fromkeys(("false", "False", "FALSE"), "false"),
}


class ScalarKind(Enum):
    TEXT = "text"
    NUMBER = "number"
    BOOLEAN = "boolean"
    NULL = "null"


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """A line and a column, both from 1."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Scalar:
    """`text` is the value; for a number its spelling, for a boolean or null its JSON form.

    `columns` are the file's columns of the text's characters where the scalar stands on one line,
    else empty: `at` is then the beginning of the scalar.
    """

    text: str
    kind: ScalarKind
    place: Place
    columns: tuple[int, ...] = ()

    def at(self, column: int) -> Place:
        """Where the character `column` (from 1) of the text, or its end, stands in the file."""
        if self.columns and column == len(self.columns) + 1:
            return Place(self.place.line, self.columns[-1] + 1)
        if not 1 <= column <= len(self.columns):
            return self.place
        return Place(self.place.line, self.columns[column - 1])


@dataclass(frozen=True, slots=True)
class Sequence:
    items: tuple["Tree", ...]
    place: Place


@dataclass(frozen=True, slots=True)
class Entry:
    key: Scalar
    value: "Tree"


@dataclass(frozen=True, slots=True)
class Mapping:
    entries: tuple[Entry, ...]
    place: Place

    def get(self, key: str) -> "Tree | None":
        """The value of a key, or None if it is absent."""
        return next((entry.value for entry in self.entries if entry.key.text == key), None)


Tree: TypeAlias = Scalar | Sequence | Mapping


@dataclass(frozen=True, slots=True)
class Fault:
    place: Place
    path: str
    message: str


@dataclass(frozen=True, slots=True)
class Reading:
    """What was read; `tree` is None if the text cannot be read at all (then there are faults)."""

    tree: Tree | None
    faults: tuple[Fault, ...] = ()


def read_tree(data: bytes) -> Reading:
    """Read one document of UTF-8 text."""
    if len(data) > MAX_BYTES:
        return _unreadable(f"the file has {len(data)} bytes, at most {MAX_BYTES} are allowed")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = data[: error.start]
        place = Place(before.count(b"\n") + 1, error.start - (before.rfind(b"\n") + 1) + 1)
        return _unreadable("the file is not valid UTF-8 here", place)
    if text.lstrip()[:1] == "{":
        text = _SURROGATES.sub(_joined, text)
    builder = _Builder(_LINE_END.split(text))
    try:
        tree = builder.document(yaml.parse(text, Loader=_LOADER))
    except yaml.MarkedYAMLError as error:
        return Reading(None, (*builder.faults, _syntax_fault(error, builder.lines)))
    except yaml.reader.ReaderError as error:
        before_text = text[: error.position]
        place = Place(before_text.count("\n") + 1, len(before_text) - before_text.rfind("\n"))
        return _unreadable("this character is not allowed in YAML", place)
    except _Unreadable as error:
        return Reading(None, (*builder.faults, error.fault))
    return Reading(tree, tuple(builder.faults))


def json_text(tree: Tree) -> bytes:
    """The tree as JSON text; numbers keep their spelling."""
    match tree:
        case Scalar(text, ScalarKind.TEXT):
            return msgspec.json.encode(text)
        case Scalar(text):
            return text.encode()
        case Sequence(items):
            return b"[" + b",".join(json_text(item) for item in items) + b"]"
        case Mapping(entries):
            members = (msgspec.json.encode(e.key.text) + b":" + json_text(e.value) for e in entries)
            return b"{" + b",".join(members) + b"}"


class _Unreadable(Exception):
    def __init__(self, fault: Fault) -> None:
        self.fault = fault


class _Builder:
    """Builds the tree from the reader's events. Recursion is bounded by MAX_NESTING."""

    def __init__(self, lines: list[str]) -> None:
        self.lines = lines
        self.faults: list[Fault] = []
        self.depth = 0
        self.values = 0

    def document(self, events: Iterator[yaml.Event]) -> Tree:
        next(events)  # the stream begins
        first = next(events)
        if isinstance(first, yaml.StreamEndEvent):
            raise _Unreadable(Fault(Place(1, 1), "", "the file is empty"))
        tree = self.value(next(events), events, path="")
        next(events)  # the document ends
        after = next(events)
        if not isinstance(after, yaml.StreamEndEvent):
            message = "a second document begins here; a file holds one"
            raise _Unreadable(Fault(_place(after), "", message))
        return tree

    def value(self, event: yaml.Event, events: Iterator[yaml.Event], *, path: str) -> Tree:
        place = _place(event)
        self.values += 1
        if self.values > MAX_VALUES:
            message = f"more than {MAX_VALUES} keys and values: no workflow is that long"
            raise _Unreadable(Fault(place, path, message))
        if isinstance(event, yaml.AliasEvent):
            self.fault(place, path, message="aliases (*name) are not allowed: write the value out")
            return Scalar("null", ScalarKind.NULL, place)
        assert isinstance(event, yaml.ScalarEvent | yaml.CollectionStartEvent)
        if event.tag is not None:
            self.fault(place, path, message=f"tags ({event.tag}) are not allowed")
        if isinstance(event, yaml.ScalarEvent):
            return self.scalar(event, place)
        self.depth += 1
        if self.depth > MAX_NESTING:
            message = f"nested more than {MAX_NESTING} deep"
            raise _Unreadable(Fault(place, path, message))
        is_sequence = isinstance(event, yaml.SequenceStartEvent)
        tree = (self.sequence if is_sequence else self.mapping)(events, path, place=place)
        self.depth -= 1
        return tree

    def sequence(self, events: Iterator[yaml.Event], path: str, *, place: Place) -> Tree:
        items: list[Tree] = []
        while not isinstance(event := next(events), yaml.SequenceEndEvent):
            items.append(self.value(event, events, path=f"{path}[{len(items)}]"))
        return Sequence(tuple(items), place)

    def mapping(self, events: Iterator[yaml.Event], path: str, *, place: Place) -> Tree:
        entries: dict[str, Entry] = {}
        while not isinstance(event := next(events), yaml.MappingEndEvent):
            key = self.value(event, events, path=path)
            inner = path
            if isinstance(key, Scalar):
                inner = f"{path}.{key.text}" if path else key.text
            value = self.value(next(events), events, path=inner)
            if not isinstance(key, Scalar):
                self.fault(key.place, path, message="a key must be plain text")
            elif key.text in entries:
                line = entries[key.text].key.place.line
                self.fault(key.place, inner, message=f"the key is already set in line {line}")
            else:
                entries[key.text] = Entry(key, value)
        return Mapping(tuple(entries.values()), place)

    def scalar(self, event: yaml.ScalarEvent, place: Place) -> Scalar:
        text = event.value
        if _HALF_PAIR.search(text):
            self.fault(place, "", message="this text holds half of a surrogate pair")
            return Scalar("", ScalarKind.TEXT, place)
        if event.style in (None, ""):
            if text in _CONSTANTS:
                constant = _CONSTANTS[text]
                kind = ScalarKind.NULL if constant == "null" else ScalarKind.BOOLEAN
                return Scalar(constant, kind, place)
            kind = ScalarKind.NUMBER if _NUMBER.fullmatch(text) else ScalarKind.TEXT
            return Scalar(text, kind, place, self.columns(event, place))
        return Scalar(text, ScalarKind.TEXT, place, self.columns(event, place))

    def columns(self, event: yaml.ScalarEvent, place: Place) -> tuple[int, ...]:
        """The columns of a one-line scalar's characters; empty if it stands on more lines."""
        end = _end(event)
        if end.line != place.line or event.style in ("|", ">"):
            return ()
        first = place.column
        if event.style == '"':
            source = self.lines[place.line - 1][first : end.column - 2]
            return tuple(first + 1 + found.start() for found in _ESCAPE.finditer(source))
        if event.style == "'":
            columns, column = [], first + 1
            for character in event.value:
                columns.append(column)
                column += 2 if character == "'" else 1
            return tuple(columns)
        return tuple(range(first, first + len(event.value)))

    def fault(self, place: Place, path: str, *, message: str) -> None:
        self.faults.append(Fault(place, path, message))


def _place(event: yaml.Event) -> Place:
    mark = event.start_mark
    assert mark is not None
    return Place(mark.line + 1, mark.column + 1)


def _end(event: yaml.Event) -> Place:
    mark = event.end_mark
    assert mark is not None
    return Place(mark.line + 1, mark.column + 1)


def _syntax_fault(error: yaml.MarkedYAMLError, lines: list[str]) -> Fault:
    mark = error.problem_mark or error.context_mark
    place = Place(mark.line + 1, mark.column + 1) if mark else Place(1, 1)
    if place.line > len(lines):
        place = Place(len(lines), len(lines[-1]) + 1)
    context = f" {error.context}" if error.context else ""
    return Fault(place, "", f"this is not YAML:{context} {error.problem or ''}".rstrip())


def _joined(found: re.Match[str]) -> str:
    """The character of an escaped surrogate pair (JSON has those, YAML does not)."""
    pair = bytes.fromhex(found[1] + found[2])
    return pair.decode("utf-16-be")


def _unreadable(message: str, place: Place = Place(1, 1)) -> Reading:
    return Reading(None, (Fault(place, "", message),))
