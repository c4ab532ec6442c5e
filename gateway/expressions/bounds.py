"""How long an evaluation can take, estimated on the tree before it runs.

The library cannot be stopped and holds the interpreter, so nothing may start that could run long:
a list doubled three hundred times takes 39 s. Sizes are counted in cells (a value's elements and
members, and one per 64 bytes); inside a macro they are so much per element plus a multiple of the
element, whose sum over all elements is the receiver's size. The figures are upper bounds measured
with the library on one core.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from gateway.expressions.fault import ExpressionError, violation
from gateway.expressions.syntax import (
    LIST_MACROS,
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
    Use,
    Variable,
)

MAX_NAMED_BYTES: Final = 64 * 1024
# Of all values that one expression names, together.
MAX_NAMED_TOTAL_BYTES: Final = 8 * MAX_NAMED_BYTES
MAX_OUTPUT_BYTES: Final = 64 * 1024
MAX_MACRO_ELEMENTS: Final = 100

_BUDGET_NS: Final = 50_000_000
_BYTES_PER_CELL: Final = 64
_OPERATION_NS: Final = 400.0
_CLONE_NS: Final = 60.0
# Reading JSON and handing it to the library: per element, container and string, and per number
# where spelling has to be compared with the double it becomes.
_ELEMENT_NS: Final = 150.0
_CONTAINER_NS: Final = 800.0
_STRING_NS: Final = 1_100.0
_CAREFUL_NS: Final = 2_000.0
# Giving a value to our own `size` (nested lists are the worst), and writing a result canonically.
_TAKE_NS: Final = 1_500.0
_ENCODE_NS: Final = 800.0
# A pattern is compiled at every use. A class such as \w is a table of all of Unicode.
_PATTERN_MAX_CHARACTERS: Final = 256
_PATTERN_MAX_NS: Final = 10_000_000
_PATTERN_NS: Final = 100_000.0
_CLASS_NS: Final = 170_000.0
_WIDE_NS: Final = 4_000.0
_CHARACTER_NS: Final = 300.0
_MATCH_NS_PER_CELL: Final = 8_000.0
_CLASS_ATOM: Final = re.compile(r"\\[wWdDsSbBpP]|\[:|\(\?[a-z]*i")
_WIDE_ATOM: Final = re.compile(r"\.|\[\^|[^\x00-\x7f]")
_COUNTED: Final = re.compile(r"\{(\d{0,6})(?:,(\d{0,6}))?\}")
_STRINGS: Final = re.compile(rb'"(?:[^"\\]|\\.)*+"', re.DOTALL)
_EXACT_FROM_CELLS: Final = 1_000


class Extent(NamedTuple):
    """What a named value costs: cells, time to read it in, elements that a macro would meet."""

    cells: int
    decode_ns: float = 0.0
    elements: int = 0


def extent_of(data: bytes, *, careful: bool) -> Extent:
    """The extent of a value from its JSON text, never too low; `careful`: its numbers are odd.

    Its elements are known only when it has been read.
    """
    quotes = data.count(b'"')
    commas, lists, objects = data.count(b","), data.count(b"["), data.count(b"{")
    if commas + lists + objects > _EXACT_FROM_CELLS and quotes:
        structure = _STRINGS.sub(b"", data)
        commas, lists = structure.count(b","), structure.count(b"[")
        objects = structure.count(b"{")
    return Extent(
        cells=1 + commas + lists + 2 * objects + len(data) // _BYTES_PER_CELL,
        decode_ns=(1 + commas) * (_CAREFUL_NS if careful else _ELEMENT_NS)
        + (lists + objects) * _CONTAINER_NS
        + quotes / 2 * _STRING_NS,
    )


class _Amount(NamedTuple):
    """So much, and so many times the current element of the macro around it."""

    fixed: float
    share: float = 0.0

    def plus(self, other: "_Amount") -> "_Amount":
        return _Amount(self.fixed + other.fixed, self.share + other.share)

    def times(self, factor: float) -> "_Amount":
        return _Amount(self.fixed * factor, self.share * factor)

    def over(self, extent: Extent) -> "_Amount":
        """The sum over all elements."""
        return _Amount(self.fixed * extent.elements + self.share * extent.cells)


_ONE: Final = _Amount(1.0)
_OPERATION: Final = _Amount(_OPERATION_NS)
# What has no own copy of its value: reading on from there copies nothing but the result.
_BORROWED: Final = (Ref, Variable, Select, Index)


def check_named(ref: Ref, data: bytes, *, total_bytes: int) -> None:
    """Refuse a value that is too large to compute with; `total_bytes` includes it."""
    if len(data) > MAX_NAMED_BYTES:
        raise violation(
            f"{ref.path} has {len(data)} bytes; over {MAX_NAMED_BYTES} a value can only be copied "
            "by its bare path",
            ref.column,
        )
    if total_bytes > MAX_NAMED_TOTAL_BYTES:
        raise violation(
            f"the values named here have more than {MAX_NAMED_TOTAL_BYTES} bytes together",
            ref.column,
        )


def check_reading(tree: Node, extents: Iterable[Extent]) -> None:
    """Refuse an evaluation whose values alone would take long to read in."""
    _check_budget(tree, sum(extent.decode_ns for extent in extents))


def check_cost(tree: Node, extents: Mapping[Ref, Extent]) -> None:
    """Refuse (CONTRACT_VIOLATION) an evaluation that could take long with values of these sizes."""
    for ref, extent in extents.items():
        if ref.use is Use.ELEMENTS and extent.elements > MAX_MACRO_ELEMENTS:
            raise violation(
                f"a macro runs over at most {MAX_MACRO_ELEMENTS} elements, "
                f"{ref.path} has {extent.elements}",
                ref.column,
            )
    estimator = _Estimator(extents)
    output = estimator.size(tree)
    decoding = sum(extent.decode_ns for extent in extents.values())
    _check_budget(tree, decoding + estimator.work.fixed + output.fixed * _ENCODE_NS)


def _check_budget(tree: Node, total_ns: float) -> None:
    if total_ns > _BUDGET_NS:
        raise violation(
            "this could take too long with data of this size "
            f"(about {total_ns / 1e6:.0f} ms, at most {_BUDGET_NS / 1e6:.0f} ms are allowed)",
            tree.column,
        )


@dataclass(slots=True)
class _Estimator:
    extents: Mapping[Ref, Extent]
    work: _Amount = field(default=_Amount(0.0))

    def spend(self, amount: _Amount, ns_per_cell: float = _CLONE_NS) -> None:
        self.work = self.work.plus(amount.times(ns_per_cell)).plus(_OPERATION)

    def size(self, node: Node) -> _Amount:
        """An upper bound of the value's cells; adds what it takes to make it to `work`."""
        match node:
            case Literal(text):
                return _Amount(1.0 + len(text) // _BYTES_PER_CELL)
            case Ref():
                extent = self.extents.get(node)
                if node.use is Use.SIZE or extent is None:
                    return _ONE
                return _Amount(float(extent.cells))
            case Has():
                return _ONE
            case Variable():
                return _Amount(1.0, 1.0)
            case Select(operand) | Index(operand):
                return self.part(node, operand)
            case Call():
                return self.call(node)
            case Macro():
                return self.macro(node)
            case Chain():
                return self.chain(node)
            case Unary(_, operand) | Group(operand):
                size = self.size(operand)
                self.spend(_ONE)
                return size
            case Choice(test, yes, no):
                self.spend(self.size(test))
                one, other = self.size(yes), self.size(no)
                return _Amount(max(one.fixed, other.fixed), max(one.share, other.share))
            case ListOf(items):
                return self.collection(items)
            case MapOf(entries):
                return self.collection(tuple(value for _, value in entries))

    def part(self, node: Select | Index, operand: Node) -> _Amount:
        size = self.size(operand)
        if isinstance(node, Index):
            self.spend(self.size(node.index))
        self.spend(_ONE if isinstance(operand, _BORROWED) else size)
        return size

    def call(self, node: Call) -> _Amount:
        sizes = _Amount(0.0)
        for argument in node.arguments:
            sizes = sizes.plus(self.size(argument))
        self.spend(sizes, _TAKE_NS if node.function == "size" else _CLONE_NS)
        if node.function == "matches":
            pattern = node.arguments[1]
            assert isinstance(pattern, Literal)
            self.work = self.work.plus(_Amount(pattern_cost_ns(pattern.text)))
            self.spend(sizes, _MATCH_NS_PER_CELL)
        # A double can print 300 digits.
        return sizes.plus(_Amount(8.0)) if node.function == "string" else _ONE

    def chain(self, node: Chain) -> _Amount:
        total = self.size(node.operands[0])
        for operator, operand in zip(node.operators, node.operands[1:], strict=True):
            total = total.plus(self.size(operand))
            self.spend(total)
            if operator != "+":
                total = _ONE
        return total

    def collection(self, items: tuple[Node, ...]) -> _Amount:
        total = _Amount(1.0 + len(items))
        for item in items:
            total = total.plus(self.size(item))
        self.spend(total)
        return total

    def macro(self, node: Macro) -> _Amount:
        extent = self.receiver(node.receiver)
        before, self.work = self.work, _Amount(0.0)
        sizes = [self.size(body) for body in node.bodies]
        self.spend(_ONE)
        self.work = before.plus(self.work.over(extent))
        if node.name not in LIST_MACROS:
            return _ONE
        made = sizes[-1] if node.name == "map" else _Amount(1.0, 1.0)
        total = made.over(extent)
        # The library adds each element to a copy of the list so far.
        self.spend(total, _CLONE_NS * (extent.elements / 2 + 1))
        return total

    def receiver(self, node: Node) -> Extent:
        size = self.size(node)
        match node:
            case Ref():
                return self.extents.get(node, Extent(1))
            case ListOf(items):
                return Extent(int(size.fixed), elements=len(items))
            case Macro(receiver=inner):
                # Its own work was added above; here only the number of its elements is asked.
                return Extent(int(size.fixed), elements=self.elements(inner))
            case _:
                raise AssertionError(f"the parser admits no macro over {type(node).__name__}")

    def elements(self, node: Node) -> int:
        match node:
            case Ref():
                return self.extents[node].elements if node in self.extents else 0
            case ListOf(items):
                return len(items)
            case Macro(receiver=inner):
                return self.elements(inner)
            case _:
                return MAX_MACRO_ELEMENTS


def pattern_cost_ns(pattern: str) -> float:
    """What compiling a pattern can take: its atoms, times all its counted repetitions."""
    repeated = 1.0
    for least, most in _COUNTED.findall(pattern):
        repeated *= max(int(least or 1), int(most or 1), 1)
    # Folding case and classes cost most, then anything that is almost every character.
    classes, wide = len(_CLASS_ATOM.findall(pattern)), len(_WIDE_ATOM.findall(pattern))
    atoms = classes * _CLASS_NS + wide * _WIDE_NS + len(pattern) * _CHARACTER_NS
    return _PATTERN_NS + atoms * repeated


def check_pattern(pattern: Literal) -> None:
    """Refuse a pattern that is long, or slow to compile."""
    if len(pattern.text) > _PATTERN_MAX_CHARACTERS:
        raise ExpressionError(
            f"a pattern has at most {_PATTERN_MAX_CHARACTERS} characters", pattern.column
        )
    if pattern_cost_ns(pattern.text) > _PATTERN_MAX_NS:
        raise ExpressionError(
            "this pattern is too costly; use smaller {n} and [0-9] instead of \\d", pattern.column
        )
