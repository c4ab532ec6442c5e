"""Splits the text of an expression into tokens, each with its column."""

import enum
import re
from dataclasses import dataclass
from typing import Final

from gateway.expressions.fault import ExpressionError


class Kind(enum.Enum):
    NUMBER = "number"
    STRING = "string"
    NAME = "name"
    MARK = "mark"
    END = "end"


@dataclass(frozen=True, slots=True)
class Token:
    kind: Kind
    text: str
    column: int

    def __str__(self) -> str:
        return "the end" if self.kind is Kind.END else f"'{self.text}'"


# Order matters: a string with a prefix before a name, a number before a dot.
_TOKEN: Final = re.compile(
    r"""(?P<blank>[ \t\r\n\f]+|//[^\n]*)
    |(?P<refused>[bB][rR]?["']|[rR][bB]["']|[rR]?\"\"\"|[rR]?'''|`)
    |(?P<string>[rR]"[^"\n]*"|[rR]'[^'\n]*'|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
    |(?P<number>0[xX][0-9a-fA-F]+[uU]?|[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?[uU]?)
    |(?P<name>[A-Za-z_][A-Za-z0-9_]*)
    |(?P<mark>&&|\|\||==|!=|<=|>=|[-+*/%<>!?:.,()\[\]{}])""",
    re.VERBOSE,
)


def tokens_of(text: str) -> tuple[Token, ...]:
    """All tokens of `text` and one END; raises ExpressionError where it is none."""
    tokens: list[Token] = []
    place = 0
    while place < len(text):
        found = _TOKEN.match(text, place)
        if found is None:
            raise ExpressionError(_advice(text, place), place + 1)
        kind = found.lastgroup
        if kind == "refused":
            raise ExpressionError(
                "only plain strings are allowed: no bytes, no triple quotes, no backquotes",
                place + 1,
            )
        if kind != "blank":
            tokens.append(Token(Kind(kind), found[0], place + 1))
        place = found.end()
    return (*tokens, Token(Kind.END, "", len(text) + 1))


def _advice(text: str, place: int) -> str:
    character = text[place]
    if character in "\"'":
        return "this string does not end"
    if character in "&|=":
        return f"'{character}' must be doubled: '{character * 2}'"
    return f"unexpected character {character!r}"
