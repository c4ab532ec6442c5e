"""The syntax tree of a computed expression: the part of CEL that a workflow may use.

Every construct that may run has a node here, so that bounds are checked on the tree and only text
printed from the tree (`printing`) reaches the CEL library. `column` counts from 1.
"""

import enum
from dataclasses import dataclass
from typing import Final, TypeAlias

from gateway.expressions.path import Path

# Functions of one value, called as f(x); `size` also as x.size().
FUNCTIONS: Final = frozenset({"size", "string", "int", "uint", "double", "duration", "timestamp"})
# Methods and how many arguments each takes.
METHODS: Final = {
    "size": 0, "contains": 1, "startsWith": 1, "endsWith": 1, "matches": 1,
    "getFullYear": 0, "getMonth": 0, "getDate": 0, "getDayOfMonth": 0, "getDayOfWeek": 0,
    "getDayOfYear": 0, "getHours": 0, "getMinutes": 0, "getSeconds": 0, "getMilliseconds": 0,
}  # fmt: skip
# Macros and how many arguments each may take after the variable.
MACROS: Final = {
    "map": (1, 2), "filter": (1, 1), "all": (1, 1), "exists": (1, 1), "exists_one": (1, 1),
}  # fmt: skip
# Macros whose result is a list, over which another macro may run.
LIST_MACROS: Final = frozenset({"map", "filter"})


@dataclass(frozen=True, slots=True)
class Literal:
    """A number, string, boolean or null, as it is written."""

    text: str
    column: int


class Use(enum.Enum):
    """What an expression needs of the value at a path."""

    VALUE = "VALUE"
    # A macro runs over it: a list's elements, or an object's keys in their order.
    ELEMENTS = "ELEMENTS"
    SIZE = "SIZE"


@dataclass(frozen=True, slots=True)
class Ref:
    """The value at a path, or what is needed of it."""

    path: Path
    use: Use = Use.VALUE

    @property
    def column(self) -> int:
        return self.path.column


@dataclass(frozen=True, slots=True)
class Has:
    """Whether a path exists."""

    path: Path

    @property
    def column(self) -> int:
        return self.path.column


@dataclass(frozen=True, slots=True)
class Variable:
    """The variable of the macro around it."""

    column: int


@dataclass(frozen=True, slots=True)
class Select:
    """A field of a value that is not a path; `test` is `has(...)` around it."""

    operand: "Node"
    field: str
    column: int
    test: bool = False


@dataclass(frozen=True, slots=True)
class Index:
    operand: "Node"
    index: "Node"
    column: int


@dataclass(frozen=True, slots=True)
class Call:
    """A function or method; the receiver of a method is its first argument."""

    function: str
    arguments: tuple["Node", ...]
    is_method: bool
    column: int


@dataclass(frozen=True, slots=True)
class Macro:
    """`receiver.name(variable, bodies...)`. Macros do not nest."""

    name: str
    receiver: "Node"
    bodies: tuple["Node", ...]
    column: int


@dataclass(frozen=True, slots=True)
class Chain:
    """Operands of one level of precedence with the operators between them, read from the left."""

    operands: tuple["Node", ...]
    operators: tuple[str, ...]
    column: int


@dataclass(frozen=True, slots=True)
class Unary:
    marks: str
    operand: "Node"
    column: int


@dataclass(frozen=True, slots=True)
class Choice:
    """`test ? yes : no`."""

    test: "Node"
    yes: "Node"
    no: "Node"
    column: int


@dataclass(frozen=True, slots=True)
class Group:
    """Parentheses."""

    inner: "Node"
    column: int


@dataclass(frozen=True, slots=True)
class ListOf:
    items: tuple["Node", ...]
    column: int


@dataclass(frozen=True, slots=True)
class MapOf:
    """Keys are string literals, so that a result is always a JSON object."""

    entries: tuple[tuple[Literal, "Node"], ...]
    column: int


Node: TypeAlias = (
    Literal | Ref | Has | Variable | Select | Index | Call | Macro | Chain | Unary | Choice
    | Group | ListOf | MapOf
)  # fmt: skip


def children(node: Node) -> tuple[Node, ...]:
    """The nodes directly below."""
    match node:
        case Literal() | Ref() | Has() | Variable():
            return ()
        case Select(operand) | Unary(_, operand) | Group(operand):
            return (operand,)
        case Index(operand, index):
            return (operand, index)
        case Call(_, nodes) | Chain(nodes) | ListOf(nodes):
            return nodes
        case Macro(_, receiver, bodies):
            return (receiver, *bodies)
        case Choice(test, yes, no):
            return (test, yes, no)
        case MapOf(entries):
            return tuple(value for _, value in entries)
