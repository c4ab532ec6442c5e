"""From text to tree: the grammar of CEL, cut to what a workflow may use.

Refused here, with the column: nested macros, macros over anything whose length is not known before
the run, unknown functions, patterns that are not literals, deep nesting. Paths are recognised here,
so that only what they name is ever decoded.
"""

import re
from dataclasses import dataclass, replace
from typing import Final

from gateway.expressions.fault import ExpressionError
from gateway.expressions.path import Path
from gateway.expressions.precision import is_exact
from gateway.expressions.syntax import (
    FUNCTIONS,
    LIST_MACROS,
    MACROS,
    METHODS,
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
from gateway.expressions.tokens import Kind, Token, tokens_of

# Well below what the CEL library's own recursive parser survives.
MAX_DEPTH: Final = 24
MAX_SUFFIXES: Final = 24
MAX_MARKS: Final = 8
MAX_MACRO_ELEMENTS: Final = 100

# From the loosest to the tightest.
_LEVELS: Final = (
    frozenset({"||"}),
    frozenset({"&&"}),
    frozenset({"<", "<=", ">=", ">", "==", "!=", "in"}),
    frozenset({"+", "-"}),
    frozenset({"*", "/", "%"}),
)
_DOUBLE: Final = re.compile(r"[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_CONSTANTS: Final = frozenset({"true", "false", "null"})


def parse(text: str) -> Node:
    """The tree of `text`; raises ExpressionError with the column of what is wrong."""
    parser = _Parser(tokens_of(text))
    tree = parser.expression()
    parser.end()
    return tree


@dataclass(slots=True)
class _Parser:
    """Recursive descent; its recursion is bounded by MAX_DEPTH."""

    tokens: tuple[Token, ...]
    place: int = 0
    depth: int = 0
    bound: str | None = None

    # -- tokens

    @property
    def token(self) -> Token:
        return self.tokens[self.place]

    def peek(self, text: str, ahead: int = 0) -> bool:
        place = self.place + ahead
        if place >= len(self.tokens):
            return False
        token = self.tokens[place]
        return token.text == text and token.kind in (Kind.MARK, Kind.NAME)

    def accept(self, text: str) -> bool:
        if not self.peek(text):
            return False
        self.place += 1
        return True

    def expect(self, text: str) -> None:
        if not self.accept(text):
            raise ExpressionError(f"expected '{text}', found {self.token}", self.token.column)

    def end(self) -> None:
        if self.token.kind is not Kind.END:
            raise ExpressionError(f"unexpected {self.token}", self.token.column)

    def name(self) -> Token:
        token = self.token
        if token.kind is not Kind.NAME:
            raise ExpressionError(f"expected a name, found {token}", token.column)
        self.place += 1
        return token

    # -- grammar, from the loosest binding to the tightest

    def expression(self) -> Node:
        self.depth += 1
        column = self.token.column
        if self.depth > MAX_DEPTH:
            raise ExpressionError(f"nested more than {MAX_DEPTH} deep", column)
        test = self.chain(0)
        if self.accept("?"):
            yes = self.expression()
            self.expect(":")
            test = Choice(test, yes, self.expression(), column)
        self.depth -= 1
        return test

    def chain(self, level: int) -> Node:
        if level == len(_LEVELS):
            return self.unary()
        column = self.token.column
        operands, operators = [self.chain(level + 1)], []
        while self.token.kind in (Kind.MARK, Kind.NAME) and self.token.text in _LEVELS[level]:
            operators.append(self.token.text)
            self.place += 1
            operands.append(self.chain(level + 1))
        return Chain(tuple(operands), tuple(operators), column) if operators else operands[0]

    def unary(self) -> Node:
        column, mark = self.token.column, self.token.text
        marks = 0
        while mark in ("!", "-") and self.accept(mark):
            marks += 1
        if marks > MAX_MARKS:
            raise ExpressionError(f"more than {MAX_MARKS} '{mark}' in a row", column)
        operand = self.member()
        return Unary(mark * marks, operand, column) if marks else operand

    def member(self) -> Node:
        node = self.primary()
        for _ in range(MAX_SUFFIXES):
            if self.peek("."):
                node = self.after_dot(node)
            elif self.peek("["):
                node = self.after_bracket(node)
            else:
                return node
        raise ExpressionError(f"more than {MAX_SUFFIXES} parts in a row", self.token.column)

    def after_dot(self, node: Node) -> Node:
        self.expect(".")
        name = self.name()
        if not self.peek("("):
            if isinstance(node, Ref):
                return _deeper(node, name.text)
            return Select(node, name.text, name.column)
        if name.text in MACROS:
            return self.macro(node, name)
        if name.text not in METHODS:
            raise ExpressionError(_unknown(name.text, (*METHODS, *MACROS)), name.column)
        arguments = self.arguments()
        if len(arguments) != METHODS[name.text]:
            raise ExpressionError(
                f"'{name.text}' takes {METHODS[name.text]} arguments, not {len(arguments)}",
                name.column,
            )
        if name.text == "matches" and not _is_string(arguments[0]):
            raise ExpressionError("the pattern of 'matches' must be a string literal", name.column)
        if name.text == "size":
            return _size_of(node, name.column)
        return Call(name.text, (node, *arguments), True, name.column)

    def after_bracket(self, node: Node) -> Node:
        column = self.token.column
        self.expect("[")
        index = self.expression()
        self.expect("]")
        if isinstance(node, Ref) and isinstance(index, Literal):
            if index.text.isdigit() and len(index.text) < 10:
                return _deeper(node, int(index.text))
            if index.text[0] in "\"'" and "\\" not in index.text:
                return _deeper(node, index.text[1:-1])
        return Index(node, index, column)

    def primary(self) -> Node:
        token = self.token
        if token.kind in (Kind.NUMBER, Kind.STRING):
            self.place += 1
            if (
                token.kind is Kind.NUMBER
                and _DOUBLE.fullmatch(token.text)
                and not token.text.isdigit()
            ):
                _check_literal(token)
            return Literal(token.text, token.column)
        if token.kind is Kind.NAME and token.text != "in":
            self.place += 1
            return self.named(token)
        if self.accept("("):
            inner = self.expression()
            self.expect(")")
            return Group(inner, token.column)
        if self.peek("["):
            return ListOf(self.items("[", "]"), token.column)
        if self.accept("{"):
            return self.object(token.column)
        raise ExpressionError(f"expected a value, found {token}", token.column)

    def named(self, token: Token) -> Node:
        if token.text in _CONSTANTS:
            return Literal(token.text, token.column)
        if not self.peek("("):
            if token.text == self.bound:
                return Variable(token.column)
            return Ref(Path(token.text, (), token.column))
        if token.text == "has":
            return self.presence(token)
        if token.text not in FUNCTIONS:
            raise ExpressionError(_unknown(token.text, (*FUNCTIONS, "has")), token.column)
        arguments = self.arguments()
        if len(arguments) != 1:
            raise ExpressionError(f"'{token.text}' takes one argument", token.column)
        if token.text == "size":
            return _size_of(arguments[0], token.column)
        return Call(token.text, arguments, False, token.column)

    def presence(self, token: Token) -> Node:
        arguments = self.arguments()
        match arguments:
            case (Ref(path),) if path.parts and isinstance(path.parts[-1], str):
                return Has(path)
            case (Select() as select,):
                return replace(select, test=True)
            case _:
                raise ExpressionError("'has' takes a field, such as has(a.b)", token.column)

    def macro(self, receiver: Node, name: Token) -> Node:
        if self.bound is not None:
            raise ExpressionError(f"macros do not nest: '{name.text}' is inside one", name.column)
        receiver = _countable(receiver, name)
        self.expect("(")
        variable = self.name()
        if variable.text in _CONSTANTS or variable.text == "in":
            raise ExpressionError(f"{variable} cannot be a variable", variable.column)
        self.bound = variable.text
        bodies: list[Node] = []
        while self.accept(","):
            bodies.append(self.expression())
        self.bound = None
        self.expect(")")
        least, most = MACROS[name.text]
        if not least <= len(bodies) <= most:
            raise ExpressionError(
                f"write {name.text}(x, expression), with x for each element", name.column
            )
        return Macro(name.text, receiver, tuple(bodies), name.column)

    def arguments(self) -> tuple[Node, ...]:
        return self.items("(", ")")

    def items(self, opener: str, closer: str) -> tuple[Node, ...]:
        self.expect(opener)
        items: list[Node] = []
        while not self.peek(closer):
            items.append(self.expression())
            if not self.accept(","):
                break
        self.expect(closer)
        return tuple(items)

    def object(self, column: int) -> Node:
        entries: list[tuple[Literal, Node]] = []
        while not self.peek("}"):
            key = self.token
            if key.kind is not Kind.STRING:
                raise ExpressionError(
                    f"a key must be a string literal, such as 'id', not {key}", key.column
                )
            self.place += 1
            self.expect(":")
            entries.append((Literal(key.text, key.column), self.expression()))
            if not self.accept(","):
                break
        self.expect("}")
        return MapOf(tuple(entries), column)


def _check_literal(token: Token) -> None:
    """A double literal must mean what it says."""
    if not is_exact(token.text):
        raise ExpressionError(f"{token.text[:40]} does not fit a double exactly", token.column)


def _size_of(node: Node, column: int) -> Node:
    """The size of a path is a number before the run; any other is counted in it."""
    if isinstance(node, Ref):
        return Ref(node.path, Use.SIZE)
    return Call("size", (node,), False, column)


def _deeper(node: Ref, part: str | int) -> Ref:
    path = node.path
    return Ref(Path(path.root, (*path.parts, part), path.column))


def _countable(receiver: Node, name: Token) -> Node:
    """The receiver, if the number of its elements is known before the run."""
    match receiver:
        case Group(inner):
            return _countable(inner, name)
        case Ref(path):
            return Ref(path, Use.ELEMENTS)
        case Macro(name=inner_name) if inner_name in LIST_MACROS:
            return receiver
        case ListOf(items) if len(items) <= MAX_MACRO_ELEMENTS:
            return receiver
        case ListOf():
            raise ExpressionError(
                f"'{name.text}' runs over at most {MAX_MACRO_ELEMENTS} elements", name.column
            )
        case _:
            raise ExpressionError(
                f"'{name.text}' runs over a path, a list or the result of map or filter only",
                name.column,
            )


def _is_string(node: Node) -> bool:
    return isinstance(node, Literal) and node.text[0] in "\"'rR"


def _unknown(name: str, known: tuple[str, ...]) -> str:
    return f"there is no function '{name}' here; there are: {', '.join(sorted(set(known)))}"
