"""From the tree back to text for the CEL library, with every path turned into a plain variable.

A path `act.results[0].id` becomes `v0`, which is bound to the decoded value of that path alone, and
`has(path)` becomes a boolean `h0`: so nothing else need be decoded, a skipped (null) step does not
break a guard, and one name means one value whatever the library thinks of it.
"""

from dataclasses import dataclass, field
from typing import Final

from gateway.expressions.path import Path
from gateway.expressions.syntax import (
    Call,
    Chain,
    Choice,
    Group,
    Has,
    Index,
    ListOf,
    Literal,
    Macro,
    MapOf,
    Node,
    Ref,
    Select,
    Unary,
    Variable,
)

# The library counts a string's bytes, CEL its characters: ours is registered under this name.
SIZE_FUNCTION: Final = "size_of"
_VARIABLE: Final = "x"


@dataclass(frozen=True, slots=True)
class Printed:
    """CEL text and what its variables stand for."""

    text: str
    values: dict[str, Ref]
    presences: dict[str, Path]
    counts_size: bool


def printed(tree: Node) -> Printed:
    """The text of `tree` for the library."""
    printer = _Printer()
    text = printer.text(tree)
    return Printed(
        text=text,
        values={name: ref for ref, name in printer.values.items()},
        presences={name: path for path, name in printer.presences.items()},
        counts_size=printer.counts_size,
    )


@dataclass(slots=True)
class _Printer:
    values: dict[Ref, str] = field(default_factory=dict)
    presences: dict[Path, str] = field(default_factory=dict)
    counts_size: bool = False

    def text(self, node: Node) -> str:
        match node:
            case Literal(text):
                return text
            case Ref():
                return self.values.setdefault(node, f"v{len(self.values)}")
            case Has(path):
                return self.presences.setdefault(path, f"h{len(self.presences)}")
            case Variable():
                return _VARIABLE
            case Select(operand, field_name, _, test):
                selected = f"{self.text(operand)}.{field_name}"
                return f"has({selected})" if test else selected
            case Index(operand, index):
                return f"{self.text(operand)}[{self.text(index)}]"
            case Call():
                return self.call(node)
            case Macro(name, receiver, bodies):
                return f"{self.text(receiver)}.{name}({_VARIABLE}, {self.joined(bodies)})"
            case Chain(operands, operators):
                pairs = zip(operators, operands[1:], strict=True)
                rest = "".join(f" {mark} {self.text(operand)}" for mark, operand in pairs)
                return self.text(operands[0]) + rest
            case Unary(marks, operand):
                return marks + self.text(operand)
            case Choice(test, yes, no):
                return f"{self.text(test)} ? {self.text(yes)} : {self.text(no)}"
            case Group(inner):
                return f"({self.text(inner)})"
            case ListOf(items):
                return f"[{self.joined(items)}]"
            case MapOf(entries):
                return "{" + ", ".join(f"{k.text}: {self.text(v)}" for k, v in entries) + "}"

    def call(self, node: Call) -> str:
        if node.function == "size":
            self.counts_size = True
            return f"{SIZE_FUNCTION}({self.text(node.arguments[0])})"
        if node.is_method:
            receiver, *arguments = node.arguments
            return f"{self.text(receiver)}.{node.function}({self.joined(tuple(arguments))})"
        return f"{node.function}({self.joined(node.arguments)})"

    def joined(self, nodes: tuple[Node, ...]) -> str:
        return ", ".join(self.text(node) for node in nodes)
